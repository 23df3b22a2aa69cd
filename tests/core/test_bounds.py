"""Confidence bounds: closed forms, second opinions, invariances, and coverage by simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import brentq
from scipy.stats import binom, binomtest

from steingate.core.bounds import (
    betting_upper,
    betting_within,
    clopper_pearson_lower,
    clopper_pearson_upper,
    direct_upper,
    embedding_radius,
    empirical_bernstein_upper,
    hoeffding_radius,
)
from steingate.errors import InputError

samples = arrays(np.float64, st.integers(1, 60), elements=st.floats(0.0, 1.0))


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-(np.asarray(x) - 0.5) / 0.02))


def zeros_and_ones(k, n):
    return np.r_[np.ones(k), np.zeros(n - k)]


@pytest.mark.parametrize(("k", "n", "delta"), [(0, 29, 0.05), (1, 46, 0.05), (7, 30, 0.01), (30, 30, 0.1)])
def test_clopper_pearson_solves_the_binomial_equation(k, n, delta):
    upper = clopper_pearson_upper(k, n, delta)
    if k == n:
        assert upper == 1.0
    else:
        assert binom.cdf(k, n, upper) == pytest.approx(delta, rel=1e-9)
    lower = clopper_pearson_lower(k, n, delta)
    if k == 0:
        assert lower == 0.0
    else:
        assert binom.sf(k - 1, n, lower) == pytest.approx(delta, rel=1e-9)
    interval = binomtest(k, n).proportion_ci(1 - 2 * delta, "exact")
    assert (lower, upper) == pytest.approx((interval.low, interval.high), abs=1e-9)


@pytest.mark.parametrize(("budget", "episodes"), [(0.10, 29), (0.05, 59), (0.01, 299)])
@pytest.mark.parametrize("risk", [0.0, float(sigmoid(0.0))])
def test_clean_samples_certify_with_the_fewest_episodes_possible(budget, episodes, risk):
    assert direct_upper(np.full(episodes, risk), 0.05) <= budget
    assert direct_upper(np.full(episodes - 1, risk), 0.05) > budget
    assert direct_upper(np.full(episodes, risk), 0.05) == pytest.approx(1 - 0.05 ** (1 / episodes), abs=1e-9)


def chernoff_upper(mean, n, delta):
    def gap(m):
        low = mean * np.log(mean / m) if mean > 0 else 0.0
        return n * (low + (1 - mean) * np.log((1 - mean) / (1 - m))) + np.log(delta)

    return brentq(gap, max(mean, 1e-12), 1 - 1e-12)


@pytest.mark.parametrize(("k", "n"), [(1, 60), (3, 60), (10, 60), (3, 300), (30, 300), (500, 5000)])
def test_betting_stays_close_to_the_best_bounds_for_zeros_and_ones(k, n):
    bound = betting_upper(zeros_and_ones(k, n), 0.05)
    exact, chernoff = clopper_pearson_upper(k, n, 0.05), chernoff_upper(k / n, n, 0.05)
    assert exact <= bound  # no bound valid for all [0, 1] variables beats the exact one on 0/1 data
    assert bound - k / n <= 1.1 * (chernoff - k / n)


@pytest.mark.parametrize("n", [40, 200, 2000])
def test_betting_beats_hoeffding_and_bernstein_on_every_shape(n):
    rng = np.random.default_rng(n)
    for draw in (rng.beta(2, 20, n), rng.uniform(size=n), sigmoid(rng.beta(2, 6.5, n)), rng.beta(50, 50, n)):
        bound = betting_upper(draw, 0.05)
        assert bound < draw.mean() + hoeffding_radius(n, 0.05)
        assert bound < empirical_bernstein_upper(draw, 0.05)


def brute_force_upper(x, delta, bets):
    """Return the supremum of the means that stand, from T as its definition reads, on a fine grid."""
    n = len(x)
    grid = np.linspace(bets.edges[0], 1.0, 20_001)[:-1]
    standing = 0.0
    for m in grid:
        cell = np.searchsorted(bets.edges, m, side="right") - 1
        wealth = np.prod(1 + bets.share[cell][:, None] * (m - x) / (1 - m), axis=1) @ np.exp(bets.log_weight)
        if np.prod(1 - x) + (delta - (1 - m) ** n) * wealth < 1:
            standing = m
    return standing


@pytest.mark.parametrize("seed", range(3))
def test_betting_upper_is_the_supremum_of_the_standing_means(seed):
    from steingate.core.bounds import _bets

    rng = np.random.default_rng(seed)
    x = rng.beta(0.3, 1.0 + seed, 25)
    bets = _bets(25, 0.05)
    assert np.exp(bets.log_weight).sum() == pytest.approx(1.0)
    assert bets.share.min() >= 0.0
    assert bets.share.max() <= 1.0
    expected = brute_force_upper(x, 0.05, bets)
    assert expected - 1e-9 <= betting_upper(x, 0.05) <= expected + 1.1 * (1 - bets.edges[0]) / 20_000


def test_the_carriers_of_a_large_sample_only_add():
    from steingate.core import bounds

    rng = np.random.default_rng(3)
    for x in (rng.beta(0.5, 3, 3000), zeros_and_ones(30, 3000), np.full(3000, 1e-11)):
        points, weights = bounds._carriers(np.sort(x), 0)
        assert weights.sum() == pytest.approx(x.size)
        assert points @ weights == pytest.approx(x.sum(), rel=1e-9)
        spread = betting_upper(x, 0.05)
        direct = bounds._DIRECT
        try:
            bounds._DIRECT = 10_000
            exact = betting_upper(x, 0.05)
        finally:
            bounds._DIRECT = direct
        assert exact - 1e-11 <= spread <= exact + 1e-5


@given(samples, st.randoms(use_true_random=False), st.sampled_from([0.01, 0.05, 0.3]))
def test_betting_is_a_symmetric_bound_above_the_mean(x, random, delta):
    bound = betting_upper(x, delta)
    assert max(x.mean() - 1e-12, 1 - delta ** (1 / x.size) - 1e-12) <= bound <= 1.0
    order = list(range(x.size))
    random.shuffle(order)
    assert betting_upper(x[order], delta) == bound


@given(samples, st.integers(0, 59), st.floats(0.0, 1.0))
def test_raising_a_value_never_lowers_the_bound(x, index, value):
    raised = x.copy()
    raised[index % x.size] = max(raised[index % x.size], value)
    assert betting_upper(raised, 0.05) >= betting_upper(x, 0.05) - 1e-11
    assert betting_upper(np.append(x, 1.0), 0.05) >= betting_upper(x, 0.05) - 1e-11


@given(samples, st.sampled_from([0, 1, 7, 600]), st.floats(0.01, 0.99))
def test_within_says_whether_the_bound_of_the_padded_sample_is_within_the_budget(x, zeros, budget):
    bound = betting_upper(np.concatenate([x, np.zeros(zeros)]), 0.05)
    if abs(bound - budget) > 1e-9:
        assert betting_within(x, zeros, 0.05, budget) == (bound <= budget)


def test_tiny_error_probabilities_and_budgets_are_no_trouble():
    assert betting_upper([0.3], 1e-20) == 1.0
    assert not betting_within([0.3], 0, 1e-20, 0.5)
    assert betting_upper(np.zeros(100), 1e-20) == pytest.approx(1 - 1e-20 ** (1 / 100))
    assert clopper_pearson_upper(1, 400, 1e-20) == pytest.approx(
        brentq(lambda p: binom.logcdf(1, 400, p) - np.log(1e-20), 1e-3, 0.9), rel=1e-9
    )
    exact = np.log(0.05) / np.log1p(-1e-9)
    assert betting_within([0.0], int(exact) + 1, 0.05, 1e-9)
    assert not betting_within([0.0], int(exact) - 2, 0.05, 1e-9)


@given(samples)
def test_a_smaller_error_probability_costs(x):
    assert betting_upper(x, 0.01) >= betting_upper(x, 0.05) - 1e-11


def test_direct_upper_for_binary_variables_is_exact():
    assert direct_upper(zeros_and_ones(1, 46), 0.05, binary=True) == clopper_pearson_upper(1, 46, 0.05) <= 0.1
    with pytest.raises(InputError, match="binary"):
        direct_upper([0.0, 0.5], 0.05, binary=True)


def test_radii():
    assert hoeffding_radius(50, 0.05) == pytest.approx(np.sqrt(np.log(20) / 100))
    assert embedding_radius(24.0, 40, 0.05) == pytest.approx(np.sqrt(24 / 40) * (1 + np.sqrt(2 * np.log(20))))
    assert embedding_radius(np.inf, 40, 0.05) == np.inf
    x = [0.1, 0.4, 0.4, 0.9] * 50
    expected = np.mean(x) + np.sqrt(2 * np.var(x, ddof=1) * np.log(40) / 200) + 7 * np.log(40) / (3 * 199)
    assert empirical_bernstein_upper(x, 0.05) == pytest.approx(expected)
    assert empirical_bernstein_upper([0.2], 0.05) == 1.0


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: betting_upper([], 0.05), "empty"),
        (lambda: betting_upper([0.1, np.nan], 0.05), "nan"),
        (lambda: betting_upper([0.1, -0.5], 0.05), "-0.5"),
        (lambda: direct_upper([0.1, 1.5], 0.05), "1.5"),
        (lambda: betting_upper([0.1], 0.0), "delta is 0.0"),
        (lambda: hoeffding_radius(0, 0.05), "n is 0"),
        (lambda: clopper_pearson_upper(5, 4, 0.05), "k is 5"),
        (lambda: embedding_radius(-1.0, 4, 0.05), "M_u is -1.0"),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(InputError, match=named):
        call()


LAWS = {
    "just over the budget": lambda rng, size: (rng.random(size) < 0.1001).astype(float),
    "rare ones": lambda rng, size: (rng.random(size) < 0.02).astype(float),
    "zero or a half": lambda rng, size: 0.5 * (rng.random(size) < 0.2002),
    "zero, small, one": lambda rng, size: rng.choice([0.0, 0.05, 1.0], p=[0.6, 0.3, 0.1], size=size),
    "sigmoid of a Beta": lambda rng, size: sigmoid(rng.beta(2, 6.5, size)),
    "uniform": lambda rng, size: rng.random(size),
}
MEANS = {
    "just over the budget": 0.1001,
    "rare ones": 0.02,
    "zero or a half": 0.1001,
    "zero, small, one": 0.115,
}
MEANS |= {"sigmoid of a Beta": None, "uniform": 0.5}


def law_mean(law):
    if MEANS[law] is not None:
        return MEANS[law]
    x = (np.arange(200_000) + 0.5) / 200_000
    return float(np.mean(sigmoid(x) * x * (1 - x) ** 5.5) / np.mean(x * (1 - x) ** 5.5))


def assert_covers(law, n, draws, delta=0.05):
    rng = np.random.default_rng([n, draws])
    mean = law_mean(law)
    samples = LAWS[law](rng, (draws, n))
    limit = binom.ppf(1 - 1e-4, draws, delta)  # a valid bound exceeds this once in ten thousand runs
    different, times = np.unique(np.sort(samples, axis=1), axis=0, return_counts=True)
    for bound in (betting_upper, empirical_bernstein_upper):
        low = np.array([bound(x, delta) < mean for x in different])
        assert times[low].sum() <= limit, bound.__name__
    assert np.sum(samples.mean(axis=1) + hoeffding_radius(n, delta) < mean) <= limit
    if np.isin(samples, (0.0, 1.0)).all():
        hits = samples.sum(axis=1).astype(int)
        assert sum(clopper_pearson_upper(k, n, delta) < mean for k in hits) <= limit
        assert sum(clopper_pearson_lower(k, n, delta) > mean for k in hits) <= limit


@pytest.mark.parametrize("n", [5, 29, 100])
@pytest.mark.parametrize("law", LAWS)
def test_bounds_cover(law, n):
    assert_covers(law, n, draws=400)


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 16, 29, 40, 100, 400])
@pytest.mark.parametrize("law", LAWS)
def test_bounds_cover_in_ten_thousand_draws(law, n):
    assert_covers(law, n, draws=10_000)


@pytest.mark.parametrize("n", [29, 45, 46, 60, 150])
def test_error_is_exactly_bounded_for_zeros_and_ones(n):
    """No simulation: the error probability under Bernoulli(p) is a sum over the n + 1 possible counts."""
    bounds = np.array([betting_upper(zeros_and_ones(k, n), 0.05) for k in range(n + 1)])
    assert np.all(np.diff(bounds) >= 0)
    for p in np.r_[np.linspace(0.001, 0.999, 200), bounds[:-1] + 1e-9]:
        wrong = np.flatnonzero(bounds < min(p, 1.0))
        error = binom.cdf(wrong[-1], n, min(p, 1.0)) if wrong.size else 0.0
        assert error <= 0.05 + 1e-9
