"""Bounds at a fixed number of episodes beyond the violation probability: enumeration, optimization, simulation."""

from itertools import product
from math import comb, log

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.stats import binom

from steingate.certificates.betting import RHO, WEIGHTS, e_bh, log_wealth, mean_upper
from steingate.certificates.shift import shift_radius
from steingate.certificates.tail import cvar_bound, mean_bound, smallest_limit
from steingate.certificates.violation import (
    certification_power,
    certify,
    clopper_pearson_upper,
    episodes_for_power,
)
from steingate.errors import InputError
from steingate.monitoring.wealth import upper_bound

# Betting


def test_the_wealth_is_the_product_of_the_factors():
    y, m = [0.0, 0.3, 1.0, 0.25, 0.3], 0.4
    wealth = 0.0
    for rho, weight in zip(RHO, WEIGHTS, strict=True):
        bet = weight
        for value in y:
            bet *= 1.0 + (1.0 - rho) * (m - value) / (1.0 - m)
        wealth += bet
    assert log_wealth(y, m) == pytest.approx(log(wealth), rel=1e-12)
    bound = mean_upper(y * 8, 0.05)
    assert log_wealth(y * 8, bound) == pytest.approx(log(20.0), abs=1e-8)


@pytest.mark.parametrize(("violations", "safe", "delta"), [(0, 36, 0.05), (3, 120, 0.01), (40, 960, 0.05)])
def test_single_episodes_have_the_bound_of_the_monitor(violations, safe, delta):
    found = mean_upper([1.0] * violations + [0.0] * safe, delta)
    assert found == pytest.approx(upper_bound(violations, safe, delta), abs=1e-7)


@pytest.mark.parametrize("support", [(0.0, 0.5, 1.0), (0.0, 0.02, 0.9)])
def test_the_error_of_the_betting_bound_is_at_most_delta(support):
    """All samples of six values with three outcomes, and all probabilities on a grid."""
    n, delta = 6, 0.2
    counts = [c for c in product(range(n + 1), repeat=3) if sum(c) == n]
    bounds = np.array([mean_upper(np.repeat(support, c), delta) for c in counts])
    ways = np.array([comb(n, c[0]) * comb(n - c[0], c[1]) for c in counts], dtype=float)
    grid = np.linspace(0.02, 0.96, 24)
    worst = 0.0
    for p, q in product(grid, grid):
        if p + q < 1.0:
            chances = np.array([p, q, 1.0 - p - q])
            probability = ways * np.prod(chances ** np.array(counts), axis=1)
            assert probability.sum() == pytest.approx(1.0)
            worst = max(worst, float(probability[bounds < chances @ support - 1e-9].sum()))
    assert 0.02 < worst <= delta


@pytest.mark.parametrize("seed", range(20))
def test_e_bh_selects_the_largest_self_consistent_set(seed):
    """Among all subsets whose members all reach K / (level size), the largest."""
    rng = np.random.default_rng(seed)
    values, level = np.exp(rng.normal(2.0, 2.0, 7)), 0.1
    best = max(
        (s for s in product([False, True], repeat=7) if all(values[i] * level * sum(s) >= 7 for i in range(7) if s[i])),
        key=sum,
    )
    assert e_bh(values, level).tolist() == list(best)


# Quantile, mean, CVaR


@pytest.mark.parametrize("n", [28, 29, 46, 100, 333])
@pytest.mark.parametrize(("risk", "confidence"), [(0.1, 0.95), (0.25, 0.8)])
def test_the_smallest_limit_is_the_smallest_that_is_certified(n, risk, confidence):
    costs = np.random.default_rng(n).gamma(2.0, 4.0, n)
    found = smallest_limit(costs, risk, confidence)
    certified = [c for c in costs if certify(costs, c, risk, confidence).certified]
    assert found == (min(certified) if certified else None)
    order = [k for k in range(1, n + 1) if binom.cdf(k - 1, n, 1 - risk) >= confidence]
    assert found == (np.sort(costs)[order[0] - 1] if order else None)


