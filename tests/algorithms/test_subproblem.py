import jax
import numpy as np
import pytest
from scipy import optimize
from steingate.algorithms.common.subproblem import Case, balance, find_case, improve, limit_is_far, recover

MAX_KL = 0.01


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def solve(hessian, g, b, c, variant):
    """The whole decision with exact linear algebra: case and direction."""
    x, p = np.linalg.solve(hessian, g), np.linalg.solve(hessian, b)
    q, r, s = x @ hessian @ x, g @ p, b @ p
    case = int(find_case(c, b @ b, s, MAX_KL))
    if case in (Case.REACHABLE, Case.CUTS):
        return case, balance(x, p, q, r, s, c, MAX_KL, variant)
    return case, recover(p, s, MAX_KL) if case == Case.OUT_OF_REACH else improve(x, q, MAX_KL)


ROWS = [  # c, g, case, published step, lambda and nu, corrected step, lambda and nu
    (-0.05, (1, 0), 2, (-0.1, 0), (-10, 0), (0.1366, -0.0366), (5.7735, 0.4226)),
    (-0.05, (-1, 0.2), 2, (-0.1521, 0.0211), (6.9282, 0.1072), (-0.1387, 0.0277), (7.2111, 0)),
    (0.05, (1, 0), 1, (0.1414, 0), (7.0711, 0), (0.0366, -0.1366), (5.7735, 1.5774)),
    (0.05, (-1, 0.2), 1, (0.125, -0.025), (-8, 0), (-0.1387, 0.0277), (7.2111, 0)),
]


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("variant", ["published", "corrected"])
def test_recorded_vectors_where_the_limit_cuts(row, variant):
    c, g, case, *answers = row
    step, multipliers = answers[:2] if variant == "published" else answers[2:]
    found, direction = solve(np.eye(2), np.array(g, float), np.array([0.5, 0.5]), c, variant)
    assert found == case
    np.testing.assert_allclose(direction.step, step, atol=1e-4)
    np.testing.assert_allclose([direction.lam, direction.nu], multipliers, atol=1e-4)
    if variant == "corrected":
        assert 0.5 * float(direction.step @ direction.step) == pytest.approx(MAX_KL, rel=1e-5)


@pytest.mark.parametrize("variant", ["published", "corrected"])
@pytest.mark.parametrize("g", [(1.0, 0.0), (-1.0, 0.2), (0.3, 4.0)])
def test_recorded_vectors_where_it_does_not(g, variant):
    g, b = np.array(g), np.array([0.5, 0.5])
    case, direction = solve(np.eye(2), g, b, -0.2, variant)
    assert case == Case.FREE
    np.testing.assert_allclose(direction.step, 0.141421 * g / np.linalg.norm(g), atol=1e-6)
    case, direction = solve(np.eye(2), g, b, 0.2, variant)
    assert case == Case.OUT_OF_REACH
    np.testing.assert_allclose(direction.step, [-0.1, -0.1], atol=1e-6)


def test_a_flat_cost_leaves_the_reward_direction():
    assert int(find_case(-0.001, 1e-7, 1.0, MAX_KL)) == Case.FLAT
    assert int(find_case(0.001, 1e-7, 1.0, MAX_KL)) == Case.REACHABLE


def random_problem(rng):
    """H, g, b and a limit somewhere around the trust region."""
    n = int(rng.integers(2, 7))
    root = rng.normal(size=(n, n))
    hessian = root @ root.T / n + 0.1 * np.eye(n)
    g, b = rng.normal(size=(2, n))
    reach = np.sqrt(2 * MAX_KL * (b @ np.linalg.solve(hessian, b)))
    return hessian, g, b, rng.uniform(-1.3, 1.3) * reach, reach


