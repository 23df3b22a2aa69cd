"""What docs/reproduction.md says in words is what the kept runs say."""

from pathlib import Path

import numpy as np
import pytest
from tests.docs.scripts import docs_script

from steingate.report.loading import Run, load_run

KEPT = Path(__file__).parents[2] / "results" / "kept"


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


def test_single_seeds_that_are_named():
    assert column("trpo-simmer", "PointCircle1", "feasible_by_epoch") == [0.99, 1.0, 1.0]
    assert min(column("trpo-saute", "PointCircle1", "feasible_by_epoch")) == 0.75
    assert min(column("evo", "PointCircle1", "feasible_by_epoch")) == 0.72
    low, *rest = sorted(column("steingate", "CarCircle1", "feasible_by_epoch"))
    assert low == 0.76
    assert min(rest) > 0.98
    assert np.round(column("evo", "PointGoal1", "return_by_epoch"), 1).tolist() == [0.1, 1.7, 2.1]
    stein = column("steingate", "PointGoal1", "return_by_epoch")
    assert (round(min(stein), 1), round(max(stein), 1)) == (11.9, 15.6)


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
