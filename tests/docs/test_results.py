"""Statistics of the stored runs, counted again from their episodes, and sentences that state results."""

import csv
import json
import lzma
import re
from functools import cache

import numpy as np
import pytest
from scipy import stats
from tests.docs.scripts import DOCS, ROOT, docs_script

from steingate.algorithms import make_algorithm
from steingate.algorithms.evo import PUBLISHED_BUFFER
from steingate.certificates.stein import SteinCertificate

RESULTS = ROOT / "results"
GRIDS = sorted(path.name.removesuffix(".jsonl.xz") for path in (RESULTS / "runs").glob("*.jsonl.xz"))


@cache
def archived(grid):
    """Runs of an archive by folder, read without the package."""
    with lzma.open(RESULTS / "runs" / f"{grid}.jsonl.xz", "rt") as file:
        next(file)
        return {entry["run"]: entry for entry in map(json.loads, file)}


def episodes(grid, run):
    return {name: np.array(cells) for name, cells in archived(grid)[run]["episodes"].items()}


def progress(grid, run):
    columns = archived(grid)[run]["progress"]
    return {name: np.array([np.nan if cell is None else cell for cell in cells]) for name, cells in columns.items()}


def means_of_100(run_episodes, epochs):
    """Mean return and cost of the last 100 episodes at the end of each epoch."""
    found = []
    for number in range(epochs):
        end = int(np.searchsorted(run_episodes["epoch"], number, side="right"))
        last = slice(max(end - 100, 0), end)
        found.append([run_episodes[name][last].mean() for name in ("return", "cost")])
    return np.array(found).T


@pytest.fixture(scope="module")
def summary():
    with open(RESULTS / "summary.csv", newline="") as file:
        table = list(csv.DictReader(file))
    return {(row["grid"], row["kind"], row["algo"], row["env"], int(row["seed"])): row for row in table}


def select(summary, **cells):
    return [row for row in summary.values() if all(row[name] == value for name, value in cells.items())]


def test_every_stored_run_is_in_the_summary(summary):
    docs_grids = docs_script("summary").GRIDS
    assert sorted(docs_grids) == GRIDS
    assert len(summary) == sum(len(archived(grid)) for grid in GRIDS) + 4  # and SteinGate's first million steps


@pytest.mark.parametrize("grid", GRIDS)
def test_statistics_follow_from_the_episodes(grid, summary):
    for run, entry in archived(grid).items():
        config, done = entry["config"]["config"], episodes(grid, run)
        *kind, algo, env, seed = run.split("/")
        row = summary[grid, "/".join(kind), algo, env, int(seed.removeprefix("seed-"))]
        steps = progress(grid, run)["TotalEnvSteps"]
        limit = 25.0 if grid == "equal" else config["cost_limit"]  # the grid has runs trained for stricter limits
        count = config["total_steps"] // config["steps_per_epoch"]
        assert (len(steps), int(steps[-1]), float(row["limit"])) == (count, int(row["steps"]), limit)
        first = count - count // 5
        late = done["epoch"] >= first
        ret, cost = done["return"][late], done["cost"][late]
        mean_return, mean_cost = means_of_100(done, count)
        feasible = mean_cost[first:] <= limit
        tail, worst = len(cost) / 10.0, np.sort(cost)[::-1]
        expected = {
            "epochs": count - first,
            "episodes": len(cost),
            "over_count": (cost > limit).sum(),
            "feasible_by_epoch": feasible.mean(),
            "feasible_by_episode": (cost <= limit).mean(),
            "return": ret.mean(),
            "cost": cost.mean(),
            "feasible_in_training": (mean_cost <= limit).mean(),
            "cost_sd": np.std([cost[done["epoch"][late] == n].mean() for n in range(first, count)]),
            "cvar90": (worst[: int(tail)].sum() + (tail % 1.0) * worst[int(tail)]) / tail,
            "over_in_training": (done["cost"] > limit).mean(),
        }
        if feasible.any():
            expected["return_by_epoch"] = mean_return[first:][feasible].mean()
        if (cost <= limit).any():
            expected["return_by_episode"] = ret[cost <= limit].mean()
        if steps[-1] > 1e6:
            expected["highest_mean_cost"] = mean_cost[steps > 1e6].max()
        for name, value in expected.items():
            assert float(row[name]) == pytest.approx(value, abs=6e-5), (run, name)
        assert all(row[name] for name in expected)


