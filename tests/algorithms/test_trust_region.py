import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import optimize
from tests.algorithms.problems import dense_problem, mean_kl, problem, surrogates

from steingate.algorithms.base import Mode, Objective
from steingate.algorithms.common import fisher
from steingate.algorithms.common.networks import log_prob
from steingate.algorithms.common.trust_region import (
    Case,
    StepRule,
    accepts,
    balance,
    conjugate_gradient,
    find_case,
    improve,
    line_search,
    recover,
    solve_direction,
    trust_region_update,
)
from steingate.algorithms.config import LineSearchConfig, TrustRegionConfig

MAX_KL = 0.01
RULE = StepRule(TrustRegionConfig(), LineSearchConfig())


@pytest.fixture
def _double():
    with jax.enable_x64(True):
        yield


@pytest.mark.usefixtures("_double")
def test_conjugate_gradients_against_a_dense_solve():
    matrix, target, _ = dense_problem(8)
    target = 1e3 * target  # so large that the 1e-6 in the denominators does not show
    x, q = conjugate_gradient(lambda v: matrix @ v, jnp.asarray(target), 15)
    np.testing.assert_allclose(x, np.linalg.solve(matrix, target), rtol=1e-6)
    assert float(q) == pytest.approx(float(x @ matrix @ x), rel=1e-9)


@jax.jit
def exact_parts(hessian, g, b):
    x, p = jnp.linalg.solve(hessian, g), jnp.linalg.solve(hessian, b)
    return x, p, g @ x, g @ p, b @ p


BALANCE = {
    variant: jax.jit(lambda *parts, v=variant: balance(*parts, MAX_KL, v)) for variant in ("published", "corrected")
}


def solve(hessian, g, b, c, variant):
    """Return case and direction with exact linear algebra."""
    x, p, q, r, s = exact_parts(hessian, g, b)
    case = int(find_case(c, b @ b, s, MAX_KL))
    if case in (Case.REACHABLE, Case.CUTS):
        return case, BALANCE[variant](x, p, q, r, s, c)
    return case, recover(p, s, MAX_KL) if case == Case.OUT_OF_REACH else improve(x, q, MAX_KL)


ROWS = [  # c, g, case, published step, lambda and nu, corrected step, lambda and nu
    (-0.05, (1, 0), 2, (-0.1, 0), (-10, 0), (0.1366, -0.0366), (5.7735, 0.4226)),
    (-0.05, (-1, 0.2), 2, (-0.1521, 0.0211), (6.9282, 0.1072), (-0.1387, 0.0277), (7.2111, 0)),
    (0.05, (1, 0), 1, (0.1414, 0), (7.0711, 0), (0.0366, -0.1366), (5.7735, 1.5774)),
    (0.05, (-1, 0.2), 1, (0.125, -0.025), (-8, 0), (-0.1387, 0.0277), (7.2111, 0)),
]


def random_problem(rng):
    """H, g, b and a limit somewhere around the trust region."""
    hessian, g, b = dense_problem(int(rng.integers(2, 5)), rng)
    reach = np.sqrt(2 * MAX_KL * (b @ np.linalg.solve(hessian, b)))
    return hessian, g, b, rng.uniform(-1.3, 1.3) * reach, reach


def by_scipy(hessian, g, b, c):
    """Solve the same subproblem in whitened coordinates with SLSQP."""
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


@pytest.mark.usefixtures("_double")
class TestSubproblem:
    @pytest.mark.parametrize("row", ROWS)
    @pytest.mark.parametrize("variant", ["published", "corrected"])
    def test_recorded_vectors_where_the_limit_cuts(self, row, variant):
        c, g, case, *answers = row
        step, multipliers = answers[:2] if variant == "published" else answers[2:]
        found, direction = solve(np.eye(2), np.array(g, float), np.array([0.5, 0.5]), c, variant)
        assert found == case
        np.testing.assert_allclose(direction.step, step, atol=1e-4)
        np.testing.assert_allclose([direction.lam, direction.nu], multipliers, atol=1e-4)
        if variant == "corrected":
            assert 0.5 * float(direction.step @ direction.step) == pytest.approx(MAX_KL, rel=1e-5)

    def test_corrected_steps_against_scipy(self):
        rng = np.random.default_rng(0)
        seen = dict.fromkeys(Case, 0)
        for _ in range(120):
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
            assert g @ step == pytest.approx(g @ by_scipy(hessian, g, b, c), abs=2e-5 * scale)
        assert min(seen[case] for case in (0, 1, 2, 3)) >= 10

    def test_parallel_reward_and_cost_gradients(self):
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