def test_mean_and_cvar_are_scaled_betting_bounds():
    costs = np.array([0.0, 5.0, 30.0, 200.0] * 20)
    assert mean_bound(costs, 100.0) == pytest.approx(100.0 * mean_upper([0.0, 0.05, 0.3, 1.0] * 20, 0.05))
    excess = mean_upper([0.0, 0.0, 10 / 80, 1.0] * 20, 0.05)
    assert cvar_bound(costs, 0.5, 20.0, 100.0) == pytest.approx(20.0 + 80.0 / 0.5 * excess)
    assert cvar_bound(costs, 1.0, 0.0, 100.0) == pytest.approx(mean_bound(costs, 100.0))
    assert cvar_bound(costs, 0.01, 20.0, 100.0) == 100.0


@pytest.mark.parametrize("n", [50, 300])
def test_coverage_of_mean_and_cvar(n):
    """Costs that are usually small and rarely at the cap are the hard case."""
    rng, delta = np.random.default_rng(n), 0.05
    for rare in (0.01, 0.05):
        values, chances = np.array([2.0, 30.0, 100.0]), np.array([1.0 - 3 * rare, 2 * rare, rare])
        worst = np.array(
            [max(0.1 - 3 * rare, 0.0), min(2 * rare, 0.1 - rare), rare]
        )  # the tenth with the largest costs
        samples = rng.choice(values, (1500, n), p=chances)
        for truth, bound in (
            (chances @ values, [mean_bound(sample, 100.0) for sample in samples]),
            (worst @ values / 0.1, [cvar_bound(sample, 0.1, 25.0, 100.0) for sample in samples]),
        ):
            assert np.mean(np.array(bound) < truth) <= delta + 2.0 * np.sqrt(delta * (1.0 - delta) / 1500)


# Clusters


@pytest.mark.parametrize("size", [1, 10])
def test_dependent_clusters_certify_wrongly_with_at_most_delta(size):
    """All episodes of a cluster are equal, at the boundary: exact binomial sums. Single episodes would not do."""
    n = 60
    certified = np.array(
        [certify(np.repeat([30.0] * k + [3.0] * (n - k), size), 25.0, clusters=np.repeat(range(n), size)).certified
         for k in range(8)]
    )  # fmt: skip
    assert certified[0]
    assert binom.pmf(np.flatnonzero(certified), n, 0.1).sum() <= 0.05
    if size > 1:
        naive = [certify(np.repeat([30.0] * k + [3.0] * (n - k), size), 25.0).certified for k in range(8)]
        assert binom.pmf(np.flatnonzero(naive), n, 0.1).sum() > 0.2


def test_clusters_of_different_size_have_the_same_weight():
    costs = [30.0, 3.0, 3.0, 3.0] + [3.0] * 60
    result = certify(costs, 25.0, clusters=["a"] * 4 + [f"b{i % 30}" for i in range(60)])
    assert (result.clusters, result.episodes, result.violations) == (31, 64, 1)
    assert result.violation_rate == pytest.approx(0.25 / 31)
    assert result.bound == pytest.approx(mean_upper([0.25] + [0.0] * 30, 0.05))
    assert "1 of 64 episodes in 31 clusters" in result.summary
    assert result.to_dict()["clusters"] == 31
    with pytest.raises(InputError, match="one label per cost"):
        certify(costs, 25.0, clusters=["a"] * 3)


@pytest.mark.parametrize("correlation", [0.09, 0.33])
def test_errors_with_correlated_clusters(correlation):
    """Clusters of one to 19 episodes, whose risks follow a Beta density with mean 0.1."""
    rng, wrong, naive = np.random.default_rng(3), 0, 0
    total = 1.0 / correlation - 1.0
    for _ in range(1000):
        sizes = rng.integers(1, 20, 51)
        risks = rng.beta(0.1 * total, 0.9 * total, 51)
        labels = np.repeat(np.arange(51), sizes)
        costs = np.where(rng.random(labels.size) < risks[labels], 30.0, 3.0)
        wrong += certify(costs, 25.0, clusters=labels).certified
        naive += certify(costs, 25.0).certified
    assert wrong <= 0.05 * 1000
    assert naive > 0.1 * 1000


# Shift