def test_the_first_million_steps_are_those_of_table1(summary):
    rows = select(summary, grid="first-million")
    assert len(rows) == 4
    for row in rows:
        done = episodes("table1", f"steingate/{row['env']}/seed-0")
        late = (done["epoch"] >= 40) & (done["epoch"] < 50)
        assert int(row["episodes"]) == late.sum()
        assert float(row["cost"]) == pytest.approx(done["cost"][late].mean(), abs=6e-5)


def test_archives_name_no_folder_of_a_machine():
    for grid in GRIDS:
        for entry in archived(grid).values():
            assert entry["config"]["config"]["out"] == "runs"
            assert not re.search(r"/(tmp|home|work)/", json.dumps(entry["config"]))


# Intervals


def test_intervals_over_seeds_are_students():
    module, values = docs_script("summary"), np.array([9.9, 11.7, 10.4])
    found = module.mean_over_seeds(values)
    assert (found.low, found.high) == pytest.approx(stats.t.interval(0.95, 2, values.mean(), stats.sem(values)))
    assert np.isnan(module.mean_over_seeds(values[:1]).low)


def test_proportions_have_at_least_the_clopper_pearson_interval():
    module = docs_script("summary")
    for share in (1.0, 0.5):
        exact = stats.binomtest(round(48 * share), 48).proportion_ci(0.95)
        found = module.proportion(np.full(3, share), 16.0)
        assert (found.low, found.high) == pytest.approx((exact.low, exact.high))
    wide = module.proportion(np.array([0.1, 0.9, 0.5]), 16.0)
    assert (wide.low, wide.high) == (0.0, 1.0)


# Claims of the paper


def test_claims_that_do_not_hold_have_a_reason():
    claims = docs_script("claims")
    found = claims.all_claims()
    assert len({claim.figure for claim in found}) == 4
    assert all(claim.reason or claim.verdict == "yes" for claim in found)
    verdicts = {parts: claims.Claim("", "", parts, "").verdict for parts in ((True,), (False,), (True, False))}
    assert list(verdicts.values()) == ["yes", "no", "1 of 2 parts"]


def test_published_settings_are_those_of_the_papers_appendix():
    published = {"variant": "published"}
    gate = SteinCertificate.from_name(make_algorithm("steingate", "SafetyPointGoal1-v0", published).preset, 25.0)
    evo = make_algorithm("evo", "SafetyPointGoal1-v0", published)
    assert (gate.reference.a, gate.reference.b) == (2.0, 5.0)  # alpha, beta
    assert (gate.risk_function.threshold, gate.risk_function.width) == (0.5, 0.02)  # u_norm, eta
    assert (gate.budget, gate.discrete_weight, gate.stein_factor) == (0.1, 1.0, 0.1)  # eps_target, ...
    assert (gate.min_bandwidth, gate.interior_clip) == (0.05, 1e-5)
    assert (evo.extreme.capacity, evo.extreme.percentile, evo.extreme.quantile) == (50, 95, 0.5)  # cost buffer
    assert evo.is_published  # use_reward_buffer
    replay = evo.replay
    assert (PUBLISHED_BUFFER, replay.percentile, replay.quantile, replay.copies) == (100, 90, 0.5, 4)  # reward buffer


# Sentences


def page(name):
    return " ".join((DOCS / name).read_text(encoding="utf-8").split())


def column(rows, name):
    return np.array([float(row[name]) for row in rows])


def test_readme(summary):
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    stein = select(summary, grid="table1", algo="steingate")
    assert f"within the limit in {100 * column(stein, 'feasible_by_epoch').mean():.0f} of 100 epochs" in text
    goal = [row for row in stein if "Goal" in row["env"]]
    assert 1 / 6.5 < 1 - column(goal, "feasible_by_episode").mean() < 1 / 5.5  # "one in six"
    for algo in ("cpo", "evo", "trpo-saute", "trpo-simmer", "steingate", "allowance"):
        line = re.search(rf"\| \**{algo}\** \| (.*?) \| (?=\||\n|\Z)", text)[1]
        seeds, *cells = line.split(" | ")[:5]
        for env, shown in zip(docs_script("summary").TASKS, cells, strict=True):
            grid = "allowance" if algo == "allowance" else "table1"
            rows = select(summary, grid=grid, algo=algo, env=env)
            ret, over = (float(number) for number in shown.removesuffix(" %").split(" · "))
            assert len(rows) == int(seeds)
            assert ret == pytest.approx(column(rows, "return").mean(), abs=0.051)
            rate = column(rows, "over_count") / column(rows, "episodes")
            assert over == pytest.approx(100 * rate.mean(), abs=0.051)


