import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from steingate.algorithms.common.projection import project, projected_direction
from steingate.algorithms.common.sizes import TrustRegion
from steingate.algorithms.common.subproblem import Case

MAX_KL = 0.01


def dense_problem(seed, n=5):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n))
    return root @ root.T / n + 0.1 * np.eye(n), rng.normal(size=n), 0.2 * rng.normal(size=n)


def letters(H, g, b):
    x, p = np.linalg.solve(H, g), np.linalg.solve(H, b)
    return x, p, g @ x, g @ p, b @ p


@pytest.mark.parametrize("seed", range(12))
def test_projection_against_a_general_solver(seed):
    H, g, b = dense_problem(seed)
    c = np.random.default_rng(100 + seed).normal(scale=0.02)
    x, p, q, r, s = letters(H, g, b)
    with jax.enable_x64(True):
        step = np.asarray(project(x, p, q, r, s, c, MAX_KL).step)
    full = np.sqrt(2 * MAX_KL / q) * x
    found = minimize(
        lambda y: 0.5 * (y - full) @ H @ (y - full),
        np.zeros(len(g)),
        jac=lambda y: H @ (y - full),
        constraints={"type": "ineq", "fun": lambda y: -(c + b @ y), "jac": lambda y: -b},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(step, found.x, atol=2e-5)
    assert c + b @ step <= 1e-6
    if c + b @ full <= 0:
        np.testing.assert_allclose(step, full, atol=1e-6)


def solved(variant, c, seed=3, mode=1):
    H, g, b = dense_problem(seed)
    with jax.enable_x64(True):
        cfg = TrustRegion(cg_iters=40, variant=variant)
        found = projected_direction(
            lambda v: jnp.asarray(H) @ v, jnp.asarray(g), jnp.asarray(b), mode, jnp.asarray(c), cfg
        )
        direction, case, solves = jax.tree.map(np.asarray, found)
    return (H, g, b), direction.step, int(case), int(solves)


def test_the_corrected_step_solves_both_systems_and_has_no_reward_condition():
    (H, g, b), step, case, solves = solved("corrected", 0.05)
    x, p, q, r, s = letters(H, g, b)
    size = np.sqrt(2 * MAX_KL / q)
    np.testing.assert_allclose(
        step, size * x - max((size * r + 0.05) / s, 0.0) * p, atol=2e-4
    )  # the 1e-6 of the solver
    assert (case, solves) == (Case.REACHABLE, 2)


def test_recovery_lowers_cost_alone():
    (H, _, b), step, case, _ = solved("corrected", 0.0, mode=2)
    p = np.linalg.solve(H, b)
    np.testing.assert_allclose(step, -np.sqrt(2 * MAX_KL / (b @ p)) * p, atol=2e-4)
    assert case == Case.OUT_OF_REACH


def test_the_published_step_follows_the_plain_gradient():
    """With the limit far away what is left is sqrt(2 max_kl / q) g, whose KL is not max_kl."""
    (H, g, _), step, _, _ = solved("published", -1e3)
    q = g @ np.linalg.solve(H, g)
    np.testing.assert_allclose(step, np.sqrt(2 * MAX_KL / q) * g, rtol=1e-3)
    assert 0.5 * step @ H @ step == pytest.approx(MAX_KL * (g @ H @ g) / q, rel=1e-3)
    assert abs(0.5 * step @ H @ step / MAX_KL - 1.0) > 0.2
    _, right, _, _ = solved("corrected", -1e3)
    assert 0.5 * right @ H @ right == pytest.approx(MAX_KL, rel=1e-3)
