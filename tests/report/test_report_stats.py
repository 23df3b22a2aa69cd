import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from steingate.report.stats import (
    cvar,
    dwell_times,
    exceedance,
    feasible_return,
    stretches,
    switches,
    tail_feasibility,
    tail_start,
    violations,
    window_means,
    worst,
)

from steingate.gates.base import Mode

COSTS = st.lists(st.integers(0, 60), min_size=1, max_size=40)


@pytest.mark.parametrize(
    ("epochs", "share", "start"),
    [
        (500, 0.2, 400),
        (15, 0.2, 12),
        (10, 0.2, 8),
        (9, 0.2, 8),
        (4, 0.2, 3),
        (1, 0.2, 0),
        (0, 0.2, 0),
        (7, 1.0, 0),
    ],
)
def test_the_tail_is_the_last_fifth_and_at_least_one_epoch(epochs, share, start):
    assert tail_start(epochs, share) == start


def test_window_means_are_what_a_bounded_queue_would_hold():
    rng = np.random.default_rng(0)
    counts = [0, 3, 0, 7, 1, 0, 12, 2]
    epoch = np.repeat(np.arange(len(counts)), counts)
    values = rng.normal(size=len(epoch))
    means = window_means(values, epoch, len(counts), window=5)
    for index in range(len(counts)):
        queue = [value for value, when in zip(values, epoch, strict=True) if when <= index][-5:]
        if queue:
            assert means[index] == pytest.approx(np.mean(queue))
        else:
            assert np.isnan(means[index])


def test_both_readings_of_feasibility_on_a_case_by_hand():
    # Two epochs of four episodes: the mean forgives what single episodes do not.
    cost = np.array([0.0, 0, 0, 60, 30, 30, 30, 30])
    ret = np.arange(8.0)
    epoch = np.repeat([0, 1], 4)
    means = window_means(cost, epoch, 2, window=4)
    assert tail_feasibility(means, 25.0) == 0.5
    assert feasible_return(window_means(ret, epoch, 2, 4), means, 25.0) == 1.5
    assert tail_feasibility(cost, 25.0) == 3 / 8
    assert feasible_return(ret, cost, 25.0) == 1.0


def test_a_cost_at_the_limit_is_feasible():
    assert tail_feasibility([25.0], 25.0) == 1.0
    assert exceedance([25.0], 25.0) == 0.0
    assert violations([25.0], 25.0).count == 0


@given(COSTS, st.integers(0, 60))
def test_feasible_and_exceeding_shares_add_up(cost, limit):
    assert tail_feasibility(cost, limit) + exceedance(cost, limit) == pytest.approx(1.0)


@given(COSTS, st.sampled_from([0.5, 0.9, 0.95]))
def test_cvar_solves_its_variational_problem(cost, level):
    # Rockafellar and Uryasev: CVaR = min over u of u + E[(C - u)+] / (1 - level), attained at a sample.
    cost = np.array(cost, float)
    least = min(u + np.maximum(cost - u, 0.0).mean() / (1 - level) for u in cost)
    assert cvar(cost, level) == pytest.approx(least)


def test_cvar_of_a_known_law():
    # The mean of an exponential law above its quantile is the quantile plus the mean.
    x = -np.log1p(-(np.arange(200_000) + 0.5) / 200_000)
    for level in (0.9, 0.95):
        assert cvar(x, level) == pytest.approx(1.0 - np.log(1 - level), abs=1e-3)
    found = minimize_scalar(
        lambda u: u + np.maximum(x - u, 0.0).mean() / 0.1, bounds=(0, 10), method="bounded"
    )
    assert cvar(x, 0.9) == pytest.approx(found.fun, abs=1e-6)


def test_violations_count_and_weigh():
    found = violations([0.0, 30.0, 25.0, 45.0], 25.0)
    assert (found.count, found.share) == (2, 0.5)
    assert (found.mean_excess, found.max_excess, found.total_excess) == (12.5, 20.0, 25.0)
    none = violations([1.0], 25.0)
    assert (none.count, none.share, none.mean_excess, none.total_excess) == (0, 0.0, 0.0, 0.0)


def test_nothing_seen_is_unknown_not_safe():
    assert np.isnan(tail_feasibility([], 1.0))
    assert np.isnan(exceedance([], 1.0))
    assert np.isnan(cvar([], 0.9))
    assert np.isnan(worst([]))
    assert np.isnan(violations([], 1.0).share)
    assert np.isnan(feasible_return([1.0], [2.0], 1.0))
    assert tail_feasibility([np.nan, 0.0], 1.0) == 1.0
    assert worst([3.0, np.nan, 7.0]) == 7.0


MODES = st.lists(st.integers(0, 2), max_size=60)


def test_a_sequence_by_hand():
    modes = [2, 2, 2, 0, 2, 0, 0]
    assert stretches(modes) == [(2, 0, 3), (0, 3, 1), (2, 4, 1), (0, 5, 2)]
    assert switches(modes) == 3
    dwell = dwell_times(modes)
    assert list(dwell) == [Mode.IMPROVE, Mode.RECOVER]
    recover = dwell[Mode.RECOVER]
    assert (recover.stretches, recover.mean, recover.longest) == (2, 2.0, 3)
    assert recover.share == pytest.approx(4 / 7)


def test_nothing_gives_nothing():
    assert stretches([]) == []
    assert switches([]) == 0
    assert dwell_times([]) == {}


@given(MODES)
def test_stretches_rebuild_the_sequence(modes):
    runs = stretches(modes)
    assert np.concatenate([[mode] * length for mode, _, length in runs] or [[]]).tolist() == modes
    assert switches(modes) == max(len(runs) - 1, 0)
    assert sum(dwell.share for dwell in dwell_times(modes).values()) == pytest.approx(1.0 if modes else 0.0)
    assert sum(dwell.mean * dwell.stretches for dwell in dwell_times(modes).values()) == pytest.approx(
        len(modes)
    )


def test_dwell_times_of_a_fair_coin_are_geometric():
    modes = 2 * np.random.default_rng(0).integers(0, 2, 100_000)
    assert dwell_times(modes)[Mode.RECOVER].mean == pytest.approx(2.0, abs=0.05)
    assert switches(modes) / len(modes) == pytest.approx(0.5, abs=0.01)