def test_readme_with_equal_inputs(summary):
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    rows = {
        (row["algo"], row["kind"]): (float(row["return"]), 100 * int(row["over_count"]) / int(row["episodes"]))
        for row in select(summary, grid="equal", env="SafetyPointGoal1-v0", seed="0")
    }
    published = {
        algo: column(select(summary, grid="table1", env="SafetyPointGoal1-v0", algo=algo), "return").mean()
        for algo in ("evo", "steingate")
    }
    assert f"EVO earns {rows['evo', ''][0]:.1f} instead of {published['evo']:.1f}" in text
    assert f"SteinGate {rows['steingate', ''][0]:.1f} instead of {published['steingate']:.1f}" in text
    (five, over_five), (two, over_two) = rows["trpo-lag", "limit-5"], rows["trpo-lag", "limit-2"]
    assert f"a limit of 5 earns {five:.1f} at {over_five:.1f} % violations" in text
    assert f"a limit of 2 it earns {two:.1f} at {over_two:.1f} %" in text
    (circle,) = select(summary, grid="equal", env="SafetyCarCircle1-v0", kind="limit-5")
    rate = 100 * int(circle["over_count"]) / int(circle["episodes"])
    assert f"on CarCircle1 it earns {float(circle['return']):.1f} at {rate:.1f} %" in text
    own = select(summary, grid="allowance", env="SafetyPointGoal1-v0")
    over = 100 * (column(own, "over_count") / column(own, "episodes")).mean()
    assert over < min(rate for _, rate in rows.values())  # "the fewest violations"
    assert column(own, "return").mean() < two  # "does not lead in return"


def test_allowance_page(summary):
    text, grid = page("allowance.md"), "allowance"
    rows = select(summary, grid=grid)
    over = {env: 1 - column([row for row in rows if row["env"] == env], "feasible_by_episode") for env in
            {row["env"] for row in rows}}  # fmt: skip
    goal = np.concatenate([values for env, values in over.items() if "Goal" in env])
    assert f"{100 * goal.min():.1f} to {100 * goal.max():.1f} % of the episodes are violations" in text
    circle = column(select(summary, grid=grid, env="SafetyPointCircle1-v0"), "return")
    assert f"seeds end between {circle.min():.1f} and {circle.max():.1f}" in text
    assert f"up to {100 * column(rows, 'over_in_training').max():.1f} % of the episodes" in text
    returns, rates = [], []
    for seed in range(3):
        done = episodes(grid, f"allowance/SafetyPointGoal1-v0/seed-{seed}")
        second = (done["step"] > 1e6) & (done["step"] <= 2e6)
        returns.append(done["return"][second].mean())
        rates.append((done["cost"][second] > 25).mean())
    earned = f"policies earn {min(returns):.1f} to {max(returns):.1f} with violations in {100 * np.mean(rates):.0f} %"
    assert earned in text
    goal = column(select(summary, grid=grid, env="SafetyPointGoal1-v0"), "return")
    assert f"in the last fifth {goal.min():.1f} to {goal.max():.1f}" in text
    ends = [progress(grid, run)["Gate/BudgetFraction"][-1] for run in archived(grid) if "Goal" in run]
    low, high = f"{min(ends):.2f}", f"{max(ends):.2f}"
    assert (f"m ends at {low}" if low == high else f"m ends between {low} and {high}") in text


