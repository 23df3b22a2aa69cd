"""Counts of unequal trials: against plain convolution and SciPy, and never above the truth."""

import numpy as np
import pytest
from scipy.stats import binom

from steingate.certificates.poisson_binomial import successes_at_most


def by_convolution(probabilities):
    mass = np.ones(1)
    for p in probabilities:
        mass = np.convolve(mass, [1.0 - p, p])
    return np.cumsum(mass)


LAWS = {
    "skewed": lambda rng, n: rng.beta(0.2, 2.0, n),
    "uniform": lambda rng, n: rng.random(n),
    "mostly zero": lambda rng, n: (rng.random(n) < 0.3) * rng.random(n),
    "tiny": lambda rng, n: 1e-3 * rng.random(n),
    "near one": lambda rng, n: 1.0 - 1e-3 * rng.random(n),
    "zeros and ones": lambda rng, n: (rng.random(n) < 0.2).astype(float),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", [1, 2, 16, 40, 41, 100, 256])
def test_exact_up_to_256_trials(law, n):
    x = np.sort(LAWS[law](np.random.default_rng(n), n))
    np.testing.assert_allclose(successes_at_most(x), by_convolution(x), rtol=0, atol=3e-12)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", [257, 1000, 3000])
def test_groups_of_neighbors_only_lower_it_and_little(law, n):
    x = np.sort(LAWS[law](np.random.default_rng(n), n))
    gap = by_convolution(x) - successes_at_most(x)
    assert gap.min() >= -1e-13
    assert gap.max() < 1e-3


@pytest.mark.parametrize(("n", "p"), [(300, 0.02), (100_000, 0.1), (1_000_000, 0.5), (1_000_000, 1e-7)])
def test_equal_trials_are_binomial(n, p):
    gap = binom.cdf(np.arange(n + 1), n, p) - successes_at_most(np.full(n, p))
    assert gap.min() >= 0.0 or np.isclose(gap.min(), 0.0, atol=1e-15)
    assert gap.max() < 1e-8


def test_no_trial_has_no_success():
    np.testing.assert_array_equal(successes_at_most(np.zeros(0)), [1.0])
