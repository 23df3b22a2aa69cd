"""The function of a count behind the bound: what the proof asks of it, checked number by number."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom

from steingate.certificates.bets import (
    STEP_SHARE,
    bets,
    log_stakes,
    smallest_mean,
    step_end,
    step_part,
    step_start,
)

CASES = [(1, 0.05), (2, 0.3), (5, 0.05), (16, 0.05), (29, 0.01), (60, 0.05), (60, 0.6), (400, 0.05)]


def means(n, delta):
    """Return candidate means: every cell's ends and inside, and where the step changes."""
    edges = bets(n, delta).edges
    starts = [step_start(n, delta, k) for k in range(min(n, 40))]
    inside = edges[:-1] + np.diff(edges) * np.random.default_rng(n).random(edges.size - 1)
    found = np.concatenate([edges, inside, starts, np.array(starts) * (1 + 1e-9)])
    return found[(found >= edges[0]) & (found < 0.9999)]


def step(n, delta, m):
    """Return the step as a function of the count, from the library's two numbers."""
    end = step_end(n, delta, m)
    values = (np.arange(n + 1) <= end).astype(float)
    if end < n:
        values[end + 1] = step_part(n, delta, m, end)
    return values


def log_stake(n, delta, m):
    """Return the logarithm of the bets' part as a function of the count."""
    table = bets(n, delta)
    c = table.share[np.searchsorted(table.edges, m, side="right") - 1][:, None]
    k = np.arange(n + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        hits = np.where(k == 0, 0.0, k * np.log(1.0 - c))
        logs = hits + (n - k) * np.log1p(c * m / (1.0 - m)) + table.log_weight[:, None]
        return log_stakes(n, delta, m) + np.logaddexp.reduce(logs, axis=0)


@pytest.mark.parametrize(("n", "delta"), CASES)
def test_the_mean_under_the_binomial_is_within_delta_and_uses_it_up(n, delta):
    k = np.arange(n + 1)
    for m in means(n, delta):
        step_mean = step(n, delta, m) @ binom.pmf(k, n, m)
        bets_mean = np.exp(log_stake(n, delta, m) + binom.logpmf(k, n, m)).sum()
        clean = (1.0 - m) ** n
        assert step_mean <= clean + STEP_SHARE * (delta - clean) + 1e-12
        assert bets_mean == pytest.approx((1 - STEP_SHARE) * (delta - clean), rel=1e-9, abs=1e-15)
        assert step_mean + bets_mean <= delta * (1 + 1e-9)


@pytest.mark.parametrize(("n", "delta"), CASES)
def test_the_function_never_rises_with_the_count(n, delta):
    for m in means(n, delta):
        assert (np.diff(step(n, delta, m)) <= 0.0).all()
        assert (log_stake(n, delta, m)[1:] <= log_stake(n, delta, m)[:-1]).all()


@pytest.mark.parametrize(("n", "delta"), CASES)
def test_inside_a_cell_the_function_never_falls_with_the_mean(n, delta):
    """The search for the bound relies on it: between two cell edges T grows."""
    edges = bets(n, delta).edges
    for low, high in pairwise(edges):
        grid = np.linspace(low, high, 25)[:-1]
        steps = np.array([step(n, delta, m) for m in grid])
        assert (np.diff(steps, axis=0) >= -1e-9).all()
        logs = np.array([log_stake(n, delta, m) for m in grid])
        assert (logs[1:] >= logs[:-1] - 1e-9).all()


@pytest.mark.parametrize(("n", "delta"), CASES)
def test_the_step_begins_where_it_is_said_to(n, delta):
    for k in range(1, min(n, 30)):
        start = step_start(n, delta, k)
        if start < 1.0 - 1e-9:
            assert step_end(n, delta, start * (1 + 1e-9)) >= k
        if start > smallest_mean(n, delta) * (1 + 1e-6):
            assert step_end(n, delta, start * (1 - 1e-8)) < k
    assert step_start(n, delta, n) == 1.0


def test_weights_and_fractions_are_those_of_bets():
    for n, delta in CASES:
        table = bets(n, delta)
        assert np.exp(table.log_weight).sum() == pytest.approx(1.0)
        assert table.share.min() >= 0.0
        assert table.share.max() == 1.0
        assert table.edges[0] == pytest.approx(1 - delta ** (1 / n))
        assert (np.diff(table.edges) > 0).all()
