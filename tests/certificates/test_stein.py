"""Stein kernels: zero mean under the reference, brute force, published vectors, null quantiles."""

from itertools import pairwise
from math import inf, isclose

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy.special import expit

from steingate.certificates.kernels import KERNELS, Kernel, released_length
from steingate.certificates.reference import Beta, Density, LogitNormal
from steingate.certificates.stein import (
    ksd,
    ksd_squared,
    stein_coefficients,
    stein_kernel,
    stein_kernel_bound,
)
from steingate.errors import InputError

OPERATORS = ("langevin", "weighted")
SMOOTH = Density(log_pdf=lambda x: 2.0 * np.log(x) + np.log1p(-x) + np.sin(5.0 * x), name="wavy")
SCORED = Density(score=lambda x: 1.5 / x - 2.5 / (1.0 - x) - 3.0 * x, name="scored")
VANISHING = [Beta(2, 5), Beta(2, 6.506), Beta(1.5, 2.2), LogitNormal(-1.0, 0.8), SMOOTH, SCORED]
BOUNDARY = [Beta(1, 10), Beta(0.5, 0.5), Beta(3, 0.4)]
interior_points = st.floats(1e-5, 1.0 - 1e-5)


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
    return sum(
        integrate.quad(integrand, *part, epsabs=1e-11, epsrel=1e-11, limit=400)[0] for part in pairwise(edges)
    )


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("interior", VANISHING, ids=repr)
def test_stein_identity_where_the_density_vanishes_at_both_ends(interior, operator, name):
    for y in (0.03, 0.6):
        assert abs(stein_mean(interior, Kernel(name, 0.2), operator, y)) < 2e-8


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("interior", BOUNDARY, ids=repr)
def test_weighted_stein_identity_needs_nothing_from_the_density(interior, name):
    for y in (0.03, 0.6):
        assert abs(stein_mean(interior, Kernel(name, 0.2), "weighted", y)) < 2e-8


@pytest.mark.parametrize("name", KERNELS)
def test_langevin_identity_fails_by_the_boundary_term(name):
    # Beta(1, 10) has density 10 at 0, so integration by parts leaves -10 k(0, y).
    kernel = Kernel(name, 0.2)
    assert stein_mean(Beta(1, 10), kernel, "langevin", 0.1) == pytest.approx(
        -10.0 * float(kernel(0.1)), abs=1e-7
    )


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("interior", [Beta(2, 5), LogitNormal(-1.0, 0.8), SMOOTH], ids=repr)
def test_stein_kernel_is_the_operator_applied_to_both_arguments(interior, name, operator):
    base, h = Kernel(name, 0.3), 1e-4

    def weight(x):
        return x * (1 - x) if operator == "weighted" else 1.0

    def weighted(x, y):
        return weight(x) * float(base(x - y)) * weight(y)

    def inner(x, y):  # the operator on y, derivative by difference
        score = float(interior.score(np.array([y]))[0])
        return score * weighted(x, y) + (weighted(x, y + h) - weighted(x, y - h)) / (2 * h)

    for x, y in ((0.2, 0.7), (0.45, 0.3), (0.9, 0.05)):
        score = float(interior.score(np.array([x]))[0])
        expected = score * inner(x, y) + (inner(x + h, y) - inner(x - h, y)) / (2 * h)
        assert stein_kernel([x], [y], interior, base, operator)[0, 0] == pytest.approx(
            expected, rel=1e-5, abs=1e-5
        )


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", KERNELS)
def test_statistics_are_the_double_sums(name, operator):
    x = np.random.default_rng(3).beta(2, 5, 23)
    interior, kernel = Beta(2, 5), Kernel(name, 0.1)
    u = [[stein_kernel([p], [q], interior, kernel, operator)[0, 0] for q in x] for p in x]
    every = sum(u[i][j] for i in range(23) for j in range(23))
    different = sum(u[i][j] for i in range(23) for j in range(23) if i != j)
    for method in ("auto", "direct", "fast"):
        assert ksd_squared(x, interior, kernel, operator, "V", method) == pytest.approx(
            every / 23**2, rel=1e-10
        )
        assert ksd_squared(x, interior, kernel, operator, "U", method) == pytest.approx(
            different / (23 * 22), rel=1e-10
        )


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
    [(16, 4000, (1.8, 3.1, 7.0)), (40, 4000, (1.3, 2.3, 4.0)), (1000, 400, (0.40, 0.62, 0.98))],
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


