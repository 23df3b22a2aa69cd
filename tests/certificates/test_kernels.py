"""Kernels and KSD: derivatives, Stein identity, double sums, published numbers, fast sums."""

from itertools import pairwise
from math import log, sqrt
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy.special import expit

from steingate.certificates.kernels import (
    Kernel,
    KernelName,
    ksd,
    ksd_squared,
    released_length,
    stein_coefficients,
    stein_kernel,
)
from steingate.certificates.reference import Beta, LogitNormal
from steingate.errors import InputError

KERNELS = get_args(KernelName)
OPERATORS = ("langevin", "weighted")
SMOOTH = LogitNormal(0.4, 0.6)
VANISHING = [Beta(2, 6.506), Beta(1.5, 2.2), LogitNormal(-1.0, 0.8), SMOOTH]
BOUNDARY = [Beta(1, 10), Beta(0.5, 0.5), Beta(3, 0.4)]
lengths = st.floats(1e-3, 10.0)


def value(kernel, d):
    return kernel.derivatives(d)[0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rbf", np.exp(-0.5 * 2.25)),
        ("matern52", (1 + sqrt(5) * 1.5 + 5 * 2.25 / 3) * np.exp(-sqrt(5) * 1.5)),
    ],
)
def test_values_at_one_and_a_half_lengths(name, expected):
    np.testing.assert_allclose(value(Kernel(name, 0.2), [0.3, -0.3, 0.0]), [expected, expected, 1.0], rtol=1e-14)


@pytest.mark.parametrize("name", KERNELS)
@settings(deadline=None)
@given(length=lengths, z=st.floats(-6.0, 6.0))
def test_derivatives_are_derivatives(name, length, z):
    kernel = Kernel(name, length)
    d, step = z * length, 1e-4 * length
    _, k1, k2 = kernel.derivatives(np.array([d]))
    slope = float(value(kernel, d + step) - value(kernel, d - step)) / 2e-4
    assert k1[0] * length == pytest.approx(slope, abs=1e-7)
    slopes = kernel.derivatives(np.array([d - step, d + step]))[1]
    # The third derivative of matern52 jumps at 0, which costs the difference one order of accuracy there.
    assert k2[0] * length**2 == pytest.approx(
        (slopes[1] - slopes[0]) * length / 2e-4, abs=1e-3 if abs(z) < 1e-3 else 1e-6
    )


def test_released_length_of_the_published_vectors():
    assert released_length([0.1, 0.2, 0.3, 0.5]) ** 2 == pytest.approx(0.0248534, abs=5e-8)
    assert released_length([0.1, 0.1]) ** 2 == pytest.approx(0.0025, abs=1e-15)
    x = [0.04, 0.08, 0.12, 0.16, 0.20, 0.24, 0.28, 0.40]
    assert released_length(x) ** 2 == pytest.approx(0.00655372, abs=5e-9)
    assert released_length([0.3], 0.07) == 0.07


