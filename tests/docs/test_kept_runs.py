"""The statistics of the kept runs, counted again from their raw episodes; and what pages say of them."""

import csv
import io
import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from tests.docs.scripts import docs_script

from steingate.report.evidence import gather

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "results" / "kept"
RUNS = sorted(path.parent.relative_to(KEPT) for path in KEPT.rglob("config.json"))


@pytest.fixture(scope="module")
def kept():
    return docs_script("kept")


@pytest.fixture(scope="module")
def maker():
    return docs_script("make_reproduction_page")


@pytest.fixture(scope="module")
def summary():
    with open(KEPT / "summary.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        Path(row["grid"], row["kind"], row["algo"], row["env"], f"seed-{row['seed']}"): row for row in rows
    }


def table(path):
    return list(csv.DictReader(io.StringIO(lzma.decompress(path.read_bytes()).decode())))


def test_every_kept_run_is_in_the_summary_and_whole(summary):
    assert RUNS
    assert set(summary) == set(RUNS)


@pytest.mark.parametrize("place", RUNS, ids=str)
def test_statistics_follow_from_the_raw_episodes(place, summary):
    row = summary[place]
    config = json.loads((KEPT / place / "config.json").read_text())["config"]
    episodes, epochs = table(KEPT / place / "episodes.csv.xz"), table(KEPT / place / "progress.csv.xz")
    assert int(epochs[-1]["TotalEnvSteps"]) == int(row["steps"])
    assert len(epochs) == config["total_steps"] // config["steps_per_epoch"]
    limit = config["cost_limit"]
    count, first = len(epochs), len(epochs) - len(epochs) // 5
    epoch = [int(each["epoch"]) for each in episodes]
    cost, ret = ([float(each[name]) for each in episodes] for name in ("cost", "return"))
    late = [i for i in range(len(episodes)) if epoch[i] >= first]
    good = [i for i in late if cost[i] <= limit]
    means = []
    for number in range(count):
        seen = [i for i in range(len(episodes)) if epoch[i] <= number][-100:] if count < 60 else None
        if seen is None:
            end = int(np.searchsorted(epoch, number, side="right"))
            seen = range(max(end - 100, 0), end)
        means.append((np.mean([ret[i] for i in seen]), np.mean([cost[i] for i in seen])))
    after = [mean[1] for number, mean in enumerate(means) if int(epochs[number]["TotalEnvSteps"]) > 1e6]
    feasible = [mean for mean in means[first:] if mean[1] <= limit]
    worst = sorted((cost[i] for i in late), reverse=True)
    whole, part = divmod(len(worst) / 10.0, 1.0)
    tail = (sum(worst[: int(whole)]) + part * (worst[int(whole)] if part else 0.0)) / (len(worst) / 10.0)
    expected = {
        "limit": limit,
        "epochs": count - first,
        "episodes": len(late),
        "over_count": len(late) - len(good),
        "feasible_by_epoch": len(feasible) / (count - first),
        "feasible_by_episode": len(good) / len(late),
        "return": np.mean([ret[i] for i in late]),
        "cost": np.mean([cost[i] for i in late]),
        "feasible_in_training": np.mean([mean[1] <= limit for mean in means]),
        "cost_sd": np.std([np.mean([cost[i] for i in late if epoch[i] == n]) for n in range(first, count)]),
        "cvar90": tail,
        "over_in_training": np.mean([each > limit for each in cost]),
    }
    if feasible:
        expected["return_by_epoch"] = np.mean([mean[0] for mean in feasible])
    if after:
        expected["highest_mean_cost"] = max(after)
    if good:
        expected["return_by_episode"] = np.mean([ret[i] for i in good])
    for name, value in expected.items():
        assert float(row[name]) == pytest.approx(value, abs=6e-5), name
    assert bool(feasible) == bool(row["return_by_epoch"])
    assert bool(after) == bool(row["highest_mean_cost"])


