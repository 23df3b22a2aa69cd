import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from steingate.algorithms.common.base import first_bad
from steingate.algorithms.common.heads import log_prob, mean_kl_per_dim
from steingate.algorithms.common.sizes import TrustRegion
from steingate.algorithms.common.subproblem import Case
from steingate.gates.base import Decision, Mode
from tests.algorithms.problems import problem

from steingate.algorithms.common import fisher
from steingate.algorithms.common.trust_region import (
    accepts,
    conjugate_gradient,
    find_direction,
    search,
    trust_region_step,
)
from steingate.errors import InputError


def flat(params):
    return ravel_pytree(fisher.to_theta(params))[0]


def dense_problem(n, seed=0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n))
    return root @ root.T / n + 0.1 * np.eye(n), rng.normal(size=n), rng.normal(size=n)


def test_conjugate_gradient_against_a_dense_solve():
    with jax.enable_x64(True):
        matrix, target, _ = dense_problem(8)
        target = 1e3 * target  # so large that the 1e-6 in the denominators does not show
        x, q = conjugate_gradient(lambda v: matrix @ v, jnp.asarray(target), 15)
        np.testing.assert_allclose(x, np.linalg.solve(matrix, target), rtol=1e-6)
        assert float(q) == pytest.approx(float(x @ matrix @ x), rel=1e-9)


def test_conjugate_gradient_keeps_the_published_terms():
    """The iteration written out, with 1e-6 in both denominators and the stop at 1e-10."""
    matrix, target, _ = dense_problem(30, seed=3)
    target = 1e-3 * target  # small enough for the 1e-6 to matter
    x, residual, along = np.zeros(30), target.copy(), target.copy()
    rr = residual @ residual
    for _ in range(15):
        image = matrix @ along
        alpha = rr / (along @ image + 1e-6)
        x, residual = x + alpha * along, residual - alpha * image
        rr_next = residual @ residual
        if np.sqrt(rr_next) < 1e-10:
            break
        along, rr = residual + rr_next / (rr + 1e-6) * along, rr_next
    with jax.enable_x64(True):
        found, q = conjugate_gradient(lambda v: matrix @ v, jnp.asarray(target), 15)
    np.testing.assert_allclose(found, x, rtol=1e-9)
    assert float(q) == pytest.approx(x @ matrix @ x, rel=1e-9)
    assert np.linalg.norm(x - np.linalg.solve(matrix, target)) > 1e-3 * np.linalg.norm(x)


def test_conjugate_gradient_stops_when_solved():
    count = []

    def product(v):
        jax.debug.callback(lambda: count.append(1))
        return 2.0 * v

    x, _ = conjugate_gradient(product, jnp.ones(3) * 1e3, 15)
    np.testing.assert_allclose(x, 500.0, rtol=1e-6)
    jax.effects_barrier()
    assert len(count) <= 3


DIRECTIONS = [  # mode, c relative to the reach, case, solves
    (Mode.IMPROVE, 2.0, Case.FREE, 1),
    (Mode.IMPROVE, -0.1, Case.FREE, 1),
    (Mode.RECOVER, -0.1, Case.OUT_OF_REACH, 1),
    (Mode.BALANCE, 2.0, Case.OUT_OF_REACH, 1),
    (Mode.BALANCE, 0.5, Case.REACHABLE, 2),
    (Mode.BALANCE, 0.0, Case.REACHABLE, 2),
    (Mode.BALANCE, -0.5, Case.CUTS, 2),
    (Mode.BALANCE, -1.05, Case.FREE, 2),
    (Mode.BALANCE, -50.0, Case.FREE, 1),
    (Mode.BALANCE, -np.inf, Case.FREE, 1),
]


@pytest.mark.parametrize(("mode", "relative", "case", "solves"), DIRECTIONS)
def test_a_direction_solves_for_no_more_than_it_needs(mode, relative, case, solves):
    with jax.enable_x64(True):
        matrix, g, b = (jnp.asarray(part) for part in dense_problem(6, seed=1))
        x, p = jnp.linalg.solve(matrix, g), jnp.linalg.solve(matrix, b)
        cfg = TrustRegion()
        reach = jnp.sqrt(2 * cfg.max_kl * (b @ p))
        direction, found, count = find_direction(lambda v: matrix @ v, g, b, mode, relative * reach, cfg)
        assert int(found) == case
        assert int(count) == solves
        step = np.asarray(direction.step)
        if case == Case.FREE:
            np.testing.assert_allclose(step, np.sqrt(2 * cfg.max_kl / (g @ x)) * x, rtol=1e-3)
        elif case == Case.OUT_OF_REACH:
            np.testing.assert_allclose(step, -np.sqrt(2 * cfg.max_kl / (b @ p)) * p, rtol=1e-3)
        else:
            assert float(b @ step) == pytest.approx(float(-relative * reach), abs=1e-4 * float(reach))


def test_a_flat_cost_takes_one_solve():
    with jax.enable_x64(True):
        matrix, g, _ = (jnp.asarray(part) for part in dense_problem(6, seed=1))
        _, case, solves = find_direction(
            lambda v: matrix @ v, g, 1e-5 * g, Mode.BALANCE, jnp.asarray(-1e-9), TrustRegion()
        )
        assert (int(case), int(solves)) == (Case.FLAT, 1)