DIRECTIONS = [  # mode, c relative to the reach, case, number of linear systems
    (Mode.IMPROVE, -0.1, Case.FREE, 1),
    (Mode.RECOVER, -0.1, Case.OUT_OF_REACH, 1),
    (Mode.BALANCE, 2.0, Case.OUT_OF_REACH, 1),
    (Mode.BALANCE, 0.5, Case.REACHABLE, 2),
    (Mode.BALANCE, -0.5, Case.CUTS, 2),
    (Mode.BALANCE, -1.05, Case.FREE, 2),
]


@jax.jit
def direction_of(matrix, g, b, mode, c):
    return solve_direction(lambda v: matrix @ v, g, b, mode, c, RULE)


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize(("mode", "relative", "case", "solves"), DIRECTIONS)
def test_only_the_needed_systems_are_solved(mode, relative, case, solves):
    matrix, g, b = dense_problem(6, 1)
    x, p = np.linalg.solve(matrix, g), np.linalg.solve(matrix, b)
    reach = np.sqrt(2 * MAX_KL * (b @ p))
    direction, found, count = direction_of(matrix, g, b, int(mode), relative * reach)
    assert (int(found), int(count)) == (case, solves)
    step = np.asarray(direction.step)
    if case == Case.FREE:
        np.testing.assert_allclose(step, np.sqrt(2 * MAX_KL / (g @ x)) * x, rtol=1e-3)
    elif case == Case.OUT_OF_REACH:
        np.testing.assert_allclose(step, -np.sqrt(2 * MAX_KL / (b @ p)) * p, rtol=1e-3)
    else:
        assert float(b @ step) == pytest.approx(-relative * reach, abs=1e-4 * reach)


ACCEPTANCE = [  # case, reward gain, cost change, KL, c, in a recovery, accepted
    (Case.FREE, 0.0, 0.0, 0.01, -1.0, False, True),
    (Case.FREE, -1e-6, 0.0, 0.005, -1.0, False, False),
    (Case.OUT_OF_REACH, -1.0, 0.0, 0.005, 1.0, False, True),
    (Case.REACHABLE, -1.0, 0.0, 0.005, 1.0, False, True),
    (Case.OUT_OF_REACH, 0.1, 1e-6, 0.005, 1.0, False, False),
    (Case.OUT_OF_REACH, 0.1, 0.5, 0.005, -1.0, False, True),  # the mean cost is below the limit
    (Case.OUT_OF_REACH, 0.1, 0.01, 0.005, -0.5, True, False),  # a recovery may not raise cost
    (Case.OUT_OF_REACH, 0.1, -0.01, 0.005, -0.5, True, True),
    (Case.FREE, 0.1, 0.99, 0.005, -1.0, False, True),
    (Case.FREE, 0.1, 1.01, 0.005, -1.0, False, False),
    (Case.FREE, 0.1, 0.0, 0.0101, -1.0, False, False),
    (Case.FREE, 0.1, 0.0, np.nan, -1.0, False, False),
    (Case.FREE, np.nan, 0.0, 0.005, -1.0, False, False),
    (Case.OUT_OF_REACH, 0.1, np.nan, 0.005, 1.0, False, False),
]


@pytest.mark.parametrize(("case", "gain", "change", "kl", "c", "recovers", "accepted"), ACCEPTANCE)
def test_trials_that_the_line_search_accepts(case, gain, change, kl, c, recovers, accepted):
    numbers = (jnp.float32(number) for number in (gain, change, kl, c))
    assert bool(accepts(case, *numbers, MAX_KL, recovers)) == accepted


def test_the_line_search_backtracks_over_trials_that_are_not_finite():
    def measure(fraction):
        kl = jnp.where(fraction > 0.9, jnp.nan, 0.02 * fraction)
        return fraction, -fraction, kl

    fraction, trials, (gain, change, kl) = line_search(measure, Case.FREE, jnp.float32(-1.0), RULE)
    assert int(trials) == 5
    assert float(fraction) == pytest.approx(0.8**4, rel=1e-6)
    assert (float(gain), float(change)) == (float(fraction), -float(fraction))
    assert float(kl) == pytest.approx(0.02 * 0.8**4, rel=1e-6)


PARAMS, BATCH = problem()


def step(objective, batch=BATCH, rule=RULE):
    return trust_region_update(PARAMS, batch, objective, rule)


def equal(one, two):
    jax.tree.map(np.testing.assert_array_equal, one, two)
    return True


