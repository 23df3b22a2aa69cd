"""Which episodes of an epoch count: the rule, and what it does to the error of a certificate."""

from functools import cache

import numpy as np
import pytest
from steingate.certificates.bounds import clopper_pearson_upper
from steingate.gates.base import Episodes
from steingate.gates.sampling import count_episodes

from steingate.errors import InputError

LONGEST, RISK, DELTA = 1000, 0.1, 0.05


def made(start, log_ratio=None):
    start = np.asarray(start, dtype=np.int64)
    numbers = np.arange(len(start), dtype=np.float64)
    return Episodes(numbers, 10.0 + numbers, 100 + np.arange(len(start)), log_ratio, start)


def test_only_episodes_that_were_certain_to_finish_count():
    counted = count_episodes(made([0, 50, 51, 149, 20]), steps=150, longest=100)
    assert counted.unbiased
    np.testing.assert_array_equal(counted.episodes.cost, [0.0, 1.0, 4.0])
    np.testing.assert_array_equal(counted.episodes.ret, [10.0, 11.0, 14.0])
    np.testing.assert_array_equal(counted.episodes.length, [100, 101, 104])
    np.testing.assert_array_equal(counted.episodes.start, [0, 50, 20])


def test_episodes_of_fixed_length_all_count():
    episodes = made([0, 0, 100, 100])
    assert count_episodes(episodes, 200, 100) == (episodes, True)
    assert count_episodes(episodes, 250, 100) == (episodes, True)


def test_an_epoch_as_long_as_an_episode_counts_the_first_of_each_environment():
    counted = count_episodes(made([0, 30, 0, 90]), steps=100, longest=100)
    np.testing.assert_array_equal(counted.episodes.cost, [0.0, 2.0])


def test_carried_episodes_are_left_out():
    counted = count_episodes(made([-70, 30, 40]), steps=200, longest=100)
    assert counted.unbiased
    np.testing.assert_array_equal(counted.episodes.cost, [1.0, 2.0])


@pytest.mark.parametrize(
    ("episodes", "steps", "longest"),
    [
        (made([0, 50]), 99, 100),
        (made([0, 50]), 100, None),
        (made([0, 50])._replace(start=None), 100, 50),
        (made([-70, 90]), 100, 100),
    ],
)
def test_where_the_rule_cannot_apply_all_count_and_it_says_so(episodes, steps, longest):
    counted = count_episodes(episodes, steps, longest)
    assert counted.episodes is episodes
    assert not counted.unbiased


def test_no_episode_is_no_trouble():
    assert len(count_episodes(made([]), 100, 50).episodes.cost) == 0


def test_remembered_ratios_stay_and_those_of_the_epoch_follow_the_choice():
    ratio = np.array([-1.0, -2.0, 0.1, 0.2, 0.3])
    counted = count_episodes(made([0, 140, 20], ratio), steps=150, longest=100)
    np.testing.assert_array_equal(counted.episodes.log_ratio, [-1.0, -2.0, 0.1, 0.3])


@pytest.mark.parametrize(
    ("steps", "longest", "named"), [(0, 10, "steps is 0"), (10, 0, "longest is 0"), (10, 5, "2 starts for 1")]
)
def test_bad_input_is_named(steps, longest, named):
    wrong = Episodes(np.zeros(1), np.zeros(1), np.ones(1, np.int64), None, np.zeros(2, np.int64))
    with pytest.raises(InputError, match=named):
        count_episodes(wrong, steps, longest)


@cache
def bound(violations, n):
    return clopper_pearson_upper(violations, n, DELTA)


def epoch(rng, envs, steps, early):
    """Return the finished episodes of an epoch: a share ends early and is safe, the rest may violate."""
    most = 2 + steps // 50
    short = rng.random((envs, most)) < early
    length = np.where(short, rng.integers(50, 200, (envs, most)), LONGEST)
    cost = np.where(~short & (rng.random((envs, most)) < RISK / (1.0 - early)), 60.0, 0.0)
    end = np.cumsum(length, axis=1)
    done = end <= steps
    return Episodes(cost[done], cost[done], length[done], None, (end - length)[done])


def errors(envs, steps, early, repeats, seed):
    """Return how often a certificate's bound is below the true risk: all episodes counted, and ours."""
    rng = np.random.default_rng(seed)
    wrong = np.zeros(2)
    for _ in range(repeats):
        everything = epoch(rng, envs, steps, early)
        for rule, counted in enumerate((everything, count_episodes(everything, steps, LONGEST).episodes)):
            wrong[rule] += bound(int((counted.cost > 25.0).sum()), len(counted.cost)) < RISK
    return wrong / repeats


@pytest.mark.parametrize(
    ("envs", "steps", "low", "high"),
    [(8, 2500, 0.04, 0.16), (16, 1250, 0.10, 0.45), (40, 1000, 0.47, 1.00)],
)
@pytest.mark.parametrize("early", [0.7, 0.8])
def test_counting_whatever_finished_is_wrong_too_often_and_counting_by_start_is_not(envs, steps, low, high, early):
    """Risk 0.1, delta 0.05: 8 x 2500, 16 x 1250 and 40 x 1000 steps with episodes of up to 1000."""
    all_counted, by_start = errors(envs, steps, early, 1500, seed=envs)
    assert low <= all_counted <= high
    assert by_start <= DELTA