def test_u_statistic_is_unbiased_at_zero_under_the_reference():
    rng = np.random.default_rng(12)
    kernel = Kernel("matern52", 0.2)
    values = [ksd_squared(rng.beta(2, 5, 20), Beta(2, 5), kernel, "weighted", "U") for _ in range(4000)]
    assert abs(np.mean(values)) < 4.0 * np.std(values) / np.sqrt(4000)


def test_largest_stein_kernel_of_both_operators():
    kernel = Kernel("matern52", 0.2)
    assert stein_kernel_bound(Beta(2, 5), kernel, "weighted", 0.01) == pytest.approx(24.3, abs=0.05)
    assert stein_kernel_bound(Beta(2, 5), kernel, "langevin", 0.01) == pytest.approx(160_000, rel=0.01)
    assert stein_kernel_bound(Beta(2, 5), kernel, "langevin", 1e-5) == pytest.approx(1.6e11, rel=0.01)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_bound_is_the_maximum_over_the_square(name, operator):
    interior, kernel = Beta(2, 3), Kernel(name, 0.3)
    grid = np.linspace(0.05, 0.95, 301)
    largest = np.abs(stein_kernel(grid, grid, interior, kernel, operator)).max()
    bound = stein_kernel_bound(interior, kernel, operator, 0.05)
    assert largest <= bound * (1 + 1e-12)
    assert isclose(largest, bound, rel_tol=1e-3)


def test_bound_without_clip_is_finite_only_where_the_kernel_is_bounded():
    kernel = Kernel("matern52", 0.2)
    assert stein_kernel_bound(Beta(2, 5), kernel, "weighted", 0.0) == pytest.approx(25.0, rel=1e-9)
    assert stein_kernel_bound(Beta(0.5, 0.5), kernel, "weighted", 0.0) == pytest.approx(
        5 / 3 / 0.04 / 16, rel=1e-6
    )
    assert stein_kernel_bound(LogitNormal(-1, 1), kernel, "weighted", 0.0) == inf
    assert stein_kernel_bound(Beta(2, 5), kernel, "langevin", 0.0) == inf


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", KERNELS)
@settings(deadline=None, max_examples=40)
@given(points=st.lists(interior_points, min_size=1, max_size=25), length=st.floats(1e-2, 3.0))
def test_stein_kernel_is_symmetric_and_positive_semidefinite(name, operator, points, length):
    u = stein_kernel(points, points, Beta(2, 5), Kernel(name, length), operator)
    np.testing.assert_allclose(u, u.T, rtol=1e-12, atol=1e-12 * np.abs(u).max())
    assert np.linalg.eigvalsh(u).min() >= -1e-11 * np.trace(u)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", KERNELS)
@settings(deadline=None, max_examples=30)
@given(points=st.lists(interior_points, min_size=2, max_size=60), seed=st.integers(0, 99))
def test_order_of_samples_does_not_matter(name, operator, points, seed):
    shuffled = np.random.default_rng(seed).permutation(points)
    kernel = Kernel(name, 0.1)
    for method in ("direct", "fast"):
        one = ksd_squared(points, Beta(2, 5), kernel, operator, "V", method)
        other = ksd_squared(shuffled, Beta(2, 5), kernel, operator, "V", method)
        assert one == pytest.approx(other, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    "bad", [[], [0.0, 0.5], [0.5, 1.0], [0.2, float("nan")], [0.3, -0.1], [float("inf"), 0.5]]
)
def test_samples_outside_the_open_interval_are_refused(bad):
    with pytest.raises(InputError, match="samples"):
        ksd_squared(bad, Beta(2, 5), Kernel("rbf", 0.1))


def test_unknown_options_are_refused():
    kernel = Kernel("rbf", 0.1)
    with pytest.raises(InputError, match="operator 'drift'"):
        ksd_squared([0.5], Beta(2, 5), kernel, "drift")
    with pytest.raises(InputError, match="'W'-statistic"):
        ksd_squared([0.5], Beta(2, 5), kernel, "langevin", "W")
    with pytest.raises(InputError, match="'slow' sum"):
        ksd_squared([0.5], Beta(2, 5), kernel, method="slow")
    with pytest.raises(InputError, match="no U-statistic"):
        ksd_squared([0.5], Beta(2, 5), kernel, statistic="U")
    with pytest.raises(InputError, match=r"clip is 0\.5"):
        stein_kernel_bound(Beta(2, 5), kernel, "weighted", 0.5)
