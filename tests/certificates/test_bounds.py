"""Exact binomial bounds and the embedding radius: closed forms, SciPy's opinion, refusals."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, binomtest

from steingate.certificates.bounds import clopper_pearson_upper, embedding_radius, unit_sample
from steingate.errors import InputError


@pytest.mark.parametrize(("k", "n", "delta"), [(0, 29, 0.05), (1, 46, 0.05), (7, 30, 0.01), (30, 30, 0.1)])
def test_clopper_pearson_solves_the_binomial_equation(k, n, delta):
    upper = clopper_pearson_upper(k, n, delta)
    if k == n:
        assert upper == 1.0
    else:
        assert binom.cdf(k, n, upper) == pytest.approx(delta, rel=1e-9)
    interval = binomtest(k, n).proportion_ci(1 - 2 * delta, "exact")
    assert upper == pytest.approx(interval.high, abs=1e-9)


@pytest.mark.parametrize(("k", "n"), [(0, 29), (1, 46), (2, 61), (3, 76)])
def test_counts_that_certify_a_tenth(k, n):
    assert clopper_pearson_upper(k, n, 0.05) <= 0.1 < clopper_pearson_upper(k, n - 1, 0.05)


def test_a_tiny_error_probability_is_no_trouble():
    assert clopper_pearson_upper(1, 400, 1e-20) == pytest.approx(
        brentq(lambda p: binom.logcdf(1, 400, p) - np.log(1e-20), 1e-3, 0.9), rel=1e-9
    )


def test_embedding_radius():
    assert embedding_radius(24.0, 40, 0.05) == pytest.approx(np.sqrt(24 / 40) * (1 + np.sqrt(2 * np.log(20))))
    assert embedding_radius(np.inf, 40, 0.05) == np.inf


def test_a_unit_sample_is_sorted():
    np.testing.assert_array_equal(unit_sample([0.5, 0.0, 1.0]), [0.0, 0.5, 1.0])


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: unit_sample([]), "empty"),
        (lambda: unit_sample([0.1, 1.5]), "1.5"),
        (lambda: unit_sample([0.1, np.nan]), "nan"),
        (lambda: clopper_pearson_upper(0, 0, 0.05), "n is 0"),
        (lambda: clopper_pearson_upper(0, 5, 1.0), "delta is 1.0"),
        (lambda: clopper_pearson_upper(5, 4, 0.05), "k is 5"),
        (lambda: embedding_radius(-1.0, 4, 0.05), "M_u is -1.0"),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(InputError, match=named):
        call()