def by_general_solver(hessian, g, b, c):
    """The same subproblem in whitened coordinates, handed to SciPy."""
    root = np.linalg.cholesky(hessian)
    g_white, b_white = np.linalg.solve(root, g), np.linalg.solve(root, b)
    radius = np.sqrt(2 * MAX_KL)
    upward, normal = g_white / np.linalg.norm(g_white), b_white / np.linalg.norm(b_white)
    distance = c / (radius * np.linalg.norm(b_white))
    answer = optimize.minimize(
        lambda u: -(upward @ u),
        -0.99 * normal,
        jac=lambda u: -upward,
        constraints=[
            {"type": "ineq", "fun": lambda u: 1 - u @ u, "jac": lambda u: -2 * u},
            {"type": "ineq", "fun": lambda u: -(distance + normal @ u), "jac": lambda u: -normal},
        ],
        method="SLSQP",
        options={"ftol": 1e-10, "maxiter": 500},
    )
    # Status 8 is SLSQP unable to improve on its best point: the caller compares that point's value.
    assert answer.status in (0, 8)
    assert answer.x @ answer.x <= 1 + 1e-7
    assert distance + normal @ answer.x <= 1e-7
    return np.linalg.solve(root.T, radius * answer.x)


def test_corrected_steps_against_a_general_solver():
    rng = np.random.default_rng(0)
    seen = dict.fromkeys(Case, 0)
    for _ in range(150):
        hessian, g, b, c, reach = random_problem(rng)
        case, direction = solve(hessian, g, b, c, "corrected")
        seen[Case(case)] += 1
        step = np.asarray(direction.step)
        assert 0.5 * step @ hessian @ step <= MAX_KL * (1 + 1e-5)
        if case == Case.OUT_OF_REACH:
            assert c > reach
            assert b @ step == pytest.approx(-reach, rel=1e-5)
            continue
        assert c + b @ step <= 1e-6 * reach
        scale = np.sqrt(2 * MAX_KL * (g @ np.linalg.solve(hessian, g)))
        assert g @ step == pytest.approx(g @ by_general_solver(hessian, g, b, c), abs=2e-5 * scale)
    assert min(seen[case] for case in (0, 1, 2, 3)) >= 10


def test_corrected_step_when_reward_and_cost_gradients_are_parallel():
    b = np.array([0.5, 0.5])
    _, up = solve(np.eye(2), 2 * b, b, -0.05, "corrected")
    assert float(b @ up.step) == pytest.approx(0.05, rel=1e-3)
    _, down = solve(np.eye(2), -2 * b, b, -0.05, "corrected")
    np.testing.assert_allclose(down.step, -0.2 * b, rtol=1e-5)
    _, back = solve(np.eye(2), 2 * b, b, 0.05, "corrected")
    assert float(b @ back.step) == pytest.approx(-0.05, rel=1e-3)
    _, tiny = solve(np.eye(2), -2e-6 * b, b, -0.05, "corrected")
    assert np.isfinite(tiny.step).all()
    assert float(b @ tiny.step) < 0


def test_published_signs_are_wrong_the_way_the_published_code_is():
    rng = np.random.default_rng(1)
    against_reward = broken_limit = 0
    for _ in range(300):
        hessian, g, b, c, _ = random_problem(rng)
        case, direction = solve(hessian, g, b, c, "published")
        step = np.asarray(direction.step)
        if case == Case.CUTS and g @ np.linalg.solve(hessian, b) > 0:
            against_reward += 1
            assert float(direction.lam) < 0
            assert g @ step < 0
        if case == Case.REACHABLE:
            broken_limit += 1
            assert c + b @ step > 0
    assert against_reward >= 20
    assert broken_limit >= 20


def test_a_limit_called_far_is_never_near():
    rng = np.random.default_rng(2)
    far = 0
    for _ in range(400):
        hessian, _, b, c, reach = random_problem(rng)
        c = c * rng.choice([1.0, 3.0, 10.0])
        if bool(limit_is_far(c, b @ b, MAX_KL, 0.1)):
            far += 1
            assert c < -reach
            assert int(find_case(c, b @ b, b @ np.linalg.solve(hessian, b), MAX_KL)) == Case.FREE
    assert far >= 50