def test_the_first_million_is_the_beginning_of_the_runs_of_table1(kept):
    for row in kept.rows("first_million.csv"):
        place = KEPT / "table1" / row["algo"] / row["env"] / f"seed-{row['seed']}"
        episodes = [each for each in table(place / "episodes.csv.xz") if 40 <= int(each["epoch"]) < 50]
        assert len(episodes) == int(row["episodes"])
        for name, cell in (("return", "return"), ("cost", "cost")):
            assert float(row[cell]) == pytest.approx(
                np.mean([float(each[name]) for each in episodes]), abs=6e-5
            )
    assert len(kept.rows("first_million.csv")) == 4


def test_feasible_returns_are_those_of_the_reports(kept):
    evidence = gather([KEPT / "table1"])
    cells = {(each.env, each.algo): each for each in kept.table1()}
    assert len(evidence.summaries) == 20
    for each in evidence.summaries:
        cell = cells[each.env, each.algo]
        assert cell.epoch_return.value == pytest.approx(each.epoch_return, abs=1e-3)
        assert cell.episode_return.value == pytest.approx(each.episode_return, abs=1e-3)
        assert cell.epochs.value == pytest.approx(each.epoch_feasibility)
        assert cell.episodes.value == pytest.approx(each.episode_feasibility, abs=1e-4)


def test_kept_configurations_name_no_folder_of_their_machine():
    for place in RUNS:
        text = (KEPT / place / "config.json").read_text()
        assert json.loads(text)["config"]["out"] == "runs"
        assert "/tmp" not in text


def test_results_stay_small():
    assert sum(path.stat().st_size for path in (ROOT / "results").rglob("*") if path.is_file()) < 15e6


def test_intervals_over_seeds_are_students(kept):
    values = np.array([9.9, 11.7, 10.4])
    found = kept.over_seeds(values)
    low, high = stats.t.interval(0.95, 2, values.mean(), stats.sem(values))
    assert (found.value, found.low, found.high) == pytest.approx((values.mean(), low, high))
    assert np.isnan(kept.over_seeds(values[:1]).low)
    assert kept.over_seeds(values[:0]).text(1) == "–"


def test_shares_that_do_not_vary_have_the_interval_of_what_was_counted(kept):
    found = kept.share(np.ones(3), 16.0)
    exact = stats.binomtest(48, 48).proportion_ci(0.95)
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))
    exact = stats.binomtest(24, 48).proportion_ci(0.95)
    found = kept.share(np.full(3, 0.5), 16.0)
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high))
    wide = kept.share(np.array([0.1, 0.9, 0.5]), 16.0)
    assert (wide.low, wide.high) == (0.0, 1.0)


def test_students_interval_holds_the_mean_as_often_as_it_says(kept):
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(2000):
        found = kept.over_seeds(rng.normal(5.0, 2.0, 3))
        inside += found.low <= 5.0 <= found.high
    assert 0.935 < inside / 2000 < 0.965


def test_a_difference_is_one_beyond_both_intervals(kept):
    def row(epochs, ret):
        return {
            "episodes": "4000", "feasible_by_epoch": epochs, "return_by_epoch": ret,
            "feasible_by_episode": "0.9", "return_by_episode": ret, "return": ret, "cost": "10",
        }  # fmt: skip

    env, algo = "SafetyPointCircle1-v0", "steingate"  # 0.992, 46.15
    near = kept.cell(env, algo, [row("1.0", "45.9"), row("1.0", "46.6"), row("0.98", "46.2")])
    assert near.differs == []
    far = kept.cell(env, algo, [row("0.5", "40.0"), row("0.51", "40.1"), row("0.49", "40.2")])
    assert far.differs == ["feasible epochs", "return"]
    assert kept.cell(env, algo, [row("0.5", "40.0")]).differs == []  # one seed says nothing of its spread
    assert kept.cell(env, "allowance", [row("0.5", "40.0")] * 3).paper is None


def test_pages_are_written_from_the_files(maker):
    for path, write in ((maker.PAGE, maker.page), (maker.README, maker.readme)):
        text = path.read_text(encoding="utf-8")
        assert write(text) == text, "run python docs/make_reproduction_page.py --text"