ACCEPTANCE = [  # case, reward gain, cost rise, KL, c, taken
    (3, 0.1, 0.0, 0.005, -1.0, True),
    (3, 0.0, 0.0, 0.01, -1.0, True),
    (3, -1e-6, 0.0, 0.005, -1.0, False),
    (2, -1e-6, 0.0, 0.005, -1.0, False),
    (4, -1e-6, 0.0, 0.005, -1.0, False),
    (0, -1.0, 0.0, 0.005, 1.0, True),
    (1, -1.0, 0.0, 0.005, 1.0, True),
    (0, 0.1, 1e-6, 0.005, 1.0, False),
    (0, 0.1, 0.5, 0.005, -1.0, True),  # recovering although the mean is within the limit
    (3, 0.1, 0.99, 0.005, -1.0, True),
    (3, 0.1, 1.01, 0.005, -1.0, False),
    (3, 0.1, 1e9, 0.005, -np.inf, True),
    (3, 0.1, 0.0, 0.0101, -1.0, False),
    (3, 0.1, 0.0, np.nan, -1.0, False),
    (3, np.nan, 0.0, 0.005, -1.0, False),
    (0, np.nan, 0.0, 0.005, 1.0, False),
    (0, 0.1, np.nan, 0.005, 1.0, False),
    (0, 0.1, -np.inf, 0.005, 1.0, False),
]


@pytest.mark.parametrize(("case", "gain", "rise", "kl", "c", "taken"), ACCEPTANCE)
def test_what_the_line_search_takes(case, gain, rise, kl, c, taken):
    found = accepts(case, jnp.float32(gain), jnp.float32(rise), jnp.float32(kl), jnp.float32(c), 0.01)
    assert bool(found) == taken


def test_line_search_shrinks_past_trials_without_a_number():
    def measure(fraction):
        kl = jnp.where(fraction > 0.9, jnp.nan, 0.02 * fraction)
        return fraction, -fraction, kl

    fraction, trials, (gain, rise, kl) = search(measure, Case.FREE, jnp.float32(-1.0), TrustRegion())
    assert int(trials) == 5
    assert float(fraction) == pytest.approx(0.8**4, rel=1e-6)
    assert (float(gain), float(rise)) == (float(fraction), -float(fraction))
    assert float(kl) == pytest.approx(0.02 * 0.8**4, rel=1e-6)


def test_line_search_gives_up_after_its_last_trial():
    nothing = search(lambda f: (f, f, jnp.float32(jnp.inf)), Case.FREE, jnp.float32(-1.0), TrustRegion(search_steps=6))
    assert [float(number) for number in (nothing[0], nothing[1], *nothing[2])] == [0, 6, 0, 0, 0]


@pytest.fixture(scope="module")
def moved():
    """One compiled step and everything it does on the small problem."""
    params, batch = problem()
    step = trust_region_step(TrustRegion())

    def move(decision, data=batch, policy=params):
        return step.move(step.init(policy), policy, data, decision)

    return params, batch, move


def test_improving_raises_reward_inside_the_trust_region(moved):
    params, batch, move = moved
    new, state, log = move(Decision(Mode.IMPROVE, 3.0))
    assert state == ()
    assert log["step/case"] == Case.FREE
    assert log["step/reward_gain"] > 0.05
    kl = float(mean_kl_per_dim(params, new, batch.obs))
    assert 0.002 < kl <= 0.01
    assert log["step/kl"] == pytest.approx(kl, rel=1e-3)
    ratio = np.exp(np.asarray(log_prob(new, batch.obs, batch.act)) - batch.logp)
    assert log["step/reward_gain"] == pytest.approx(float((ratio * batch.adv).mean() - batch.adv.mean()), abs=1e-5)
    assert jax.tree.map(np.shape, new) == jax.tree.map(np.shape, params)
    assert all(isinstance(leaf, np.ndarray) and leaf.dtype == np.float32 for leaf in jax.tree.leaves(new))
    assert first_bad(log) is None


def test_recovering_lowers_cost_whatever_the_reward(moved):
    params, batch, move = moved
    backwards = batch._replace(adv=-20.0 * batch.cost_adv)
    for data in (batch, backwards):
        new, _, log = move(Decision(Mode.RECOVER, -1.0), data)
        assert log["step/case"] == Case.OUT_OF_REACH
        assert log["step/cost_rise"] < -0.001
        assert log["step/fraction"] > 0
        assert float(mean_kl_per_dim(params, new, batch.obs)) <= 0.01


def test_balancing_spends_exactly_the_slack_that_is_left(moved):
    _, _, move = moved
    free = move(Decision(Mode.IMPROVE))[2]
    slack = free["step/cost_rise"] / 2
    assert slack > 0
    _, _, log = move(Decision(Mode.BALANCE, slack))
    assert log["step/case"] == Case.CUTS
    assert 0 < log["step/cost_rise"] <= slack
    assert 0 < log["step/reward_gain"] < free["step/reward_gain"]
    _, _, log = move(Decision(Mode.BALANCE, -slack))
    assert log["step/case"] == Case.REACHABLE
    # The limit is met to first order; the surrogate itself bends a little.
    assert log["step/cost_rise"] == pytest.approx(-slack, rel=0.3)


