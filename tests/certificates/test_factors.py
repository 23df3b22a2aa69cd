"""Stein factors: recorded numbers, two ways to the same norm, and validity of the bound."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta as beta_law

from steingate.certificates.factors import (
    grid_factors,
    lemma_constants,
    required_discrete_weight,
    rkhs_factor,
)
from steingate.certificates.kernels import Kernel, stein_kernel
from steingate.certificates.reference import Beta, Density, HybridReference, LogitNormal
from steingate.certificates.risk import Exceedance, Hinge, Power, Sigmoid

SIGMOID = Sigmoid(0.5, 0.02)
MATERN = Kernel("matern52", 0.2)


@pytest.mark.parametrize(
    ("interior", "K_p", "M_p", "B_int"), [(Beta(2, 5), 0.2153, 4, 1.3265), (Beta(1, 10), 0.0933, 9, 1.1830)]
)
def test_lemma_constants_of_beta_references(interior, K_p, M_p, B_int):
    found = lemma_constants(interior)
    assert found.holds
    assert found.K_p == pytest.approx(K_p, abs=5e-5)
    assert found.M_p == pytest.approx(M_p, rel=1e-7)
    assert found.B_int == pytest.approx(B_int, abs=2e-4)
    law = beta_law(interior.a, interior.b)
    x = np.append(np.linspace(0.001, 0.999, 3000), law.median())
    assert found.K_p == pytest.approx(np.max(np.minimum(law.cdf(x), law.sf(x)) / law.pdf(x)), rel=1e-6)


def test_lemma_constants_hold_for_a_density_given_by_its_score():
    density = Density(score=lambda x: 1 / x - 4 / (1 - x))
    expected, found = lemma_constants(Beta(2, 5)), lemma_constants(density)
    assert (found.K_p, found.M_p) == pytest.approx((expected.K_p, expected.M_p), rel=1e-5)


@pytest.mark.parametrize(
    "interior", [LogitNormal(-1.0, 1.0), Density(log_pdf=lambda x: -0.1 / x - 0.1 / (1 - x))]
)
def test_lemma_fails_where_the_weighted_score_is_unbounded(interior):
    found = lemma_constants(interior)
    assert not found.holds
    assert found.M_p == found.B_int == np.inf
    assert np.isfinite(found.K_p)
    assert "M_p is infinite" in found.reason


@pytest.mark.parametrize(
    ("operator", "length", "factor"),
    [
        ("langevin", 0.05, 0.143),
        ("langevin", 0.1, 0.107),
        ("langevin", 0.2, 0.115),
        ("weighted", 0.05, 0.674),
        ("weighted", 0.1, 0.4975),
        ("weighted", 0.2, 0.476),
    ],
)
def test_matern_factor_is_the_limit_of_the_grid_from_above(operator, length, factor):
    kernel = Kernel("matern52", length)
    found = rkhs_factor(Beta(2, 5), SIGMOID, kernel, operator)
    assert found.converged
    assert found.value == pytest.approx(factor, abs=6e-4)
    grid = [grid_factors(Beta(2, 5), SIGMOID, kernel, operator, size)[-1] for size in (50, 100, 200, 400)]
    assert grid[0] < grid[1] < grid[2]
    assert max(grid) < found.value
    assert grid[-1] == pytest.approx(found.value, rel=3e-4)


@pytest.mark.parametrize("interior", [Beta(2, 6.506), Beta(1, 10), Beta(0.7, 3.3)])
@pytest.mark.parametrize("operator", ["langevin", "weighted"])
def test_grid_never_exceeds_the_factor_of_other_references(interior, operator):
    found = rkhs_factor(interior, SIGMOID, MATERN, operator)
    grid = grid_factors(interior, SIGMOID, MATERN, operator, 300)[-1]
    assert 0.995 * found.value < grid < found.value


def test_factor_of_a_reference_is_that_of_its_interior_and_is_cached():
    plain = rkhs_factor(Beta(2, 5), SIGMOID, MATERN, "weighted")
    assert rkhs_factor(HybridReference(Beta(2, 5), 0.3, 0.1), Sigmoid(0.5, 0.02), MATERN, "weighted") is plain
    same = Density(log_pdf=lambda x: np.log(x) + 4 * np.log1p(-x))
    assert rkhs_factor(same, SIGMOID, MATERN, "weighted").value == pytest.approx(plain.value, rel=1e-4)

    class Unhashable(Sigmoid):
        __hash__ = None

    assert rkhs_factor(Beta(2, 5), Unhashable(), MATERN, "weighted").value == plain.value


@pytest.mark.parametrize(
    ("interior", "risk"),
    [
        (LogitNormal(-1.0, 1.0), SIGMOID),
        (Beta(2, 5), Exceedance(0.5)),
        (Beta(2, 5), Exceedance(0.37)),
        (Beta(2, 5), Hinge(0.5)),
        (Beta(2, 5), Power(0.7)),
    ],
)
@pytest.mark.parametrize("operator", ["langevin", "weighted"])
def test_solutions_that_are_not_smooth_have_no_factor(interior, risk, operator):
    found = rkhs_factor(interior, risk, MATERN, operator)
    assert found.value is None
    assert not found.converged
    assert "no factor is known to be valid" in found.reason
    assert found.values[-1] > 1.1 * found.values[0]


def test_a_slowly_diverging_norm_is_noticed():
    """The third derivative of x^2.4 misses square integrability by a hair."""
    assert rkhs_factor(Beta(2, 5), Power(2.4), MATERN, "weighted").value is None
    assert rkhs_factor(Beta(2, 5), Power(3.0), MATERN, "weighted").converged


@pytest.mark.parametrize("shapes", [(2, 5), (2, 30), (5, 1.5), (0.3, 0.4), (1, 1), (20, 20)])
@pytest.mark.parametrize(
    "risk", [Sigmoid(0.3, 1.0), Sigmoid(0.5, 0.2), Sigmoid(0.9, 0.02), Sigmoid(0.5, 0.0005)]
)
@pytest.mark.parametrize("operator", ["langevin", "weighted"])
def test_every_sigmoid_has_a_factor_for_every_beta_reference(shapes, risk, operator):
    kernel = Kernel("matern52", 1.0)
    found = rkhs_factor(Beta(*shapes), risk, kernel, operator)
    assert found.converged
    assert grid_factors(Beta(*shapes), risk, kernel, operator, 60)[-1] < found.value


def test_a_reference_that_underflows_has_no_factor():
    found = rkhs_factor(Density(log_pdf=lambda x: -1 / x - 1 / (1 - x)), SIGMOID, MATERN, "weighted")
    assert found.value is None
    assert "too thin" in found.reason
    narrow = rkhs_factor(Beta(2, 2000), SIGMOID, MATERN, "weighted")
    assert narrow.value is None
    assert "such as a Beta" not in narrow.reason


@pytest.mark.parametrize("name", ["matern52", "rbf", "imq"])
def test_a_constant_risk_needs_no_factor(name):
    found = rkhs_factor(Beta(2, 5), lambda x: np.full(np.shape(x), 0.3), Kernel(name, 0.2), "weighted")
    assert found.value == 0.0


@pytest.mark.parametrize("operator", ["langevin", "weighted"])
@pytest.mark.parametrize("length", [0.05, 0.1])
def test_gaussian_kernel_does_not_settle_and_is_refused(operator, length):
    kernel = Kernel("rbf", length)
    found = rkhs_factor(Beta(2, 5), SIGMOID, kernel, operator)
    assert found.value is None
    assert "Gaussian" in found.reason
    by_cut = grid_factors(Beta(2, 5), SIGMOID, kernel, operator, 200)
    assert np.all(np.diff(by_cut) > 0)
    assert by_cut[-1] > 2 * by_cut[-2]


def test_imq_settles_exactly_while_the_sigmoid_is_analytic_enough():
    """The IMQ RKHS holds functions analytic up to length / 2 off the line; the sigmoid is up to pi width."""
    for length in (0.05, 0.1):
        found = rkhs_factor(Beta(2, 5), SIGMOID, Kernel("imq", length), "weighted")
        finer = grid_factors(Beta(2, 5), SIGMOID, Kernel("imq", length), "weighted", 600, (1e-14,))[0]
        assert finer < found.value < 1.02 * finer
    for length in (0.13, 0.2):
        found = rkhs_factor(Beta(2, 5), SIGMOID, Kernel("imq", length), "weighted")
        assert found.value is None
        assert "still changes" in found.reason


GRID = (np.arange(600) + 0.5) / 600


def mixture(rng):
    """Return the cell masses on GRID of a random mixture of three Beta densities."""
    shares = rng.dirichlet(np.ones(3))
    edges = np.linspace(0.0, 1.0, GRID.size + 1)
    shapes = np.exp(rng.uniform(np.log(0.7), np.log(40.0), (3, 2)))
    return sum(s * np.diff(beta_law.cdf(edges, a, b)) for s, (a, b) in zip(shares, shapes, strict=True))


@pytest.mark.parametrize(
    ("operator", "kernel"),
    [
        ("weighted", MATERN),
        ("langevin", MATERN),
        ("weighted", Kernel("matern52", 0.05)),
        ("weighted", Kernel("imq", 0.1)),
    ],
)
def test_factor_bounds_the_risk_of_three_hundred_mixtures(operator, kernel):
    """For discrete q the KSD is a finite sum, so the inequality can be checked to rounding."""
    interior = Beta(2, 5)
    rng = np.random.default_rng(0)
    weights = np.array([mixture(rng) for _ in range(300)])
    u = stein_kernel(GRID, GRID, interior, kernel, operator)
    ksd = np.sqrt(np.einsum("qi,ij,qj->q", weights, u, weights, optimize=True))
    gap = weights @ SIGMOID(GRID) - HybridReference(interior).expectation(SIGMOID)
    factor = rkhs_factor(interior, SIGMOID, kernel, operator).value
    assert np.all(gap <= factor * ksd)
    assert np.max(gap / (factor * ksd)) > 0.4  # and it is not a bound by brute size


def test_published_factor_is_violated_where_the_valid_one_holds():
    """The worst q leans towards the Stein solution; 0.10 is no factor for the weighted Matern kernel."""
    interior = Beta(2, 5)
    u = stein_kernel(GRID, GRID, interior, MATERN, "weighted")
    gap = SIGMOID(GRID) - HybridReference(interior).expectation(SIGMOID)
    base = np.diff(beta_law.cdf(np.linspace(0.0, 1.0, GRID.size + 1), 2, 5))
    worst = np.linalg.solve(u + 1e-8 * np.eye(GRID.size), gap) / 50
    q = base + worst * base.min() / np.abs(worst).max()
    q = np.maximum(q + 1e-3 * (GRID > 0.5) * base, 0)
    q /= q.sum()
    ratio = (q @ gap) / np.sqrt(q @ u @ q)
    assert 0.10 < ratio < rkhs_factor(interior, SIGMOID, MATERN, "weighted").value


RISKS = [SIGMOID, Sigmoid(0.2, 0.1), Power(2.0)]


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("atoms", [(0.0, 0.0), (0.4, 0.0), (0.0, 0.1), (0.5, 0.3)])
def test_hybrid_bound_holds_for_random_hybrid_mixtures(risk, atoms):
    reference = HybridReference(Beta(2, 5), *atoms)
    needed = required_discrete_weight(reference, risk)
    factor = rkhs_factor(reference, risk, MATERN, "weighted").value
    assert needed <= 1.0
    rng = np.random.default_rng(1)
    u = stein_kernel(GRID, GRID, reference.interior, MATERN, "weighted")
    for _ in range(100):
        a0, a1, w = rng.dirichlet([0.5, 0.5, 1.0])
        inner = mixture(rng)
        truth = a0 * risk(0.0) + a1 * risk(1.0) + w * (inner @ risk(GRID))
        disc = max(atoms[0] - a0, 0.0) + max(a1 - atoms[1], 0.0)
        bound = reference.expectation(risk) + needed * disc + factor * w * np.sqrt(inner @ u @ inner)
        assert truth <= bound + 1e-12


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("atoms", [(0.0, 0.0), (0.4, 0.0), (0.5, 0.3)])
def test_no_smaller_discrete_weight_is_valid(risk, atoms):
    """Moving one atom into or out of an interior that equals the reference leaves no slack at all."""
    reference = HybridReference(Beta(2, 5), *atoms)
    inner = quad(lambda x: risk(x) * 30 * x * (1 - x) ** 4, 0, 1, points=[0.4, 0.5, 0.6], epsabs=1e-12)[0]
    h_ref, shift = reference.expectation(risk), 0.1
    gains = []
    for a0, a1 in ((atoms[0], atoms[1] + shift), (atoms[0] - shift, atoms[1])):
        if a0 < 0:
            continue
        truth = a0 * risk(0.0) + a1 * risk(1.0) + (1 - a0 - a1) * inner
        gains.append((truth - h_ref) / shift)
    assert max(gains) == pytest.approx(required_discrete_weight(reference, risk), abs=1e-8)