@pytest.mark.parametrize(("bound", "risk"), [(0.0099, 0.1), (0.05, 0.1), (0.2, 0.3)])
def test_no_smaller_shift_reaches_the_risk(bound, risk):
    """Optimization over distributions on five outcomes, two of which are violations."""
    p = np.concatenate([bound * np.array([0.3, 0.7]), (1.0 - bound) * np.array([0.2, 0.5, 0.3])])
    radius = shift_radius(bound, risk)
    constraints = [
        {"type": "eq", "fun": lambda q: q.sum() - 1.0},
        {"type": "ineq", "fun": lambda q: q[:2].sum() - risk},
    ]
    for divergence, expected in (
        (lambda q: float(np.sum(q * np.log(q / p))), radius.kl_divergence),
        (lambda q: float(np.sum((q - p) ** 2 / p)), radius.chi_squared),
    ):
        found = minimize(
            divergence, np.full(5, 0.2), bounds=[(1e-9, 1.0)] * 5, constraints=constraints,
            options={"ftol": 1e-12, "maxiter": 500},
        )  # fmt: skip
        assert found.success
        assert found.fun == pytest.approx(expected, rel=1e-4)
    # Minimize t over (q, t) with q <= t p; and the sum of r over (q, r) with q - p <= r, r >= 0.
    total, violated = np.ones(5), np.array([-1.0, -1.0, 0.0, 0.0, 0.0])
    ratio = linprog(
        [0.0] * 5 + [1.0], A_ub=[*np.column_stack([np.eye(5), -p]), [*violated, 0.0]], b_ub=[0.0] * 5 + [-risk],
        A_eq=[[*total, 0.0]], b_eq=[1.0],
    )  # fmt: skip
    assert ratio.fun == pytest.approx(radius.density_ratio)
    variation = linprog(
        [0.0] * 5 + [1.0] * 5, A_ub=[*np.column_stack([np.eye(5), -np.eye(5)]), [*violated, *[0.0] * 5]],
        b_ub=[*p, -risk], A_eq=[[*total, *[0.0] * 5]], b_eq=[1.0],
    )  # fmt: skip
    assert variation.fun == pytest.approx(radius.total_variation)


def test_the_shift_of_a_result():
    result = certify([3.0] * 300, 25.0)
    assert result.shift == pytest.approx((0.0901, 10.06, 0.145, 0.8246), rel=1e-3)
    assert result.to_dict()["shift"]["density_ratio"] == pytest.approx(0.1 / result.bound)
    assert certify([3.0] * 5, 25.0).shift is None
    with pytest.raises(InputError, match="bound <= risk"):
        shift_radius(0.2, 0.1)


# Power


@pytest.mark.parametrize(
    ("expected", "power", "risk", "confidence"), [(0.03, 0.9, 0.1, 0.95), (0.0, 0.5, 0.05, 0.99), (0.1, 0.8, 0.2, 0.9)]
)
def test_the_plan_is_the_smallest_number_with_the_power(expected, power, risk, confidence):
    planned, allowed = episodes_for_power(expected, power, risk, confidence)
    for n in range(1, planned + 1):
        counts = [k for k in range(n + 1) if clopper_pearson_upper(k, n, confidence) <= risk]
        exact = binom.pmf(counts, n, expected).sum()
        assert certification_power(n, expected, risk, confidence) == pytest.approx(exact, abs=1e-12)
        assert (exact >= power) == (n == planned)
    assert allowed == counts[-1]


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: mean_upper([0.5, 1.5], 0.05), "from 0 to 1"),
        (lambda: mean_bound([1.0], 0.0), "cap is 0.0"),
        (lambda: cvar_bound([1.0], 0.0, 1.0, 2.0), "fraction is 0.0"),
        (lambda: cvar_bound([1.0], 0.1, 2.0, 2.0), "threshold is 2.0"),
        (lambda: smallest_limit([1.0], risk=0.0), "risk is 0.0"),
        (lambda: e_bh([-1.0], 0.05), "not negative"),
        (lambda: episodes_for_power(0.1), "expected is 0.1"),
        (lambda: episodes_for_power(0.01, 1.0), "power is 1.0"),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(InputError, match=named):
        call()
