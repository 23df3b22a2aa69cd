import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from tests.algorithms.problems import dense_problem

from steingate.algorithms.base import Mode
from steingate.algorithms.common.trust_region import Case, StepRule
from steingate.algorithms.config import LineSearchConfig, TrustRegionConfig
from steingate.algorithms.pcpo import project, projected_direction

MAX_KL = 0.01


def exact_parts(hessian, g, b):
    x, p = np.linalg.solve(hessian, g), np.linalg.solve(hessian, b)
    return x, p, g @ x, g @ p, b @ p


@pytest.mark.parametrize("seed", range(12))
def test_the_projection_against_a_quadratic_program(seed):
    hessian, g, b = dense_problem(5, seed, 0.2)
    c = np.random.default_rng(100 + seed).normal(scale=0.02)
    x, p, q, r, s = exact_parts(hessian, g, b)
    with jax.enable_x64(True):
        step = np.asarray(project(x, p, q, r, s, c, MAX_KL).step)
    full = np.sqrt(2 * MAX_KL / q) * x
    found = minimize(
        lambda y: 0.5 * (y - full) @ hessian @ (y - full),
        np.zeros(len(g)),
        jac=lambda y: hessian @ (y - full),
        constraints={"type": "ineq", "fun": lambda y: -(c + b @ y), "jac": lambda y: -b},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(step, found.x, atol=2e-5)
    assert c + b @ step <= 1e-6
    if c + b @ full <= 0:
        np.testing.assert_allclose(step, full, atol=1e-6)


def solve(variant, c, mode=Mode.BALANCE):
    hessian, g, b = dense_problem(5, 3, 0.2)
    rule = StepRule(TrustRegionConfig(cg_iters=40), LineSearchConfig(), variant)
    with jax.enable_x64(True):
        found = projected_direction(
            lambda v: jnp.asarray(hessian) @ v, jnp.asarray(g), jnp.asarray(b), mode, jnp.asarray(c), rule
        )
        direction, case, solves = jax.tree.map(np.asarray, found)
    assert solves == 2
    return (hessian, g, b), direction.step, int(case)


def test_the_corrected_step_solves_both_systems_and_ignores_the_reward_in_the_line_search():
    parts, step, case = solve("corrected", 0.05)
    x, p, q, r, s = exact_parts(*parts)
    size = np.sqrt(2 * MAX_KL / q)
    # atol: the 1e-6 in the denominators of conjugate gradients
    np.testing.assert_allclose(step, size * x - max((size * r + 0.05) / s, 0.0) * p, atol=2e-4)
    assert case == Case.REACHABLE


def test_a_recovery_minimizes_cost():
    (hessian, _, b), step, case = solve("corrected", 0.0, Mode.RECOVER)
    p = np.linalg.solve(hessian, b)
    np.testing.assert_allclose(step, -np.sqrt(2 * MAX_KL / (b @ p)) * p, atol=2e-4)
    assert case == Case.OUT_OF_REACH


def test_the_published_step_follows_the_plain_gradient():
    """With a distant limit it is sqrt(2 max_kl / q) g, whose KL is not max_kl."""
    (hessian, g, _), step, _ = solve("published", -1e3)
    q = g @ np.linalg.solve(hessian, g)
    np.testing.assert_allclose(step, np.sqrt(2 * MAX_KL / q) * g, rtol=1e-3)
    assert abs(0.5 * step @ hessian @ step / MAX_KL - 1.0) > 0.2
    _, right, _ = solve("corrected", -1e3)
    assert 0.5 * right @ hessian @ right == pytest.approx(MAX_KL, rel=1e-3)
