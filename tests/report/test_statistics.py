"""Statistics against SciPy, rliable, brute force and exact distributions."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, ecdf, mannwhitneyu, norm, trim_mean

from steingate.report.statistics import (
    bootstrap,
    cvar,
    feasible_return,
    interquartile_mean,
    probability_of_improvement,
    tail_feasibility,
    violation_rate,
    window_cvar,
    window_means,
)
from steingate.report.summary import THRESHOLDS, aggregate

COSTS = st.lists(st.integers(0, 60), min_size=1, max_size=40)
RLIABLE = json.loads((Path(__file__).parents[1] / "data" / "rliable.json").read_text())
TASKS = [np.array([0.1, 0.9, 0.4]), np.array([1.3, 0.2]), np.array([0.75])]


# Episodes and epochs


def mean(scores):
    return np.concatenate(scores, axis=-1).mean(axis=-1)


def test_windows_contain_the_last_episodes_by_the_end_of_each_epoch():
    rng = np.random.default_rng(0)
    counts = [0, 3, 0, 7, 1, 0, 12, 2]
    epoch = np.repeat(np.arange(len(counts)), counts)
    values = rng.normal(size=len(epoch))
    means = window_means(values, epoch, len(counts), window=5)
    tails = window_cvar(values, epoch, len(counts), window=5)
    for index in range(len(counts)):
        queue = [value for value, when in zip(values, epoch, strict=True) if when <= index][-5:]
        if queue:
            assert means[index] == pytest.approx(np.mean(queue))
            assert tails[index] == pytest.approx(cvar(queue, 0.9))
        else:
            assert np.isnan([means[index], tails[index]]).all()


def test_feasibility_by_epoch_and_by_episode():
    # Two epochs of four episodes: the mean of the first is within the limit although an episode is not.
    cost, ret, epoch = np.array([0.0, 0, 0, 60, 30, 30, 30, 30]), np.arange(8.0), np.repeat([0, 1], 4)
    means = window_means(cost, epoch, 2, window=4)
    assert tail_feasibility(means, 25.0) == 0.5
    assert feasible_return(window_means(ret, epoch, 2, 4), means, 25.0) == 1.5
    assert tail_feasibility(cost, 25.0) == 3 / 8
    assert feasible_return(ret, cost, 25.0) == 1.0
    assert (tail_feasibility([25.0], 25.0), violation_rate([25.0], 25.0)) == (1.0, 0.0)


@given(COSTS, st.sampled_from([0.5, 0.9, 0.95]))
def test_cvar_solves_its_variational_problem(cost, level):
    # Rockafellar and Uryasev: CVaR = min over u of u + E[(C - u)+] / (1 - level), attained at a sample.
    cost = np.array(cost, float)
    least = min(u + np.maximum(cost - u, 0.0).mean() / (1 - level) for u in cost)
    assert cvar(cost, level) == pytest.approx(least)


# Scores of seeds


@pytest.mark.parametrize("size", range(1, 14))
def test_interquartile_mean_is_scipys_trimmed_mean(size):
    scores = np.random.default_rng(size).normal(size=(3, size))
    np.testing.assert_allclose(interquartile_mean([scores]), trim_mean(scores, 0.25, axis=1))


def test_bootstrap_of_two_scores_is_exact():
    """Resampled means of (0, 1) are 0, 1/2 and 1 with probabilities 1/4, 1/2 and 1/4; one score has no interval."""
    assert bootstrap([[0.0, 1.0]], mean) == (0.5, 0.0, 1.0)
    found = bootstrap([[0.0] * 10 + [1.0] * 10], mean, draws=20_000)  # binomial
    assert found == pytest.approx((0.5, *np.array(binom(20, 0.5).interval(0.95)) / 20))
    assert np.isnan(bootstrap([[1.0]], mean)[1:]).all()


def test_bootstrap_of_many_scores_is_normal():
    scores = np.random.default_rng(2).normal(size=400)
    found = bootstrap([scores], mean, draws=8000)
    radius = norm.ppf(0.975) * scores.std() / np.sqrt(len(scores))
    assert [found.high - found.value, found.value - found.low] == pytest.approx([radius, radius], rel=0.06)


@pytest.mark.parametrize("name", ["x", "y"])
@pytest.mark.parametrize(("key", "statistic"), [("iqm", interquartile_mean), ("mean", mean)])
def test_intervals_agree_with_rliable(name, key, statistic):
    found = bootstrap(list(np.array(RLIABLE[name]).T), statistic, draws=20_000)
    value, low, high = RLIABLE[key][name]
    assert found.value == pytest.approx(value, rel=1e-12)
    # Both have the noise of their resampling, about 0.02 of the interval at 4000 draws.
    assert [found.low, found.high] == pytest.approx([low, high], abs=0.05 * (high - low))


def test_probability_of_improvement_agrees_with_rliable():
    x, y = (list(np.array(RLIABLE[name]).T) for name in "xy")
    found = probability_of_improvement(x, y, draws=10_000)
    value, low, high = RLIABLE["improvement"]
    assert found.value == pytest.approx(value, rel=1e-12)
    assert [found.low, found.high] == pytest.approx([low, high], abs=0.06 * (high - low))


def test_probability_of_improvement_counts_pairs():
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 5, 9).astype(float), rng.integers(0, 5, 6).astype(float)
    found = probability_of_improvement([x], [y], draws=10).value
    assert found == pytest.approx(np.mean([(a > b) + 0.5 * (a == b) for a, b in product(x, y)]))
    assert found == pytest.approx(mannwhitneyu(x, y).statistic / (len(x) * len(y)))


@pytest.mark.parametrize("name", ["iqm", "median", "gap"])
def test_intervals_are_those_of_all_resamples(name):
    """Two tasks of three and two seeds have 27 x 4 equally probable resamples."""
    tasks = TASKS[:2]
    every = []
    for first in product(tasks[0], repeat=3):
        for second in product(tasks[1], repeat=2):
            flat = [*first, *second]
            values = {
                "iqm": trim_mean(flat, 0.25),
                "median": (sum(first) / 3 + sum(second) / 2) / 2,
                "gap": sum(max(1.0 - score, 0.0) for score in flat) / 5,
            }
            every.append(values[name])
    estimate = getattr(aggregate(tasks, draws=40_000), name)
    for level, bound in ((0.025, estimate.low), (0.975, estimate.high)):
        # The probability that a resample is below, and at most at, the bound encloses the level.
        assert np.mean(np.array(every) < bound - 1e-9) <= level + 0.004
        assert np.mean(np.array(every) <= bound + 1e-9) >= level - 0.004


def test_aggregates_are_those_of_scipy_and_of_loops():
    found, flat = aggregate(TASKS), np.concatenate(TASKS)
    assert found.iqm.value == pytest.approx(trim_mean(flat, 0.25))
    assert found.median.value == pytest.approx(sorted(sum(scores) / len(scores) for scores in TASKS)[1])
    assert found.gap.value == pytest.approx(sum(1.0 - score for score in flat if score < 1.0) / len(flat))
    np.testing.assert_allclose(found.profile, ecdf(flat).sf.evaluate(THRESHOLDS))


def test_band_of_a_profile_is_binomial_within_one_task():
    """10 of 40 seeds score above one half: the number in a resample is binomial."""
    scores = np.concatenate([np.full(10, 0.8), np.full(30, 0.3)])
    found, place = aggregate([scores], draws=20_000), int(np.argmin(abs(THRESHOLDS - 0.5)))
    assert found.profile[place] == pytest.approx(0.25)
    exact = binom(40, 0.25).interval(0.95)
    assert [40 * found.low[place], 40 * found.high[place]] == pytest.approx(exact, abs=1.0)
