"""The recorded speeds and the model that makes a run's speed of them."""

import csv
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.experiments.test_grids import runs_of

from steingate.algorithms import METHODS
from steingate.algorithms.common.recipe import NaturalGradient, Recipe
from steingate.algorithms.lagrangian import PPOLag
from steingate.experiments.expected import (
    BASE_METHOD,
    BASE_TASK,
    Speeds,
    probe_seconds,
    recorded_speeds,
    slowness,
)
from steingate.experiments.grid import BUILT_IN
from steingate.tasks.catalog import TASKS
from steingate.training.config import RunConfig, make_config

SPEEDS = Speeds(
    probe=0.5,
    start=8.0,
    epoch=0.04,
    tasks={BASE_TASK: 20.0, "SafetyAntVelocity-v1": 100.0},
    methods={BASE_METHOD: 20.0, "ppo-lag": 60.0, "evo": 25.0},
    passes={"ppo-lag": 40},
)


@dataclass(frozen=True)
class OwnSecond(NaturalGradient):
    """A method of one's own with a natural gradient."""


@dataclass(frozen=True)
class OwnFirst(PPOLag):
    """A method of one's own with passes."""

    about = replace(PPOLag.about, name="")


@dataclass(frozen=True)
class OwnKind(Recipe):
    """A method like no other."""


def micro(env, algo, **settings):
    """Microseconds per step."""
    step = SPEEDS.step(make_config({"env": env, "algo": algo, **settings}))
    return None if step is None else step * 1e6


def test_a_pair_takes_what_its_task_takes_and_what_its_method_needs_beyond_the_base():
    assert micro(BASE_TASK, "cpo") == pytest.approx(20 + 2)  # 0.04 s over 20,000 steps
    assert micro("SafetyAntVelocity-v1", "cpo") == pytest.approx(100 + 2)
    assert micro("steingate/SafetyAntVelocity-v1", "evo") == pytest.approx(100 + 5 + 2)


def test_small_epochs_and_more_passes_take_longer():
    assert micro(BASE_TASK, "cpo", steps_per_epoch=400) == pytest.approx(20 + 100)
    assert micro(BASE_TASK, "ppo-lag") == pytest.approx(60 + 2)
    assert micro(BASE_TASK, "ppo-lag", **{"clipped.passes": 80}) == pytest.approx(120 + 2)


def test_unknown_tasks_are_unknown_and_own_methods_count_as_their_family():
    assert micro("my.module:Task", "cpo") is None
    for own, like in ((OwnSecond, 20), (OwnFirst, 60)):
        cfg = RunConfig(env=BASE_TASK, algo=own())
        assert cfg.algo.name not in METHODS
        assert SPEEDS.step(cfg) == pytest.approx((like + 2) * 1e-6)
    assert SPEEDS.step(RunConfig(env=BASE_TASK, algo=OwnKind())) is None


def test_every_recorded_task_has_a_speed_with_every_method():
    speeds = recorded_speeds()
    assert set(speeds.tasks) <= set(TASKS)
    assert set(speeds.methods) <= set(METHODS)
    assert {run.env for name in BUILT_IN for run in runs_of(name)} <= set(speeds.tasks)
    assert min(speeds.probe, speeds.start) > 0.0
    assert speeds.epoch >= 0.0
    for task in speeds.tasks:
        for method in METHODS:
            for variant in ("published", "corrected"):
                cfg = make_config({"env": task, "algo": method, "variant": variant})
                assert 0.0 < speeds.step(cfg) < 0.01, (task, method)


def test_passes_are_those_that_were_recorded():
    for name, passes in recorded_speeds().passes.items():
        assert make_config({"env": BASE_TASK, "algo": name}).algo.clipped.passes == passes


def test_the_probe_is_work():
    assert probe_seconds() > 0.0
    assert slowness() > 0.0


def test_the_expectation_is_about_what_was_measured():
    """The kept measurement of whole runs side by side, on the machine of the recorded speeds."""
    file = Path(__file__).parents[2] / "results" / "bench_grid.csv"
    if not file.exists():
        pytest.skip("not measured yet: python benchmarks/bench_grid.py")
    speeds = recorded_speeds()
    with file.open(newline="") as lines:
        for row in csv.DictReader(lines):
            steps = int(row["steps"])
            settings = {"env": row["task"], "algo": row["algo"], "variant": "published", "total_steps": steps}
            expected = speeds.start + steps * speeds.step(make_config(settings))
            assert 0.5 < expected / float(row["side_by_side_s"]) < 2.0, row["task"]
