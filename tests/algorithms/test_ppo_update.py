import jax
import numpy as np
import pytest
from tests.algorithms.problems import adam_loop, mean_kl, problem

from steingate.algorithms.base import Mode, Objective, RunContext
from steingate.algorithms.common.networks import log_prob
from steingate.algorithms.common.ppo_update import (
    Phase,
    PPOState,
    clipped_loss,
    init_adam,
    minibatch_update,
    objective_advantage,
)
from steingate.algorithms.config import PPOConfig

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
