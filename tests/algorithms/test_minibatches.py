"""Minibatches, PPO's update and the fit of the critics against plain loops of Adam."""

import jax
import numpy as np
import pytest
from tests.algorithms.problems import adam_loop, mean_kl, problem

from steingate.algorithms.base import Mode, Objective, RunContext
from steingate.algorithms.common.critics import Critics, fit_critics, init_critics
from steingate.algorithms.common.networks import init_network, log_prob, value
from steingate.algorithms.common.ppo_update import (
    Phase,
    PPOState,
    clipped_loss,
    init_adam,
    minibatch_update,
    minibatches,
    objective_advantage,
)
from steingate.algorithms.config import CriticConfig, PPOConfig

PARAMS, BATCH = problem()


def update(config, objective, state=None, params=PARAMS, batch=BATCH, **context):
    phases = (Phase(clipped_loss(config.clip), objective_advantage(batch, objective)),)
    return minibatch_update(RunContext(**context), state or PPOState(init_adam(params)), params, batch, config, phases)


def plain_loop(adv, config, seed, weight):
    """The same update with a gradient function and Adam's textbook step."""
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=(0, 1000))))
    order = rng.permuted(np.tile(np.arange(len(BATCH.obs), dtype=np.int32), (config.epochs, 1)), axis=1)
    leaves, tree = jax.tree.flatten(PARAMS)

    @jax.jit
    def gradient(params, part, w):
        def loss(params):
            ratio = jax.numpy.exp(log_prob(params, part[0], part[1]) - part[2])
            clipped = jax.numpy.clip(ratio, 1 - config.clip, 1 + config.clip)
            return -(jax.numpy.minimum(ratio * part[3], clipped * part[3]) * w).sum() / w.sum()

        return jax.grad(loss)(params)

    def padded_gradient(leaves, rows):
        padded = np.resize(rows, config.batch_size)
        w = np.where(np.arange(config.batch_size) < len(rows), weight[padded], 0.0)
        part = [column[padded] for column in (BATCH.obs, BATCH.act, BATCH.logp, adv)]
        return [np.asarray(x) for x in jax.tree.leaves(gradient(jax.tree.unflatten(tree, leaves), part, w))]

    sizes = config.batch_size, config.lr, config.max_grad_norm
    return jax.tree.unflatten(tree, adam_loop(leaves, padded_gradient, order, *sizes))


@pytest.mark.parametrize("mode", [Mode.IMPROVE, Mode.RECOVER])
def test_ppo_against_a_plain_loop(mode):
    weight = np.where(np.arange(300) % 7 == 0, 5.0, 1.0).astype(np.float32)
    config = PPOConfig(epochs=3, max_kl=9.0, lr=3e-3, max_grad_norm=0.05)
    objective = Objective(mode, lagrange_multiplier=0.5)
    state, updated, metrics = update(config, objective, batch=BATCH._replace(weight=weight), seed=4)
    adv = (BATCH.adv - 0.5 * BATCH.cost_adv) / 1.5 if mode == Mode.IMPROVE else -BATCH.cost_adv
    expected = plain_loop(adv, config, 4, weight)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=3e-5), updated, expected)
    assert metrics["Loss/Epochs"] == state.epochs == 3
    assert state.adam.steps == 3 * 5


def test_the_epoch_that_exceeds_the_kl_is_the_last():
    free = PPOConfig(epochs=6, max_kl=1e9, lr=1e-2)
    assert update(free, Objective())[2]["Loss/Epochs"] == 6
    _, updated, metrics = update(PPOConfig(epochs=6, max_kl=0.02, lr=1e-2), Objective())
    epochs, kl = int(metrics["Loss/Epochs"]), metrics["Loss/KL"]
    assert 1 <= epochs < 6
    assert kl > 0.02
    assert kl == pytest.approx(2 * float(mean_kl(PARAMS, updated, BATCH.obs)), rel=1e-4)  # summed over dimensions
    _, same, again = update(PPOConfig(epochs=6, max_kl=0.999 * kl, lr=1e-2), Objective())
    assert again["Loss/Epochs"] == epochs  # a bound just below is exceeded in the same epoch
    jax.tree.map(np.testing.assert_array_equal, same, updated)


def test_minibatches_change_with_seed_and_update_and_updates_repeat():
    config = PPOConfig(epochs=2)
    state, first, metrics = update(config, Objective(), seed=1, epochs=4)
    assert metrics["Loss/LearningRate"] == pytest.approx(3e-4)
    one, two = (update(config, Objective(), state, first, seed=1, epochs=4) for _ in range(2))
    jax.tree.map(np.testing.assert_array_equal, one[1], two[1])
    assert (one[0].updates, one[0].adam.steps) == (2, 20)
    assert one[2]["Loss/LearningRate"] == pytest.approx(0.75 * 3e-4)
    for other in (
        update(config, Objective(), seed=2, epochs=4),
        update(config, Objective(), PPOState(init_adam(PARAMS), updates=1), seed=1),
    ):
        assert not np.array_equal(other[1]["w"][0], first["w"][0])