@settings(deadline=None)
@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=30), st.floats(1e-3, 0.2))
def test_released_length_follows_its_definition(points, floor):
    n = len(points)
    squares = sorted((points[i] - points[j]) ** 2 for i in range(n) for j in range(i))
    median = squares[(len(squares) - 1) // 2]
    expected = sqrt(max(median / max(log(n + 1), 1.0), floor**2))
    assert released_length(points, floor) == pytest.approx(expected, rel=1e-14)


def stein_mean(interior, kernel, operator, y):
    """E_p[T k(., y)], by quadrature over logit(x) with a split at y, where matern52 has its kink."""

    def integrand(t):
        x = np.atleast_1d(expit(t))
        a, b = stein_coefficients(x, interior, operator)
        k, k1, _ = kernel.derivatives(x - y)
        return float(((a * k1 + b * k) * np.exp(interior.logit_log_pdf(t)))[0])

    low, high = interior.logit_range
    if operator == "langevin" or not isinstance(interior, Beta):
        low, high = -60.0, 30.0  # 1 - x has no digits left beyond
    center = float(np.log(y / (1 - y)))
    edges = sorted({low, -6.0, -2.0, center, 2.0, 6.0, high})
    return sum(integrate.quad(integrand, *part, epsabs=1e-11, epsrel=1e-11, limit=400)[0] for part in pairwise(edges))


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("interior", VANISHING, ids=repr)
def test_stein_identity_where_the_density_vanishes_at_both_ends(interior, operator, name):
    for y in (0.03, 0.6):
        assert abs(stein_mean(interior, Kernel(name, 0.2), operator, y)) < 2e-8


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("interior", BOUNDARY, ids=repr)
def test_weighted_stein_identity_holds_for_every_density(interior, name):
    for y in (0.03, 0.6):
        assert abs(stein_mean(interior, Kernel(name, 0.2), "weighted", y)) < 2e-8


@pytest.mark.parametrize("name", KERNELS)
def test_langevin_identity_fails_by_the_boundary_term(name):
    # Beta(1, 10) has density 10 at 0, so integration by parts leaves -10 k(0, y).
    kernel = Kernel(name, 0.2)
    expected = -10.0 * float(value(kernel, 0.1))
    assert stein_mean(Beta(1, 10), kernel, "langevin", 0.1) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("interior", [Beta(2, 5), LogitNormal(-1.0, 0.8), SMOOTH], ids=repr)
def test_stein_kernel_is_the_operator_applied_to_both_arguments(interior, name, operator):
    base, h = Kernel(name, 0.3), 1e-4

    def weight(x):
        return x * (1 - x) if operator == "weighted" else 1.0

    def weighted(x, y):
        return weight(x) * float(value(base, x - y)) * weight(y)

    def inner(x, y):  # the operator on y, derivative by difference
        score = float(interior.score(np.array([y]))[0])
        return score * weighted(x, y) + (weighted(x, y + h) - weighted(x, y - h)) / (2 * h)

    for x, y in ((0.2, 0.7), (0.45, 0.3), (0.9, 0.05)):
        score = float(interior.score(np.array([x]))[0])
        expected = score * inner(x, y) + (inner(x + h, y) - inner(x - h, y)) / (2 * h)
        found = stein_kernel([x], [y], interior, base, operator)[0, 0]
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", KERNELS)
def test_the_statistic_is_the_double_sum(name, operator):
    x = np.random.default_rng(3).beta(2, 5, 23)
    interior, kernel = Beta(2, 5), Kernel(name, 0.1)
    total = sum(stein_kernel([p], [q], interior, kernel, operator)[0, 0] for q in x for p in x)
    assert ksd_squared(x, interior, kernel, operator) == pytest.approx(total / 23**2, rel=1e-10)


def test_langevin_rbf_is_the_released_formula():
    x = np.random.default_rng(4).beta(2, 5, 9)
    h2, total = 0.013, 0.0
    for p in x:
        for q in x:
            sp, sq, d = 1 / p - 4 / (1 - p), 1 / q - 4 / (1 - q), p - q
            k = np.exp(-d * d / (2 * h2))
            total += (sp * sq + (sp - sq) * d / h2 + 1 / h2 - d * d / h2**2) * k
    assert ksd_squared(x, Beta(2, 5), Kernel("rbf", h2**0.5)) == pytest.approx(total / 81, rel=1e-12)


@pytest.mark.parametrize(
    ("x", "square", "root"),
    [
        ((0.1, 0.2, 0.3, 0.5), 2.536106, 1.592516),
        ((0.1, 0.1), 430.8642, 20.75727),
        ((0.04, 0.08, 0.12, 0.16, 0.20, 0.24, 0.28, 0.40), 7.866313, 2.804695),
    ],
)
def test_published_vectors(x, square, root):
    kernel = Kernel("rbf", released_length(x))
    assert ksd_squared(x, Beta(2, 5), kernel) == pytest.approx(square, rel=4e-7)
    assert ksd(x, Beta(2, 5), kernel) == pytest.approx(root, rel=4e-7)


@pytest.mark.parametrize(
    ("n", "draws", "quantiles"),
    [
        (16, 4000, (1.8, 3.1, 7.0)),
        (40, 4000, (1.3, 2.3, 4.0)),
        pytest.param(1000, 400, (0.40, 0.62, 0.98), marks=pytest.mark.slow),
    ],
)
def test_released_estimator_under_its_own_reference(n, draws, quantiles):
    rng = np.random.default_rng(11)
    values = []
    for _ in range(draws):
        x = np.clip(rng.beta(2, 5, n), 1e-5, 1 - 1e-5)
        values.append(ksd(x, Beta(2, 5), Kernel("rbf", released_length(x))))
    # The upper tail is heavy (1/x scores): its quantile is the least certain of the three.
    for observed, expected, tolerance in zip(
        np.quantile(values, (0.05, 0.5, 0.95)), quantiles, (0.06, 0.05, 0.18), strict=True
    ):
        assert observed == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", KERNELS)
@settings(deadline=None, max_examples=40)
@given(
    points=st.lists(st.floats(1e-5, 1.0 - 1e-5), min_size=1, max_size=25),
    length=st.floats(1e-2, 3.0),
    seed=st.integers(0, 99),
)
def test_stein_kernel_is_positive_semidefinite_and_order_does_not_matter(name, operator, points, length, seed):
    interior, kernel = Beta(2, 5), Kernel(name, length)
    u = stein_kernel(points, points, interior, kernel, operator)
    np.testing.assert_allclose(u, u.T, rtol=1e-12, atol=1e-12 * np.abs(u).max())
    assert np.linalg.eigvalsh(u).min() >= -1e-11 * np.trace(u)
    shuffled = np.random.default_rng(seed).permutation(points)
    one, other = (ksd_squared(x, interior, kernel, operator) for x in (points, shuffled))
    assert one == pytest.approx(other, rel=1e-9, abs=1e-12 * np.trace(u))


@pytest.mark.parametrize("n", [999, 1501])
@pytest.mark.parametrize("kind", ["plain", "clipped", "ties", "cluster"])
def test_the_median_distance_is_the_lower_median_over_all_pairs(kind, n):
    x = np.random.default_rng(n).beta(2, 5, n)
    if kind == "clipped":
        x[: n // 5], x[n // 5 : 2 * n // 5] = 0.0, 1.0
    elif kind == "ties":  # whole costs under a limit of 25
        x = np.round(50 * x) / 50
    elif kind == "cluster":
        x = 0.2 + 1e-4 * x
    x = np.clip(x, 1e-5, 1 - 1e-5)
    distance = np.sort(np.abs(np.subtract.outer(x, x))[np.triu_indices(n, 1)])
    found = released_length(x, 1e-9) * sqrt(log(n + 1))
    assert found == pytest.approx(distance[(distance.size - 1) // 2], rel=1e-9, abs=1e-14)


@pytest.mark.parametrize(
    ("name", "length"), [("rbf", 0.0), ("rbf", float("nan")), ("matern52", -1.0), ("rbf", 1e-200), ("cauchy", 1.0)]
)
def test_bad_kernels_are_refused(name, length):
    with pytest.raises(InputError, match="kernel"):
        Kernel(name, length)


@pytest.mark.parametrize("bad", [[], [0.0, 0.5], [0.5, 1.0], [0.2, float("nan")], [0.3, -0.1], [float("inf"), 0.5]])
def test_samples_outside_the_open_interval_are_refused(bad):
    with pytest.raises(InputError, match="samples"):
        ksd_squared(bad, Beta(2, 5), Kernel("rbf", 0.1))
