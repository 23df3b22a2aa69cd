"""The Stein solution against its equation, closed forms and the definition of the norm."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta as beta_law

from steingate.certificates.kernels import Kernel
from steingate.certificates.reference import Beta, HybridReference, LogitNormal
from steingate.certificates.risk import Exceedance, Power, Sigmoid
from steingate.certificates.solution import matern_norm, partial_integrals, stein_solution

X = np.linspace(0.01, 0.99, 99)


def test_partial_integrals_are_the_distribution_function():
    t = np.log(X / (1 - X))
    below, above = partial_integrals(Beta(2, 5), np.ones_like, t)
    assert below == pytest.approx(beta_law.cdf(X, 2, 5), rel=1e-12)
    assert above == pytest.approx(beta_law.sf(X, 2, 5), rel=1e-12)


@pytest.mark.parametrize("interior", [Beta(2, 5), Beta(0.7, 3.3), LogitNormal(-1.0, 1.0)])
@pytest.mark.parametrize("risk", [Sigmoid(), Power(2.0)])
def test_solution_satisfies_the_stein_equation(interior, risk):
    step = 1e-5
    low, middle, high = (stein_solution(interior, risk, X + shift) for shift in (-step, 0.0, step))
    left = X * (1 - X) * (high - low) / (2 * step) + interior.logit_score(X) * middle
    assert left == pytest.approx(risk(X) - HybridReference(interior).expectation(risk), abs=1e-6)


def test_solution_of_the_mean_is_constant():
    """x - a / (a + b) is -1 / (a + b) times the weighted operator applied to 1."""
    assert stein_solution(Beta(2, 5), Power(1.0), X) == pytest.approx(np.full(X.size, -1 / 7), rel=1e-10)


def test_solution_of_a_step_matches_quadrature():
    law = beta_law(2, 5)
    mean = law.sf(0.5)
    for x in (0.2, 0.5, 0.9):
        integral = quad(lambda y: (float(y > 0.5) - mean) * law.pdf(y), 0, x, points=[0.5], epsabs=1e-14)[0]
        found = stein_solution(Beta(2, 5), Exceedance(0.5), np.array([x]))[0]
        assert found == pytest.approx(integral / (law.pdf(x) * x * (1 - x)), rel=1e-9)


@pytest.mark.parametrize("length", [0.05, 0.2, 1.0])
def test_norm_is_the_limit_of_interpolation(length):
    """The norm of the constant -1 / 7 by least-norm interpolants, whose error halves with the spacing."""
    kernel = Kernel("matern52", length)
    squares = []
    for size in (101, 201):
        x = np.linspace(0.0, 1.0, size)
        squares.append(np.linalg.solve(kernel.derivatives(x[:, None] - x)[0], np.ones(size)).sum() / 49)
    found = matern_norm(Beta(2, 5), Power(1.0), kernel, "weighted", 24) ** 2
    assert squares[0] < squares[1] < found
    assert 2 * squares[1] - squares[0] == pytest.approx(found, rel=2e-3)
    assert found == pytest.approx((9 / 8 + 3 * np.sqrt(5) / (16 * length)) / 49, rel=1e-8)
