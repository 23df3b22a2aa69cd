import jax
import numpy as np
from steingate.algorithms.common.base import Batch
from steingate.algorithms.common.heads import log_prob
from steingate.algorithms.common.minibatches import adam_sizes, minibatches
from steingate.algorithms.common.recipe import Setup, make_recipe
from steingate.algorithms.common.sizes import CriticFit
from steingate.gates.base import Decision, Mode

from steingate.algorithms.common.critics import fit_critic, init_adam, minibatch_order
from steingate.algorithms.common.networks import init_critic, init_policy, mean


def test_minibatches_keep_the_last_incomplete_one():
    order = minibatch_order(np.random.default_rng(0), 10, 3)
    rows, share = minibatches(order, 4)
    assert rows.shape == share.shape == (3, 3, 4)
    np.testing.assert_allclose(share.sum(axis=2), 1.0)
    np.testing.assert_array_equal(share[:, 2, 2:], 0.0)
    for one, order_of_pass in zip(rows, order, strict=True):
        np.testing.assert_array_equal(one.ravel()[:10], order_of_pass)
    _, weighted = minibatches(order, 4, np.arange(10, dtype=np.float32) + 1.0)
    np.testing.assert_allclose(weighted[0, 0], (order[0, :4] + 1.0) / (order[0, :4] + 1.0).sum(), rtol=1e-6)


def test_adams_sizes_carry_the_bias_corrections():
    rate, floor = adam_sizes(4, 2, 0.1)
    for k, t in enumerate((5, 6)):
        np.testing.assert_allclose(rate[k], 0.1 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t), rtol=1e-6)
        np.testing.assert_allclose(floor[k], 1e-8 * np.sqrt(1 - 0.999**t), rtol=1e-6)


def duplicated(samples=60, seed=0):
    """A batch with weights, and the same with rows repeated."""
    rng = np.random.default_rng(seed)
    params = init_policy(rng, 3, 2, (5,))
    obs = rng.normal(size=(samples, 3)).astype(np.float32)
    act = (np.asarray(mean(params, obs)) + rng.normal(size=(samples, 2))).astype(np.float32)
    logp = np.asarray(log_prob(params, obs, act))
    adv, cost_adv = rng.normal(size=(2, samples)).astype(np.float32)
    counts = np.where(adv > 0.8, 5, 1)
    plain = Batch(obs, act, logp, adv, cost_adv, counts.astype(np.float32))
    repeated = Batch(*(np.repeat(part, counts, axis=0) for part in plain[:5]))
    return params, plain, repeated


def test_a_weight_is_as_good_as_copies_for_the_policy_step():
    params, plain, repeated = duplicated()
    step = make_recipe("cpo", settings={"cg_iters": 8}).build(Setup()).step
    for mode in (Mode.IMPROVE, Mode.RECOVER):
        one, _, log_one = step.move((), params, plain, Decision(mode, 0.1))
        two, _, log_two = step.move((), params, repeated, Decision(mode, 0.1))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-4), one, two)
        np.testing.assert_allclose(log_one["step/kl"], log_two["step/kl"], rtol=0.02)


def test_a_weight_is_as_good_as_copies_for_the_critics():
    rng = np.random.default_rng(1)
    obs, target = rng.normal(size=(40, 2)).astype(np.float32), rng.normal(size=40).astype(np.float32)
    counts = rng.integers(1, 4, 40)
    params = init_critic(rng, 2, (4,))
    fit = CriticFit(batch_size=1000)
    order = np.tile(np.arange(40, dtype=np.int32), (5, 1))
    one, _, _ = fit_critic(params, init_adam(params), obs, target, order, fit, counts.astype(np.float32))
    copies = np.repeat(np.arange(40), counts)
    all_rows = np.tile(np.arange(len(copies), dtype=np.int32), (5, 1))
    two, _, _ = fit_critic(params, init_adam(params), obs[copies], target[copies], all_rows, fit)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), one, two)


def test_rcpo_takes_the_full_step_whatever_the_divergence():
    params, plain, _ = duplicated()
    region = {"max_kl": 2.0, "cg_iters": 20, "damping": 1e-4}
    free = make_recipe("rcpo", settings=region).build(Setup()).step
    bound = make_recipe("trpo-lag", settings=region).build(Setup()).step
    decision = Decision(Mode.IMPROVE, price=0.3)
    _, _, unchecked = free.move((), params, plain, decision)
    _, _, checked = bound.move((), params, plain, decision)
    assert unchecked["step/fraction"] == 1.0
    assert unchecked["step/trials"] == 1.0
    assert unchecked["step/kl"] > 2.0
    assert checked["step/kl"] <= 2.0
    broken = plain._replace(adv=plain.adv * np.nan)
    same, _, log = free.move((), params, broken, decision)
    assert log["step/fraction"] == 0.0
    jax.tree.map(np.testing.assert_array_equal, same, params)


def test_rcpo_prices_cost_in_the_units_of_the_reward_when_corrected():
    params, plain, _ = duplicated()
    plain = plain._replace(weight=None)
    scaled = plain._replace(scale=10.0)
    for variant, moves in (("corrected", True), ("published", False)):
        step = make_recipe("rcpo", settings={"variant": variant, "cg_iters": 8}).build(Setup()).step
        one, _, _ = step.move((), params, plain, Decision(Mode.IMPROVE, price=1.0))
        two, _, _ = step.move((), params, scaled, Decision(Mode.IMPROVE, price=1.0))
        assert np.array_equal(one["w"][0], two["w"][0]) != moves
