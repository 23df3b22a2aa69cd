"""Claims of the monitor, simulated or computed exactly: errors at most delta, and the episodes it takes."""

from math import log

import numpy as np
import pytest
from tests.monitoring.simulations import simulate_unsafe
from tests.monitoring.walks import chance_certified, log_wealths

from steingate.monitoring.monitor import Monitor
from steingate.monitoring.tail import Tail
from steingate.monitoring.wealth import bets_below

LIMIT, DELTA = 25.0, 0.05
COSTS = {
    "integers": lambda rng, n: rng.poisson(18.0, n).astype(float),
    "mixture": lambda rng, n: np.where(rng.random(n) < 0.8, 0.0, np.round(rng.exponential(30.0, n))),
    "pareto": lambda rng, n: 4.0 * (1.0 + rng.pareto(1.2, n)),
    "near the limit": lambda rng, n: LIMIT + rng.normal(-2.0, 1.5, n).clip(-20.0, 20.0),
    "rare": lambda rng, n: np.where(rng.random(n) < 0.01, 40.0, 5.0),
}


def tail(name, thresholds):
    """P(cost > c) for each c, from four million draws."""
    rng, thresholds = np.random.default_rng(99), np.atleast_1d(thresholds)
    parts = [np.sort(COSTS[name](rng, 500_000)) for _ in range(8)]
    return np.mean([1.0 - np.searchsorted(part, thresholds, side="right") / part.size for part in parts], axis=0)


def ever_reached(mixture, flags, delta):
    """Whether the wealth reaches 1 / delta at some step; for bets below p, whether the bound is ever below p."""
    violations, t = np.cumsum(flags), np.arange(1, len(flags) + 1)
    return bool(log_wealths(mixture, violations, t - violations).max() >= -log(delta))


def allowed(runs):
    """Largest number of errors that chance explains if the error probability is delta (four deviations)."""
    return DELTA * runs + 4 * (DELTA * (1 - DELTA) * runs) ** 0.5


@pytest.mark.parametrize("name", COSTS)
@pytest.mark.parametrize(("runs", "episodes"), [(200, 2_000), pytest.param(500, 10_000, marks=pytest.mark.slow)])
def test_bounds_are_rarely_wrong_at_any_step(name, runs, episodes):
    rng, p = np.random.default_rng(1), tail(name, LIMIT).item()
    errors = sum(ever_reached(bets_below(p), COSTS[name](rng, episodes) > LIMIT, DELTA) for _ in range(runs))
    assert errors <= allowed(runs)


@pytest.mark.parametrize("name", ["mixture", "pareto"])
def test_tail_bounds_hold_together(name):
    rng, thresholds = np.random.default_rng(6), Tail(LIMIT, 4 * LIMIT).thresholds
    inner = [(c, p) for c, p in zip(thresholds, tail(name, thresholds), strict=True) if 1e-4 < p < 1.0]
    errors = 0
    for _ in range(40):
        costs = COSTS[name](rng, 1_000)
        errors += any(ever_reached(bets_below(p), costs > c, DELTA / len(thresholds)) for c, p in inner)
    assert errors <= allowed(40)


@pytest.mark.parametrize("episodes", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_the_exact_error_is_at_most_delta(episodes):
    """Probability of ever certifying a budget equal to the true rate."""
    errors = [chance_certified(p, p, DELTA, episodes)[-1] for p in (0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 0.95)]
    assert 0.4 * DELTA < max(errors) <= DELTA


@pytest.mark.parametrize(
    ("rate", "budget", "median", "high"),
    [
        (0.0, 0.1, 36, 36), (0.01, 0.1, 36, 88), (0.03, 0.1, 88, 176), (0.05, 0.1, 192, 485),
        (0.0, 0.05, 73, 73), (0.01, 0.05, 134, 291), (0.03, 0.05, 655, 1643),
    ],
)  # fmt: skip
def test_episodes_until_certified(rate, budget, median, high):
    """The recorded table was simulated; its entries are near the exact quantiles."""
    done = chance_certified(rate, budget, DELTA, 1_700)
    for level, episodes in ((0.5, median), (0.9, high)):
        assert done[episodes - 1] - 0.03 < level < done[episodes] + 0.03


def test_monitor_and_walk_agree_on_when_it_is_certified():
    rng, times = np.random.default_rng(8), []
    for _ in range(300):
        monitor = Monitor(LIMIT, 0.1, DELTA)
        while not monitor.certified and monitor.episodes < 600:
            monitor.update(40.0 if rng.random() < 0.03 else 0.0)
        times.append(monitor.certified_at or 601)
    exact = chance_certified(0.03, 0.1, DELTA, 600)
    seen = np.searchsorted(np.sort(times), np.arange(601), side="right") / 300
    assert np.abs(seen - exact).max() < 0.094  # Kolmogorov-Smirnov, one per cent


def test_unsafe_is_rare_at_the_budget_and_early_above_it():
    rng, delays = np.random.default_rng(9), []
    wrong = (simulate_unsafe(rng.random((1_000, 200)) < 0.1, 0.1, DELTA) > 0).sum()
    assert wrong <= allowed(200)
    for _ in range(100):
        monitor = Monitor(LIMIT, 0.1, DELTA)
        while not monitor.unsafe:
            monitor.update(40.0 if rng.random() < 0.4 else 0.0)
        delays.append(monitor.episodes)
    assert np.median(delays) < 40
