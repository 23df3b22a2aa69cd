"""What docs/reproduction.md says in words is what the kept runs say."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.docs.scripts import docs_script

from steingate.report.loading import Run, load_run

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "results" / "kept"
TEXT = " ".join((ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8").split())


def kept(place: str) -> Run:
    return load_run(KEPT / place / "seed-0")


def column(algo: str, env: str, name: str) -> list[float]:
    rows = docs_script("kept").rows(grid="table1", algo=algo, env=f"Safety{env}-v0")
    return [float(row[name]) for row in rows]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("table1/trpo-saute/SafetyCarCircle1-v0", "table1/trpo-simmer/SafetyCarCircle1-v0"),
        ("table1/steingate/SafetyPointGoal1-v0", "references/logit-normal/steingate/SafetyPointGoal1-v0"),
        *(
            (f"baselines/trpo-lag/Safety{task}-v0", f"cpo-variants/rcpo/Safety{task}-v0")
            for task in ("PointGoal1", "PointCircle1", "CarGoal1", "CarCircle1")
        ),
    ],
)
def test_runs_that_are_the_same_to_the_bit(first, second):
    for name in ("return", "cost"):
        np.testing.assert_array_equal(kept(first).episodes[name], kept(second).episodes[name])


def test_risks_of_the_references():
    said = {
        "table1/steingate": 0.113,
        "references/logit-normal/steingate": 0.125,
        "references/beta-1-10/steingate": 0.001,
    }
    for place, risk in said.items():
        found = kept(f"{place}/SafetyPointGoal1-v0").progress["Gate/ReferenceRisk"]
        assert found == pytest.approx(risk, abs=5e-4)


def test_what_the_reasons_say_of_rows_and_seeds():
    """Their numbers are written from the files; these are the words between them."""
    cells = {(each.env[6:-3], each.algo): each for each in docs_script("kept").table1()}
    assert min(each.seeds for (_, algo), each in cells.items() if algo != "allowance") == 6
    for task in ("PointGoal1", "CarGoal1"):  # "counted by epoch both rows agree"
        assert cells[task, "cpo"].differs == []
        assert cells[task, "cpo"].differs_by_episode
        assert 1 / 7 < cells[task, "steingate"].over.value < 1 / 5  # "one of six episodes"
    apart = {  # "comes closest to a difference": the gap between the two intervals
        key: max(
            each.epochs.low - each.paper_epochs.high,
            each.paper_epochs.low - each.epochs.high,
        )
        for key, each in cells.items()
        if each.paper is not None
    }
    assert max(apart, key=apart.__getitem__) == ("PointCircle1", "trpo-simmer")
    lowest = {
        algo: min(column(algo, "PointCircle1", "feasible_by_epoch"))
        for algo in ("trpo-simmer", "evo", "trpo-saute")
    }
    assert lowest["trpo-simmer"] > max(lowest["evo"], lowest["trpo-saute"])  # "further down"
    low, *rest = sorted(column("steingate", "CarCircle1", "feasible_by_epoch"))
    assert low < 0.98 < min(rest)
    assert cells["CarCircle1", "steingate"].differs == []
    evo = column("evo", "PointGoal1", "return_by_epoch")
    assert max(evo) - min(evo) > abs(np.mean(evo) - 3.68)  # "seeds differ more than the two"
    for task in ("PointGoal1", "PointCircle1", "CarGoal1", "CarCircle1"):
        assert "return" not in cells[task, "evo"].differs
        assert "return" not in cells[task, "steingate"].differs


def test_how_often_each_preset_opens():
    shares, returns, over = {}, {}, {}
    for preset in ("paper", "released", "certified", "confident"):
        run = kept(f"gates/{preset}/steingate/SafetyPointGoal1-v0")
        tail = run.episodes["step"] > 0.8 * run.steps
        shares[preset] = np.mean(run.modes == 0)
        returns[preset] = run.episodes["return"][tail].mean()
        over[preset] = np.mean(run.episodes["cost"][tail] > run.limit)
        assert set(run.progress["Gate/Samples"]) == {16.0}
    assert shares.pop("confident") == 0.0
    assert 0.155 <= min(shares.values()) <= max(shares.values()) < 0.215
    for ranked in ({name: returns[name] for name in shares}, {name: over[name] for name in shares}):
        assert sorted(ranked, key=ranked.__getitem__) == ["paper", "released", "certified"]
    assert np.mean(kept("gates/confident/steingate/SafetyPointCircle1-v0").modes == 0) > 0.4


def test_a_claim_holds_in_part_where_one_of_its_parts_does():
    finding = docs_script("claims").Finding
    for parts, word in (((True, True), "yes"), ((True, False), "in part"), ((False, False), "no")):
        assert finding("", "", parts, "").holds == word


def test_every_figure_has_claims_and_those_that_fail_a_reason():
    found = docs_script("paper_claims").found()
    assert {each.where.split(",")[0] for each in found} == {
        "main figure", "figure on cost limits", "figure on references", "figure on episodes per epoch",
        "figure on velocity tasks", "figure on further baselines", "figure on variants of CPO",
    }  # fmt: skip
    for each in found:
        assert each.why or each.holds == "yes", each.claim


def finding(name: str, words: str):
    """The claim of a module of the page that has some words."""
    module = docs_script("paper_claims" if name in ("limits", "references", "samples") else "appendix_claims")
    (one,) = (each for each in getattr(module, name)() if words in each.claim)
    return one


# A claim, one of its parts, the rows (a column and what it has) and their cell that decide it: holds, fails.
CASES = [
    ("limits", "25 and 40", 1, "kind", "limit-40", "cost", "39", "41"),
    ("limits", "limit of 10", 0, "kind", "limit-10", "cost", "8", "7"),
    ("limits", "limit of 10", 1, "kind", "limit-10", "feasible_by_epoch", "0.9", "1"),
    ("limits", "rises", 1, "kind", "limit-40", "return", "99", "0"),
    ("references", "much the same", 0, "kind", "beta-1-10", "cost", "12.5", "8"),
    ("references", "earns less", 0, "kind", "beta-1-10", "return", "1", "30"),
    ("samples", "stay safe", 0, "kind", "episodes-8", "cost", "24", "26"),
    ("samples", "conservative", 0, "kind", "episodes-32", "return", "1", "30"),
    ("samples", "vary more", 0, "kind", "episodes-8", "cost_sd", "99", "0"),
    ("velocity", "becomes feasible", 1, "algo", "steingate", "feasible_by_epoch", "1", "0.97"),
    ("velocity", "becomes feasible", 2, "algo", "steingate", "feasible_by_episode", "0.95", "0.8"),
    ("velocity", "CPO oscillates", 0, "algo", "cpo", "feasible_by_epoch", "0.5", "1"),
    ("velocity", "EVO is safe", 1, "algo", "evo", "return", "-9", "9999"),
    ("velocity", "near the limit", 1, "algo", "trpo-(saute|simmer)", "cost", "20", "18"),
    ("velocity", "give up return", 0, "algo", "steingate", "return", "9999", "1"),
    ("baselines", "PPO-Lag and TRPO-Lag", 0, "algo", ".*-lag", "cost", "26", "24"),
    ("baselines", "by less", 0, "algo", ".*-lag", "cost", "99", "1"),
    ("baselines", "exceed it often", 0, "algo", "ppo-.*", "feasible_in_training", "0.5", "1"),
    ("variants", "stay near", 0, "algo", ".*cpo", "cost", "19", "18"),
    ("variants", "lower on every task", 0, "algo", ".*cpo", "cost", "99", "0"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "words", "part", "key", "pattern", "cell", "good", "bad"), CASES)
def test_a_claim_follows_its_numbers(monkeypatch, name, words, part, key, pattern, cell, good, bad):
    original = docs_script("kept").rows
    for value, expected in ((good, True), (bad, False)):

        def changed(*args, value=value, **wanted):
            return [
                row | {cell: value} if re.fullmatch(pattern, row[key]) else row
                for row in original(*args, **wanted)
            ]

        for module in ("paper_claims", "appendix_claims"):
            monkeypatch.setattr(docs_script(module), "rows", changed)
        assert finding(name, words).parts[part] is expected


def test_the_papers_settings_are_ours_and_those_of_the_kept_runs():
    settings = docs_script("paper_settings").settings()
    assert [each for each in settings if each.theirs != each.ours] == []
    assert len({(each.method, each.paper) for each in settings}) == len(settings) == 18
    for place in sorted((KEPT / "table1" / "steingate").rglob("config.json")):
        recipe = json.loads(place.read_text())["config"]["recipe"]
        assert (recipe["variant"], recipe["preset"], recipe["certificate"]) == ("published", "released", {})


def test_what_is_said_of_limits_samples_and_circle2():
    rows = docs_script("kept").rows
    over = [100.0 * (1.0 - float(row["feasible_by_episode"])) for row in rows(grid="circle2")]
    assert f"safe on average, {min(over):.0f} to {max(over):.0f} % of the episodes over" in TEXT
    group = [*rows(grid="samples"), *rows(grid="table1", algo="steingate", env="SafetyCarGoal1-v0", seed="0")]
    over = [100.0 * (1.0 - float(row["feasible_by_episode"])) for row in group]
    assert f"By the episode {min(over):.0f} to {max(over):.0f} % exceed the limit." in TEXT
    for row in (
        *rows(grid="limits"),
        *rows(grid="table1", algo="steingate", env="SafetyPointGoal1-v0", seed="0"),
    ):
        assert 0.4 < float(row["cost"]) / float(row["limit"]) < 0.6  # "about half of it"
    run = kept("circle2/steingate/SafetyPointCircle2-v0")
    late = run.progress["TotalEnvSteps"] > 7e6
    assert np.mean(run.recent["cost"][late] > run.limit) > np.mean(run.recent["cost"][~late][50:] > run.limit)


def test_what_opens_the_gate_with_each_reference():
    opened = {}
    for name, place in (("beta-2-5", "table1"), ("beta-1-10", "references/beta-1-10")):
        run = kept(f"{place}/steingate/SafetyPointGoal1-v0")
        open_epochs = run.modes == 0
        opened[name] = (np.mean(open_epochs), np.mean(open_epochs & (run.progress["Gate/Guarded"] == 0.0)))
    assert opened["beta-2-5"][1] == 0.0
    assert opened["beta-1-10"][1] > 0.0  # "its Stein bound can open the gate and at times does"
    assert opened["beta-1-10"][0] < opened["beta-2-5"][0]


def test_what_is_said_of_velocity_tasks():
    rows = docs_script("kept").rows

    def velocity(algo: str, robot: str) -> Run:
        return kept(f"velocity/{algo}/Safety{robot}Velocity-v1")

    def same(first: Run, second: Run) -> bool:
        return np.array_equal(first.episodes["return"], second.episodes["return"])

    assert same(velocity("steingate", "Humanoid"), velocity("cpo", "Humanoid"))
    assert set(velocity("steingate", "Humanoid").modes) == {0}
    robots = ("Ant", "HalfCheetah", "Humanoid", "Swimmer")
    equal = [robot for robot in robots if same(velocity("trpo-saute", robot), velocity("trpo-simmer", robot))]
    assert equal == ["Ant", "HalfCheetah", "Humanoid"]
    for algo in ("cpo", "evo", "trpo-saute", "trpo-simmer", "steingate"):
        assert velocity(algo, "Humanoid").progress["Epoch/EpLen"][-10:].mean() < 140
    over = {}
    for robot in robots:
        group = {row["algo"]: row for row in rows(grid="velocity", env=f"Safety{robot}Velocity-v1")}
        over[robot] = f"{100.0 * (1.0 - float(group['steingate']['feasible_by_episode'])):.0f} % "
        assert float(group["steingate"]["feasible_by_epoch"]) == 1.0
        assert (float(group["cpo"]["feasible_by_epoch"]) < 1.0) == (robot != "Humanoid")
        for name in ("cost", "return"):
            assert min(group, key=lambda algo: float(group[algo][name])) == "evo"
    said = f"{over['Ant']}over the limit on Ant, {over['HalfCheetah']}on HalfCheetah and {over['Swimmer']}on"
    assert said in TEXT