def test_monitoring_page():
    shown = set(re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?", page("monitoring.md")))
    rows = docs_script("summary").rows
    for row in rows("monitor_simulations.csv"):
        value, claim = float(row["value"]), row["claim"]
        if claim.startswith("wrong comparison"):
            assert f"{100 * value:.1f}" in shown, row
        elif claim not in ("false unsafe", "wrong certificate") and not row["setting"].endswith("all episodes"):
            assert f"{value:,.0f}" in shown, row
    last = rows("monitor_peeking.csv", episodes="10000")
    fixed, monitor = (100 * column(last, name) for name in ("fixed_n", "monitor"))
    assert f"{min(fixed):.0f} to {max(fixed):.0f} %, the bound of a monitor with {max(monitor):.0f} %" in page(
        "monitoring.md"
    )


def test_learning_page(summary):
    text = page("learning.md")
    for algo in ("trpo-lag", "ppo-lag"):
        run = f"published/{algo}/SafetyPointGoal1-v0/seed-0"
        table = progress("goal", run)
        ret, cost = means_of_100(episodes("goal", run), len(table["TotalEnvSteps"]))
        met = int(np.argmax(cost <= 25))
        assert f"after {table['TotalEnvSteps'][met] / 1e6:.1f} million" in text
        if algo == "trpo-lag":
            assert f"falls from {ret.max():.0f} to {ret[met:].min():.0f} before it recovers to {ret[-1]:.0f}" in text
    (cpo,) = select(summary, grid="goal", kind="corrected", algo="cpo")
    assert f"has return {float(cpo['return']):.1f} at cost {float(cpo['cost']):.1f}" in text


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("table1 trpo-saute/SafetyCarCircle1-v0", "table1 trpo-simmer/SafetyCarCircle1-v0"),
        ("table1 steingate/SafetyPointGoal1-v0", "references logit-normal/steingate/SafetyPointGoal1-v0"),
        ("velocity steingate/SafetyHumanoidVelocity-v1", "velocity cpo/SafetyHumanoidVelocity-v1"),
        *(
            (f"velocity trpo-saute/Safety{robot}Velocity-v1", f"velocity trpo-simmer/Safety{robot}Velocity-v1")
            for robot in ("Ant", "HalfCheetah", "Humanoid")
        ),
        *(
            (f"baselines trpo-lag/Safety{task}-v0", f"cpo-variants rcpo/Safety{task}-v0")
            for task in ("PointGoal1", "PointCircle1", "CarGoal1", "CarCircle1")
        ),
    ],
)
def test_runs_that_are_bit_identical(first, second):
    one, other = (episodes(grid, f"{run}/seed-0") for grid, run in (first.split(), second.split()))
    for name in ("return", "cost"):
        np.testing.assert_array_equal(one[name], other[name])


def test_reproduction_page(summary):
    text = page("reproduction.md")
    over = 100 * (1 - column(select(summary, grid="circle2"), "feasible_by_episode"))
    assert f"safe on average, {min(over):.0f} to {max(over):.0f} % violations" in text
    samples = select(summary, grid="samples") + select(
        summary, grid="table1", algo="steingate", env="SafetyCarGoal1-v0", seed="0"
    )
    over = 100 * (1 - column(samples, "feasible_by_episode"))
    assert f"by the episode {min(over):.0f} to {max(over):.0f} % are violations" in text
    for row in select(summary, grid="limits"):
        assert 0.4 < float(row["cost"]) / float(row["limit"]) < 0.6  # "about half of it"
    low, *rest = sorted(column(select(summary, algo="steingate", env="SafetyCarCircle1-v0", grid="table1"),
                               "feasible_by_epoch"))  # fmt: skip
    assert f"one seed has {low:.2f} feasible epochs" in text
    assert min(rest) >= 0.99
    for algo in ("cpo", "evo", "trpo-saute", "trpo-simmer", "steingate"):
        run = f"{algo}/SafetyHumanoidVelocity-v1/seed-0"
        assert progress("velocity", run)["Train/EpLen"][-10:].mean() < 140


def test_gates_of_the_reproduction():
    opened = {}
    for name in ("paper", "released", "corrected", "violation"):
        table = progress("gates", f"{name}/steingate/SafetyPointGoal1-v0/seed-0")
        opened[name] = np.mean(table["Gate/Mode"] == 0)
    assert opened.pop("violation") == 0.0
    assert 0.155 <= min(opened.values()) <= max(opened.values()) < 0.215  # "16 to 21 %"
    risks = {"logit-normal": 0.125, "beta-1-10": 0.001}
    for name, risk in risks.items():
        table = progress("references", f"{name}/steingate/SafetyPointGoal1-v0/seed-0")
        assert table["Gate/ReferenceRisk"] == pytest.approx(risk, abs=5e-4)
    stein = progress("table1", "steingate/SafetyPointGoal1-v0/seed-0")
    assert not np.any((stein["Gate/Mode"] == 0) & (stein["Gate/Guarded"] == 0))  # "only the guard opens the gate"
    assert np.any((table["Gate/Mode"] == 0) & (table["Gate/Guarded"] == 0))  # "at times by the Stein bound"
