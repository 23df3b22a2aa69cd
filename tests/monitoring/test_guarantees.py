"""Claims of the monitor, simulated or computed exactly: errors at most delta, and the episodes it takes."""

from math import log

import numpy as np
import pytest
from tests.monitoring.walks import chance_certified

from steingate.monitoring.monitor import Monitor
from steingate.monitoring.tail import Tail
from steingate.monitoring.wealth import bets_below

LIMIT, DELTA = 25.0, 0.05


def two_point(p):
    return lambda rng, n: np.where(rng.random(n) < p, 40.0, 5.0)


def integers(rng, n):
    return rng.poisson(18.0, n).astype(float)


def heavy(rng, n):
    return np.where(rng.random(n) < 0.8, 0.0, np.round(rng.exponential(30.0, n)))


def pareto(rng, n):
    return 4.0 * (1.0 + rng.pareto(1.2, n))


def smooth(rng, n):
    return 50.0 * rng.beta(2.0, 5.0, n)


def near(rng, n):
    return LIMIT + rng.normal(-2.0, 1.5, n).clip(-20.0, 20.0)


LAWS = {
    "two-point": two_point(0.1),
    "rare": two_point(0.01),
    "integers": integers,
    "heavy mixture": heavy,
    "pareto": pareto,
    "smooth": smooth,
    "near the limit": near,
}


def truth(law, function):
    """Mean of a function of the cost, from four million draws."""
    rng = np.random.default_rng(99)
    return float(np.mean([np.mean(function(law(rng, 500_000))) for _ in range(8)]))


def hard_errors(law, runs, steps, seed):
    """Number of runs in which the bound on P(cost > limit) was below the truth at some step.

    The bound is below p exactly when a budget of p is certified, so a monitor with that budget checks all.
    """
    rng = np.random.default_rng(seed)
    p = truth(law, lambda c: c > LIMIT)
    errors = 0
    for _ in range(runs):
        monitor = Monitor(LIMIT, p, DELTA)
        monitor.update_many(law(rng, steps))
        errors += monitor.certified
    return errors


def allowed(runs):
    """Largest number of errors that chance explains when the error is exactly delta (four deviations)."""
    return DELTA * runs + 4 * (DELTA * (1 - DELTA) * runs) ** 0.5


@pytest.mark.parametrize("name", LAWS)
def test_coverage_under_a_look_at_every_step(name):
    assert hard_errors(LAWS[name], 150, 2_000, 1) <= allowed(150)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_coverage_under_a_look_at_each_of_ten_thousand_steps(name):
    assert hard_errors(LAWS[name], 2_000, 10_000, 2) <= allowed(2_000)


def test_the_worst_two_point_law_is_within_delta_exactly():
    """Exact probability of ever certifying a budget equal to the true rate."""
    errors = [chance_certified(p, p, DELTA, 1_000)[-1] for p in (0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 0.95)]
    assert max(errors) <= DELTA
    assert max(errors) > 0.4 * DELTA


@pytest.mark.slow
def test_the_worst_two_point_law_is_within_delta_exactly_for_ten_thousand_steps():
    errors = [chance_certified(p, p, DELTA, 10_000)[-1] for p in np.geomspace(0.002, 0.9, 12)]
    assert max(errors) <= DELTA


def test_a_fixed_sample_bound_fails_under_peeking():
    """Also a check that the simulation detects errors."""
    from scipy.stats import beta

    rng, wrong, p = np.random.default_rng(5), 0, 0.1
    looks = np.arange(1, 1_001)
    for _ in range(200):
        over = np.cumsum(rng.random(1_000) < p)
        upper = beta.ppf(1 - DELTA, over + 1, looks - over)
        wrong += bool((upper[over < looks] < p).any())
    assert wrong > 0.15 * 200


@pytest.mark.parametrize("law", [heavy, smooth])
def test_tail_bounds_hold_together(law):
    rng = np.random.default_rng(6)
    thresholds = Tail(LIMIT, 4 * LIMIT).thresholds
    sample = np.sort(law(np.random.default_rng(7), 4_000_000))
    true = 1.0 - np.searchsorted(sample, thresholds, side="right") / sample.size
    inner = [(c, p) for c, p in zip(thresholds, true, strict=True) if 1e-4 < p < 1.0]
    runs, steps, wrong = 40, 1_000, 0
    for _ in range(runs):
        costs = law(rng, steps)
        hit = False
        for c, p in inner:
            over = np.cumsum(costs > c)
            levels = bets_below(p).log_wealths(over, np.arange(1, steps + 1) - over)
            hit = hit or levels.max() >= log(len(thresholds) / DELTA)
        wrong += hit
    assert wrong <= allowed(runs)


# True risk, budget, median and 90 % quantile of the number of episodes to the certificate.
TABLE = [
    (0.0, 0.1, 36, 36), (0.01, 0.1, 36, 88), (0.03, 0.1, 88, 176), (0.05, 0.1, 192, 485),
    (0.0, 0.05, 73, 73), (0.01, 0.05, 134, 291), (0.03, 0.05, 655, 1643),
]  # fmt: skip


@pytest.mark.parametrize(("risk", "budget", "median", "high"), TABLE)
def test_episodes_to_a_certificate(risk, budget, median, high):
    """The recorded table was simulated; its entries are near the exact quantiles."""
    done = chance_certified(risk, budget, DELTA, 1_700)
    for level, episodes in ((0.5, median), (0.9, high)):
        assert done[episodes - 1] - 0.03 < level < done[episodes] + 0.03


def test_monitor_and_walk_agree_on_when_it_is_certified():
    rng = np.random.default_rng(8)
    times = []
    for _ in range(400):
        monitor = Monitor(LIMIT, 0.1, DELTA)
        monitor.update_many(np.where(rng.random(600) < 0.03, 40.0, 0.0))
        times.append(monitor.certified_at or 601)
    exact = chance_certified(0.03, 0.1, DELTA, 600)
    seen = np.searchsorted(np.sort(times), np.arange(601), side="right") / 400
    assert np.abs(seen - exact).max() < 0.08  # Kolmogorov-Smirnov, far beyond one per cent


def test_unsafe_is_rare_at_the_budget_and_early_above_it():
    rng = np.random.default_rng(9)
    wrong, delays = 0, []
    for _ in range(200):
        monitor = Monitor(LIMIT, 0.1, DELTA)
        monitor.update_many(np.where(rng.random(1_000) < 0.1, 40.0, 0.0))
        wrong += monitor.unsafe
        monitor.reset()
        monitor.update_many(np.where(rng.random(400) < 0.4, 40.0, 0.0))
        delays.append(monitor.unsafe_at or 401)
    assert wrong <= allowed(200)
    assert np.median(delays) < 40