def test_a_price_mixes_the_advantages(moved):
    _, batch, move = moved
    price = 4.0
    mixed = batch._replace(adv=((batch.adv - price * batch.cost_adv) / (1 + price)).astype(np.float32))
    ours, _, _ = move(Decision(Mode.IMPROVE, 3.0, price))
    theirs, _, _ = move(Decision(Mode.IMPROVE, 3.0), mixed)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), ours, theirs)


def test_the_first_order_direction_is_the_natural_gradient(moved):
    params, batch, move = moved
    new, _, log = move(Decision(Mode.IMPROVE))
    theta, unravel = ravel_pytree(fisher.to_theta(params))

    def gain(t):
        return jnp.mean(jnp.exp(log_prob(fisher.to_params(unravel(t)), batch.obs, batch.act) - batch.logp) * batch.adv)

    def divergence(t):
        return mean_kl_per_dim(params, fisher.to_params(unravel(t)), batch.obs)

    matrix = np.asarray(jax.jit(jax.hessian(divergence))(theta), np.float64) + 0.1 * np.eye(len(theta))
    g = np.asarray(jax.jit(jax.grad(gain))(theta), np.float64)
    x = np.linalg.solve(matrix, g)
    expected = log["step/fraction"] * np.sqrt(0.02 / (g @ x)) * x
    # Fifteen iterations do not quite reach the solution.
    assert np.linalg.norm(flat(new) - theta - expected) < 0.01 * np.linalg.norm(expected)


def test_a_rejected_step_changes_no_bit(moved):
    params, batch, _ = moved
    # A batch of one advantage sign far outside the trust region, and no shrinking to speak of.
    stubborn = trust_region_step(TrustRegion(search_steps=1, damping=1e-6, max_kl=5.0))
    new, _, log = stubborn.move((), params, batch, Decision(Mode.IMPROVE, 0.0))
    assert log["step/fraction"] == log["step/kl"] == 0.0
    jax.tree.map(np.testing.assert_array_equal, new, params)


@pytest.mark.parametrize("field", ["obs", "adv", "cost_adv"])
def test_a_nan_moves_nothing_and_is_named(moved, field):
    params, batch, move = moved
    broken = getattr(batch, field).copy()
    broken.flat[17] = np.nan
    mode = Mode.RECOVER if field == "cost_adv" else Mode.IMPROVE
    new, _, log = move(Decision(mode, -1.0), batch._replace(**{field: broken}))
    jax.tree.map(np.testing.assert_array_equal, new, params)
    assert first_bad(log) is not None


def test_the_first_bad_quantity_is_found_by_name():
    good, bad = np.ones(3), np.array([1.0, np.inf])
    assert first_bad({"loss": 1.0, "policy": {"w": (good, good)}}) is None
    assert first_bad({"loss": 1.0, "policy": {"w": (good, bad)}, "z": np.nan}) == "policy/w/1"
    assert first_bad({"loss": float("nan")}) == "loss"


def test_repeating_a_move_repeats_every_bit(moved):
    _, _, move = moved
    first, second = (move(Decision(Mode.BALANCE, 0.01)) for _ in range(2))
    jax.tree.map(np.testing.assert_array_equal, first[0], second[0])
    assert first[2] == second[2]


SCRIPT = """
import os, sys
if sys.argv[1] == "one" and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from steingate.algorithms.common.backend import configure
configure(cache=False)
import zlib, numpy as np
from steingate.algorithms.common.base import Batch
from steingate.algorithms.common.networks import init_policy
from steingate.algorithms.common.sizes import TrustRegion
from steingate.algorithms.common.trust_region import trust_region_step
from steingate.gates.base import Decision, Mode
rng = np.random.default_rng(0)
params = init_policy(rng, 40, 2)
obs, act = rng.normal(size=(6000, 40)), rng.normal(size=(6000, 2))
logp, adv, cost = rng.normal(size=(3, 6000))
batch = Batch(*(part.astype(np.float32) for part in (obs, act, -2 + 0 * logp, adv, cost)))
new, _, _ = trust_region_step(TrustRegion()).move((), params, batch, Decision(Mode.IMPROVE))
print(zlib.crc32(b"".join(leaf.tobytes() for leaf in (*new["w"], *new["b"], new["log_std"]))))
"""


def test_the_number_of_cores_changes_no_bit():
    found = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT, cores], capture_output=True, text=True, check=True, timeout=300
        ).stdout
        for cores in ("one", "all")
    }
    assert len(found) == 1


@pytest.mark.parametrize(
    "bad", [{"variant": "fixed"}, {"max_kl": 0.0}, {"cg_iters": 0}, {"shrink": 1.0}, {"damping": -1.0}]
)
def test_impossible_sizes_are_refused_by_name(bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        TrustRegion(**bad)
