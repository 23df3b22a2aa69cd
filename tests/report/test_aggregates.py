"""Aggregates over tasks against brute force, SciPy and numbers worked out by hand."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import ecdf, trim_mean
from steingate.report.aggregates import (
    THRESHOLDS,
    aggregate,
    optimality_gap,
    overall,
    performance_profile,
    task_median,
)
from steingate.report.evidence import gather
from tests.report.made_up import write_run

TASKS = [np.array([0.1, 0.9, 0.4]), np.array([1.3, 0.2]), np.array([0.75])]


def test_values_are_those_of_scipy_and_of_plain_loops():
    found, flat = aggregate(TASKS), np.concatenate(TASKS)
    assert found.iqm.value == pytest.approx(trim_mean(flat, 0.25))
    assert found.median.value == pytest.approx(sorted(sum(scores) / len(scores) for scores in TASKS)[1])
    assert found.gap.value == pytest.approx(sum(1.0 - score for score in flat if score < 1.0) / len(flat))
    np.testing.assert_allclose(found.profile, ecdf(flat).sf.evaluate(THRESHOLDS))


def test_the_area_under_the_profile_is_the_mean_and_above_it_the_gap():
    scores = [np.array([0.13, 0.52, 0.97]), np.array([0.31, 0.88])]
    fine = np.linspace(0.0, 1.0, 100_001)
    area = performance_profile(scores, fine)[:-1].mean()
    assert area == pytest.approx(np.mean(np.concatenate(scores)), abs=1e-4)
    assert 1.0 - area == pytest.approx(float(optimality_gap(scores)), abs=1e-4)


@pytest.mark.parametrize("name", ["iqm", "median", "gap"])
def test_intervals_are_those_of_all_resamples_counted_one_by_one(name):
    """Two tasks of three and two seeds have 27 x 4 equally probable resamples."""
    tasks = [np.array([0.1, 0.9, 0.4]), np.array([1.3, 0.2])]
    every = []
    for first in product(tasks[0], repeat=3):
        for second in product(tasks[1], repeat=2):
            flat = [*first, *second]
            every.append(
                {
                    "iqm": trim_mean(flat, 0.25),
                    "median": (sum(first) / 3 + sum(second) / 2) / 2,
                    "gap": sum(max(1.0 - score, 0.0) for score in flat) / 5,
                }[name]
            )
    estimate = getattr(aggregate(tasks, draws=40_000), name)
    for level, bound in ((0.025, estimate.low), (0.975, estimate.high)):
        # The probability that a resample is below, and at most at, the bound encloses the level.
        assert np.mean(np.array(every) < bound - 1e-9) <= level + 0.004
        assert np.mean(np.array(every) <= bound + 1e-9) >= level - 0.004


def test_the_band_of_a_profile_is_binomial_within_one_task():
    """Of 40 seeds 10 score above one half: a resample has a binomial number of them."""
    from scipy.stats import binom

    scores = np.concatenate([np.full(10, 0.8), np.full(30, 0.3)])
    found, place = aggregate([scores], draws=20_000), int(np.argmin(abs(THRESHOLDS - 0.5)))
    assert found.profile[place] == pytest.approx(0.25)
    law = binom(40, 0.25)
    assert [40 * found.low[place], 40 * found.high[place]] == pytest.approx(law.interval(0.95), abs=1.0)


def test_resamples_never_cross_tasks():
    found = aggregate([[0.2, 0.2, 0.2], [0.8, 0.8, 0.8]])
    for estimate in (found.iqm, found.median, found.gap):
        assert (estimate.low, estimate.high) == pytest.approx((estimate.value, estimate.value))


def test_one_seed_per_task_has_no_interval():
    found = aggregate([[0.5], [0.7]])
    assert np.isnan([found.iqm.low, found.gap.high, *found.low, *found.high]).all()
    assert found.median.value == pytest.approx(0.6)


def test_statistics_work_on_many_resamples_at_once():
    drawn = [np.random.default_rng(0).random((7, 3)), np.random.default_rng(1).random((7, 2))]
    for statistic in (task_median, optimality_gap, lambda part: performance_profile(part, THRESHOLDS)):
        rows = [statistic([part[i] for part in drawn]) for i in range(7)]
        np.testing.assert_allclose(statistic(drawn), rows)


def test_scores_of_runs_are_relative_to_the_best_method_of_each_task(tmp_path):
    for algo in ("steingate", "cpo"):
        for seed in (0, 1):
            for env in ("SafetyPointGoal1-v0", "SafetyPointCircle1-v0"):
                write_run(tmp_path, algo, env, seed=seed)
    write_run(tmp_path, "evo", "SafetyPointGoal1-v0")
    evidence = gather([tmp_path])
    found = overall(evidence.groups)
    assert [item.group.algo for item in found.standings] == ["cpo", "steingate"]
    assert list(found.missing) == ["evo"]
    assert not found.unscaled
    means, shares = {}, {}
    for run in evidence.runs:
        late = run.episodes["epoch"] >= 16
        means.setdefault((run.env, run.algo), []).append(run.episodes["return"][late].mean())
        shares.setdefault(run.algo, []).append((run.episodes["cost"][late] <= 25.0).mean())
    for env, scale in found.scales.items():
        assert scale == pytest.approx(max(np.mean(m) for (task, _), m in means.items() if task == env))
    for item in found.standings:
        scores = [np.array(means[env, item.group.algo]) / scale for env, scale in found.scales.items()]
        assert item.ret.iqm.value == pytest.approx(trim_mean(np.concatenate(scores), 0.25))
        assert item.safety.gap.value == pytest.approx(1.0 - np.mean(shares[item.group.algo]))


def test_a_task_without_a_positive_return_has_no_scale(tmp_path, monkeypatch):
    from steingate.report import aggregates
    from steingate.report.summary import Point

    write_run(tmp_path, "cpo", "SafetyPointGoal1-v0")
    write_run(tmp_path, "cpo", "SafetyPointCircle1-v0")
    groups = gather([tmp_path]).groups
    monkeypatch.setattr(aggregates, "tail_point", lambda run: Point(3.0 if "Goal" in run.env else -3.0, 0.0))
    found = overall(groups)
    assert found.scales == {"SafetyPointGoal1-v0": 3.0}
    assert found.unscaled == ["SafetyPointCircle1-v0"]
    monkeypatch.setattr(aggregates, "tail_point", lambda run: Point(-1.0, 0.0))
    assert not overall(groups).standings
