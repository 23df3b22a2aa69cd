"""Moving averages, CVaR, and which episodes of an epoch count: the rule, and what it does to a certificate's error."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from tests.algorithms.problems import episodes

from steingate.algorithms.base import Episodes
from steingate.algorithms.common.episodes import RecentEpisodes, append_window, complete_episodes, cvar
from steingate.certificates.violation import clopper_pearson_upper

LONGEST, RISK, DELTA = 1000, 0.1, 0.05


def test_the_window_has_the_last_values():
    np.testing.assert_array_equal(append_window(np.array([1.0, 2.0]), np.array([3.0, 4.0]), 3), [2.0, 3.0, 4.0])
    recent = RecentEpisodes().extend(episodes([5, 15], 500), 3).extend(episodes([35, 45], 1000), 3)
    np.testing.assert_array_equal(recent.costs, [15.0, 35.0, 45.0])
    assert recent.per_step(10.0) == pytest.approx(10.0 / np.mean([500, 1000, 1000]))
    assert RecentEpisodes().per_step(10.0) == 0.0
    assert RecentEpisodes().per_step(-10.0) == -10.0


@given(st.lists(st.floats(0, 100), min_size=1, max_size=40), st.floats(0.05, 1.0))
def test_cvar_is_the_minimum_over_thresholds(costs, tail):
    costs = np.array(costs)
    value, threshold = cvar(costs, tail)
    levels = np.append(costs, 0.0)
    objective = levels + np.maximum(costs[None] - levels[:, None], 0.0).mean(axis=1) / tail
    assert value == pytest.approx(objective.min(), abs=1e-9)
    assert threshold in costs
    found = minimize_scalar(lambda u: u + np.maximum(costs - u, 0).mean() / tail, bounds=(0, 100), method="bounded")
    assert value <= found.fun + 1e-6


def started(start):
    start = np.asarray(start, dtype=np.int64)
    numbers = np.arange(len(start), dtype=np.float64)
    return Episodes(numbers, 10.0 + numbers, 100 + np.arange(len(start)), start)


def test_only_episodes_that_were_certain_to_finish_count():
    counted, unbiased = complete_episodes(started([0, 50, 51, 149, 20]), steps=150, longest=100)
    assert unbiased
    np.testing.assert_array_equal(counted.cost, [0.0, 1.0, 4.0])
    np.testing.assert_array_equal(counted.ret, [10.0, 11.0, 14.0])
    np.testing.assert_array_equal(counted.length, [100, 101, 104])
    np.testing.assert_array_equal(counted.start, [0, 50, 20])


@pytest.mark.parametrize(
    ("start", "steps", "costs"),
    [
        ([0, 0, 100, 100], 200, [0.0, 1.0, 2.0, 3.0]),  # fixed length: all
        ([0, 0, 100, 100], 250, [0.0, 1.0, 2.0, 3.0]),
        ([0, 30, 0, 90], 100, [0.0, 2.0]),  # an epoch as long as an episode: the first of each environment
        ([-70, 30, 40], 200, [1.0, 2.0]),  # not those of the epoch before
        ([], 200, []),
    ],
)
def test_selected_episodes(start, steps, costs):
    counted, unbiased = complete_episodes(started(start), steps, 100)
    assert unbiased
    np.testing.assert_array_equal(counted.cost, costs)


@pytest.mark.parametrize(
    ("finished", "steps", "longest"),
    [
        (started([0, 50]), 99, 100),
        (started([0, 50]), 100, None),
        (started([0, 50])._replace(start=None), 100, 50),
        (started([-70, 90]), 100, 100),
    ],
)
def test_all_episodes_count_where_no_unbiased_selection_exists(finished, steps, longest):
    assert complete_episodes(finished, steps, longest) == (finished, False)


@cache
def bound(violations, n):
    return clopper_pearson_upper(violations, n, 1.0 - DELTA)


def simulated_epoch(rng, envs, steps, early):
    """Finished episodes of an epoch: a fraction ends early without cost, the others may violate the limit."""
    most = 2 + steps // 50
    short = rng.random((envs, most)) < early
    length = np.where(short, rng.integers(50, 200, (envs, most)), LONGEST)
    cost = np.where(~short & (rng.random((envs, most)) < RISK / (1.0 - early)), 60.0, 0.0)
    end = np.cumsum(length, axis=1)
    done = end <= steps
    return Episodes(cost[done], cost[done], length[done], (end - length)[done])


@pytest.mark.parametrize(
    ("envs", "steps", "low", "high"), [(8, 2500, 0.04, 0.16), (16, 1250, 0.10, 0.45), (40, 1000, 0.47, 1.00)]
)
@pytest.mark.parametrize("early", [0.7, 0.8])
def test_counting_all_finished_episodes_breaks_a_certificate_and_complete_ones_do_not(envs, steps, low, high, early):
    """How often the 95 % bound is below the true risk 0.1, in 1500 simulated epochs."""
    rng = np.random.default_rng(envs)
    errors = np.zeros(2)
    for _ in range(1500):
        finished = simulated_epoch(rng, envs, steps, early)
        for rule, counted in enumerate((finished, complete_episodes(finished, steps, LONGEST)[0])):
            errors[rule] += bound(int((counted.cost > 25.0).sum()), len(counted.cost)) < RISK
    all_finished, complete = errors / 1500
    assert low <= all_finished <= high
    assert complete <= DELTA
