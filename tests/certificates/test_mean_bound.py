"""The bound on a mean: its definition by brute force, exact error, coverage, second opinions, invariances."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binom

from steingate.certificates import mean_bound
from steingate.certificates.bets import STEP_SHARE, bets
from steingate.certificates.bounds import clopper_pearson_upper
from steingate.certificates.mean_bound import mean_upper, padded_within
from steingate.errors import InputError

samples = arrays(np.float64, st.integers(1, 60), elements=st.floats(0.0, 1.0))


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-(np.asarray(x) - 0.5) / 0.02))


def zeros_and_ones(k, n):
    return np.r_[np.ones(k), np.zeros(n - k)]


def needed(violations, delta=0.05, budget=0.1):
    n = 1
    while mean_upper(zeros_and_ones(violations, max(n, violations)), delta) > budget:
        n += 1
    return n


# The definition


def successes(x):
    """Return the probabilities of the counts of independent successes with probabilities x."""
    mass = np.ones(1)
    for p in x:
        mass = np.convolve(mass, [1.0 - p, p])
    return mass


def phi(n, delta, m, table):
    """Return the function of the count as the module's text defines it, from SciPy's binomial law."""
    k = np.arange(n + 1)
    clean = (1.0 - m) ** n
    level = clean + STEP_SHARE * (delta - clean)
    at_most = binom.cdf(k, n, m)
    end = max(int((at_most <= level).sum()) - 1, 0)
    step = (k <= end).astype(float)
    if end + 1 < n and m * n >= end + 1:
        step[end + 1] = (level - at_most[end]) / binom.pmf(end + 1, n, m)
    c = table.share[np.searchsorted(table.edges, m, side="right") - 1][:, None]
    wealth = (1.0 - c) ** k * (1.0 + c * m / (1.0 - m)) ** (n - k)
    return step + (1.0 - STEP_SHARE) * (delta - clean) * (np.exp(table.log_weight) @ wealth)


@pytest.mark.parametrize("delta", [0.05, 0.4])
@pytest.mark.parametrize("seed", range(5))
def test_the_bound_is_the_supremum_of_the_standing_means(seed, delta):
    rng = np.random.default_rng(seed)
    n = (1, 7, 16, 25, 45)[seed]
    x = rng.beta(0.3, 1.0 + seed, n)
    table, mass = bets(n, delta), successes(x)
    grid = np.linspace(table.edges[0], 1.0, 3001)[1:-1]
    standing = [m for m in grid if mass @ phi(n, delta, m, table) < 1.0]
    found = mean_upper(x, delta)
    assert max(standing, default=table.edges[0]) - 1e-9 <= found
    assert found <= max(standing, default=table.edges[0]) + 1.1 * (grid[1] - grid[0])


@pytest.mark.parametrize(("violations", "most"), [(0, 29), (1, 52), (2, 70), (3, 85)])
def test_episodes_that_certify_a_tenth(violations, most):
    """Clopper and Pearson need 29, 46, 61 and 76; without the step it would be 29, 58, 77 and 94."""
    assert needed(violations) <= most
    assert [needed(count) for count in range(4)] == [29, 50, 68, 83]


@pytest.mark.parametrize(("budget", "episodes"), [(0.10, 29), (0.05, 59), (0.01, 299)])
@pytest.mark.parametrize("risk", [0.0, float(sigmoid(0.0))])
def test_clean_samples_certify_with_the_fewest_episodes_possible(budget, episodes, risk):
    assert mean_upper(np.full(episodes, risk), 0.05) <= budget
    assert mean_upper(np.full(episodes - 1, risk), 0.05) > budget
    assert mean_upper(np.full(episodes, risk), 0.05) == pytest.approx(1 - 0.05 ** (1 / episodes), abs=1e-7)


# Its error


def worst_error(n, delta, low, high):
    """Return the largest probability, over p, that the bound of a law on {low, high} is below its mean.

    With j draws of n at ``high`` the sample is known, so the error is a sum over j. It is largest just
    after the mean has passed the bound of some j.
    """
    bounds = np.array([mean_upper(np.r_[np.full(j, high), np.full(n - j, low)], delta) for j in range(n + 1)])
    assert (np.diff(bounds) >= -1e-9).all()
    at = np.clip((bounds - low) / (high - low) + 1e-9, 0.0, 1.0)
    errors = [binom.cdf(np.flatnonzero(bounds < low + p * (high - low))[-1], n, p) for p in at if p < 1.0]
    return max(errors, default=0.0)


@pytest.mark.parametrize("delta", [0.05, 0.3])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13])
def test_error_is_exactly_bounded_for_laws_on_two_points(n, delta):
    grid = (0.0, 0.02, 0.1, 0.3, 0.6, 0.9, 1.0)
    errors = [worst_error(n, delta, low, high) for low in grid for high in grid if low < high]
    assert max(errors) <= delta + 1e-9
    assert max(errors) > 0.9 * delta  # of zeros and ones: the bound is not valid by being loose


@pytest.mark.parametrize("n", [29, 46, 150, 400])
def test_error_is_exactly_bounded_for_zeros_and_ones(n):
    assert worst_error(n, 0.05, 0.0, 1.0) <= 0.05 + 1e-9


LAWS = {
    "just over the budget": (lambda rng, size: (rng.random(size) < 0.1001).astype(float), 0.1001),
    "rare ones": (lambda rng, size: (rng.random(size) < 0.02).astype(float), 0.02),
    "zero or a half": (lambda rng, size: 0.5 * (rng.random(size) < 0.2002), 0.1001),
    "zero, small, one": (lambda rng, size: rng.choice([0.0, 0.05, 1.0], p=[0.6, 0.3, 0.1], size=size), 0.115),
    "a bit and rarely one": (lambda rng, size: np.where(rng.random(size) < 0.03, 1.0, 0.05), 0.0785),
    "sigmoid of a Beta": (lambda rng, size: sigmoid(rng.beta(2, 6.5, size)), None),
    "uniform": (lambda rng, size: rng.random(size), 0.5),
}


def law_mean(law):
    if LAWS[law][1] is not None:
        return LAWS[law][1]
    x = (np.arange(200_000) + 0.5) / 200_000
    return float(np.mean(sigmoid(x) * x * (1 - x) ** 5.5) / np.mean(x * (1 - x) ** 5.5))


def assert_covers(law, n, draws, delta=0.05):
    rng = np.random.default_rng([n, draws])
    sample = LAWS[law][0](rng, (draws, n))
    different, times = np.unique(np.sort(sample, axis=1), axis=0, return_counts=True)
    mean = law_mean(law)
    low = np.array([mean_upper(x, delta) < mean for x in different])
    assert times[low].sum() <= binom.ppf(1 - 1e-4, draws, delta)


@pytest.mark.parametrize("n", [5, 29, 100])
@pytest.mark.parametrize("law", LAWS)
def test_the_bound_covers(law, n):
    assert_covers(law, n, draws=300)


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 16, 29, 40, 100, 400])
@pytest.mark.parametrize("law", LAWS)
def test_the_bound_covers_in_ten_thousand_draws(law, n):
    assert_covers(law, n, draws=10_000)


# Second opinions


@pytest.mark.parametrize("n", [1, 5, 29, 60, 300, 5000])
def test_no_bound_for_unit_variables_beats_the_exact_one_on_zeros_and_ones(n):
    for k in sorted({0, 1, 2, 3, n // 10, n // 2, n - 1, n} & set(range(n + 1))):
        bound, exact = mean_upper(zeros_and_ones(k, n), 0.05), clopper_pearson_upper(k, n, 0.05)
        assert exact - 1e-12 <= bound
        assert bound - k / n <= 1.32 * (exact - k / n) + 1e-12


def empirical_bernstein(x, delta):
    """Return the bound of Maurer and Pontil (2009)."""
    n, level = x.size, np.log(2 / delta)
    return x.mean() + np.sqrt(2 * x.var(ddof=1) * level / n) + 7 * level / (3 * (n - 1))


@pytest.mark.parametrize("n", [40, 200, 2000])
def test_it_beats_hoeffding_and_bernstein_on_every_shape(n):
    rng = np.random.default_rng(n)
    for draw in (rng.beta(2, 20, n), rng.uniform(size=n), sigmoid(rng.beta(2, 6.5, n)), rng.beta(50, 50, n)):
        bound = mean_upper(draw, 0.05)
        assert bound < draw.mean() + np.sqrt(np.log(20) / (2 * n))
        assert bound < empirical_bernstein(draw, 0.05)


# Invariances


@settings(deadline=None)
@given(samples, st.randoms(use_true_random=False), st.sampled_from([0.01, 0.05, 0.3, 0.9]))
def test_it_is_a_symmetric_bound_above_the_mean(x, random, delta):
    bound = mean_upper(x, delta)
    assert max(x.mean(), 1 - delta ** (1 / x.size)) - 1e-12 <= bound <= 1.0
    order = list(range(x.size))
    random.shuffle(order)
    assert mean_upper(x[order], delta) == bound


@settings(deadline=None)
@given(samples, st.integers(0, 59), st.floats(0.0, 1.0))
def test_raising_a_value_never_lowers_the_bound(x, index, value):
    raised = x.copy()
    raised[index % x.size] = max(raised[index % x.size], value)
    assert mean_upper(raised, 0.05) >= mean_upper(x, 0.05) - 1e-9


@settings(deadline=None)
@given(samples)
def test_a_smaller_error_probability_costs(x):
    for large, small in pairwise((0.3, 0.05, 0.01)):
        assert mean_upper(x, small) >= mean_upper(x, large) - 1e-9


@settings(deadline=None)
@given(samples, st.sampled_from([0, 1, 7, 600]), st.floats(0.01, 0.99))
def test_within_says_whether_the_bound_of_the_padded_sample_is_within_the_budget(x, zeros, budget):
    bound = mean_upper(np.concatenate([x, np.zeros(zeros)]), 0.05)
    if abs(bound - budget) > 1e-7:
        assert padded_within(x, 0.05, budget)(zeros) == (bound <= budget)


@pytest.mark.parametrize("law", ["sigmoid of a Beta", "uniform", "rare ones"])
def test_carriers_and_groups_of_a_large_sample_only_add(law, monkeypatch):
    x = LAWS[law][0](np.random.default_rng(3), 1500)
    bound = mean_upper(x, 0.05)
    monkeypatch.setattr(mean_bound, "_DIRECT", 2000)
    monkeypatch.setattr("steingate.certificates.poisson_binomial._GROUPS", 2000)
    exact = mean_upper(x, 0.05)
    assert exact - 1e-9 <= bound <= exact + 1e-4


def test_carriers_keep_the_sum():
    rng = np.random.default_rng(3)
    for x in (rng.beta(0.5, 3, 3000), zeros_and_ones(30, 3000), np.full(3000, 1e-11)):
        points, weights = mean_bound._carriers(np.sort(x))
        assert weights.sum() == pytest.approx(x.size)
        assert points @ weights == pytest.approx(x.sum(), rel=1e-9)


def test_tiny_error_probabilities_and_budgets_are_no_trouble():
    assert mean_upper([0.3], 1e-20) == 1.0
    assert not padded_within([0.3], 1e-20, 0.5)(0)
    assert mean_upper(np.zeros(100), 1e-20) == pytest.approx(1 - 1e-20 ** (1 / 100))
    exact = np.log(0.05) / np.log1p(-1e-9)
    assert padded_within([0.0], 0.05, 1e-9)(int(exact) + 1)
    assert not padded_within([0.0], 0.05, 1e-9)(int(exact) - 2)


@pytest.mark.parametrize("x", [[1.0], [1.0] * 50, [0.0] * 50 + [1.0] * 50, np.linspace(0, 1, 3000)])
def test_extreme_samples_raise_no_warning(x):
    assert np.mean(x) <= mean_upper(x, 0.05) <= 1.0


@pytest.mark.parametrize(
    ("x", "delta", "named"),
    [
        ([], 0.05, "empty"),
        ([0.1, np.nan], 0.05, "nan"),
        ([0.1, -0.5], 0.05, "-0.5"),
        ([0.1], 0.0, "delta is 0.0"),
    ],
)
def test_bad_input_is_named(x, delta, named):
    with pytest.raises(InputError, match=named):
        mean_upper(x, delta)