def test_the_advantage_of_each_objective():
    for objective, expected in (
        (Objective(Mode.IMPROVE), BATCH.adv),
        (Objective(Mode.RECOVER, 5.0, 1.0), -BATCH.cost_adv),
        (Objective(Mode.BALANCE, 0.1), BATCH.adv),
        (Objective(Mode.BALANCE, -0.1), -BATCH.cost_adv),
        (Objective(Mode.IMPROVE, lagrange_multiplier=3.0), (BATCH.adv - 3 * BATCH.cost_adv) / 4),
    ):
        np.testing.assert_allclose(objective_advantage(BATCH, objective), expected, rtol=1e-6)


def test_each_epoch_has_its_own_permutation():
    rows, weights = minibatches(np.random.default_rng(0), 200, 5, batch_size=64)
    assert rows.shape == weights.shape == (5, 4, 64)
    np.testing.assert_allclose(weights.sum(axis=2), 1.0, rtol=1e-5)
    assert (weights[:, -1, 8:] == 0.0).all()
    order = rows.reshape(5, -1)[:, :200]
    np.testing.assert_array_equal(np.sort(order, axis=1), np.tile(np.arange(200), (5, 1)))
    assert len({tuple(row) for row in order}) == 5


def gradient(params, obs, target, decay):
    """Gradient of the loss by hand, in float64."""
    (w1, w2, w3), (b1, b2, b3) = params["w"], params["b"]
    h1 = np.tanh(obs @ w1 + b1)
    h2 = np.tanh(h1 @ w2 + b2)
    error = (h2 @ w3 + b3)[:, 0] - target
    back = (2 * error / len(error))[:, None]
    back2 = back @ w3.T * (1 - h2**2)
    back1 = back2 @ w2.T * (1 - h1**2)
    slope = [obs.T @ back1, h1.T @ back2, h2.T @ back, back1.sum(0), back2.sum(0), back.sum(0)]
    flat = [*params["w"], *params["b"]]
    return [g + 2 * decay * p for g, p in zip(slope, flat, strict=True)]


def critics_of(params, seed):
    """Critics whose parameters are given and others, and a generator of permutations."""
    other = init_network(np.random.default_rng(9), len(params["w"][0]), (8, 6), 1)
    return Critics(params, init_adam(params), other, init_adam(other)), np.random.default_rng(seed)


@pytest.mark.parametrize("scale", [1.0, 300.0])  # with 300 every gradient is clipped
def test_the_fit_of_a_critic_against_a_plain_loop(scale):
    rng, config = np.random.default_rng(0), CriticConfig(vf_batch_size=16)  # 70 = 4 * 16 + 6
    obs = rng.normal(size=(70, 3)).astype(np.float32)
    target = (scale * (obs @ [0.5, -1.0, 0.2] + 0.3)).astype(np.float32)
    params = init_network(rng, 3, (8, 6), 1)
    critics, order_rng = critics_of(params, 5)
    fitted = fit_critics(critics, obs, np.stack([target, target]), config, order_rng, 4)
    start = [np.asarray(p, np.float64) for p in (*params["w"], *params["b"])]

    def slopes(leaves, rows):
        current = {"w": leaves[:3], "b": leaves[3:]}
        return gradient(current, obs[rows].astype(np.float64), target[rows], config.vf_weight_decay)

    order = np.random.default_rng(5).permuted(np.tile(np.arange(70), (4, 1)), axis=1)
    expected = adam_loop(start, slopes, order, config.vf_batch_size, config.vf_lr, config.vf_max_grad_norm)
    for ours, theirs in zip((*fitted.reward["w"], *fitted.reward["b"]), expected, strict=True):
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, theirs, atol=2e-5)
    assert fitted.reward_adam.steps == 4 * 5


def test_weights_count_as_copies():
    rng, config = np.random.default_rng(1), CriticConfig(vf_batch_size=1000)
    obs, target = rng.normal(size=(40, 2)).astype(np.float32), rng.normal(size=(2, 40)).astype(np.float32)
    counts = rng.integers(1, 4, 40)
    params, copies = init_network(rng, 2, (4,), 1), np.repeat(np.arange(40), counts)
    one = fit_critics(critics_of(params, 0)[0], obs, target, config, rng, 5, counts.astype(np.float32))
    two = fit_critics(critics_of(params, 0)[0], obs[copies], target[:, copies], config, rng, 5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), one.reward, two.reward)


def test_both_critics_learn_linear_targets_unless_the_cost_critic_is_not_fitted():
    rng = np.random.default_rng(0)
    obs = rng.normal(size=(1000, 3)).astype(np.float32)
    targets = np.stack([obs @ [0.5, -1.0, 0.2], obs @ [0.0, 0.3, 1.0] - 1.0]).astype(np.float32)
    start = init_critics(np.random.default_rng(1), np.random.default_rng(2), 3, (8, 6))
    config = CriticConfig(vf_lr=1e-2, vf_weight_decay=0.0)
    fitted = start
    for _ in range(4):
        fitted = fit_critics(fitted, obs, targets, config, rng, 10)
    for critic, target in zip((fitted.reward, fitted.cost), targets, strict=True):
        assert np.mean((np.asarray(value(critic, obs)) - target) ** 2) < 0.01 * target.var()
    assert fitted.reward_adam.steps == fitted.cost_adam.steps == 4 * 10 * 8
    alone = fit_critics(start, obs, targets, config, rng, 10, fit_cost=False)
    assert alone.cost is start.cost