class TestUpdate:
    def test_an_improvement_raises_reward_in_the_trust_region(self):
        new, metrics = step(Objective(Mode.IMPROVE, 3.0))
        assert metrics["Loss/Case"] == Case.FREE
        assert metrics["Loss/RewardGain"] > 0.05
        kl = float(mean_kl(PARAMS, new, BATCH.obs))
        assert 0.002 < kl <= 0.01
        assert metrics["Loss/KL"] == pytest.approx(kl, rel=1e-3)
        gain = surrogates(new, BATCH)[0] - BATCH.adv.mean()
        assert metrics["Loss/RewardGain"] == pytest.approx(gain, abs=1e-5)
        assert jax.tree.map(np.shape, new) == jax.tree.map(np.shape, PARAMS)
        assert all(isinstance(leaf, np.ndarray) and leaf.dtype == np.float32 for leaf in jax.tree.leaves(new))
        assert np.isfinite(list(metrics.values())).all()

    def test_a_recovery_lowers_cost_whatever_the_reward(self):
        for data in (BATCH, BATCH._replace(adv=-20.0 * BATCH.cost_adv)):
            new, metrics = step(Objective(Mode.RECOVER, -1.0), data)
            assert metrics["Loss/Case"] == Case.OUT_OF_REACH
            assert metrics["Loss/CostChange"] < -0.001
            assert metrics["Loss/AcceptedFraction"] > 0
            assert float(mean_kl(PARAMS, new, BATCH.obs)) <= 0.01

    def test_a_balanced_step_spends_the_slack(self):
        free = step(Objective(Mode.IMPROVE))[1]
        slack = free["Loss/CostChange"] / 2
        assert slack > 0
        metrics = step(Objective(Mode.BALANCE, slack))[1]
        assert metrics["Loss/Case"] == Case.CUTS
        assert 0 < metrics["Loss/CostChange"] <= slack
        assert 0 < metrics["Loss/RewardGain"] < free["Loss/RewardGain"]
        metrics = step(Objective(Mode.BALANCE, -slack))[1]
        assert metrics["Loss/Case"] == Case.REACHABLE
        # The limit is met to first order; the surrogate is not linear.
        assert metrics["Loss/CostChange"] == pytest.approx(-slack, rel=0.3)

    def test_the_direction_is_the_natural_gradient(self):
        new, metrics = step(Objective(Mode.IMPROVE))
        theta, unravel = ravel_pytree(fisher.to_theta(PARAMS))

        def gain(t):
            ratio = jnp.exp(log_prob(fisher.to_params(unravel(t)), BATCH.obs, BATCH.act) - BATCH.logp)
            return jnp.mean(ratio * BATCH.adv)

        def kl(t):
            return mean_kl(PARAMS, fisher.to_params(unravel(t)), BATCH.obs)

        matrix = np.asarray(jax.jit(jax.hessian(kl))(theta), np.float64) + 0.1 * np.eye(len(theta))
        g = np.asarray(jax.jit(jax.grad(gain))(theta), np.float64)
        x = np.linalg.solve(matrix, g)
        expected = metrics["Loss/AcceptedFraction"] * np.sqrt(0.02 / (g @ x)) * x
        # Fifteen iterations do not quite reach the solution.
        moved = ravel_pytree(fisher.to_theta(new))[0] - theta
        assert np.linalg.norm(moved - expected) < 0.01 * np.linalg.norm(expected)

    @pytest.mark.parametrize("field", ["obs", "adv", "cost_adv"])
    def test_a_nan_changes_nothing(self, field):
        broken = getattr(BATCH, field).copy()
        broken.flat[17] = np.nan
        mode = Mode.RECOVER if field == "cost_adv" else Mode.IMPROVE
        new, metrics = step(Objective(mode, -1.0), BATCH._replace(**{field: broken}))
        assert equal(new, PARAMS)
        assert not np.isfinite(list(metrics.values())).all()

    def test_only_the_published_recovery_spends_the_slack(self):
        """A step so long that all likelihood ratios fall raises a surrogate of negative advantages."""
        batch = BATCH._replace(cost_adv=BATCH.cost_adv - 1.0)
        rule = RULE._replace(trust_region=TrustRegionConfig(cg_damping=1e-6, max_kl=5.0))
        published = step(Objective(Mode.RECOVER, 1e3), batch, rule._replace(variant="published"))[1]
        corrected = step(Objective(Mode.RECOVER, 1e3), batch, rule)[1]
        assert published["Loss/CostChange"] > 0.1
        assert published["Loss/AcceptedFraction"] > corrected["Loss/AcceptedFraction"]
        assert corrected["Loss/CostChange"] <= 0.0


SCRIPT = """
import os, sys
if sys.argv[1] == "one" and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from steingate.algorithms.common.jax_setup import configure
configure()
import hashlib, jax
from steingate.algorithms.base import Objective
from tests.algorithms.problems import problem, update
new, _ = update("trpo", Objective(), *problem(samples=6000, obs_dim=40, hidden=(64, 64)))
print(hashlib.sha256(b"".join(leaf.tobytes() for leaf in jax.tree.leaves(new))).hexdigest())
"""


@pytest.mark.slow
def test_the_number_of_cores_changes_no_bit():
    commands = ([sys.executable, "-c", SCRIPT, cores] for cores in ("one", "all"))
    one, other = (subprocess.run(line, capture_output=True, check=True, timeout=300).stdout for line in commands)
    assert one == other
