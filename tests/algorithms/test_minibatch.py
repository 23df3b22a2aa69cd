"""Minibatches, and the fit of the critics against a plain loop of Adam."""

import jax
import numpy as np
import pytest
from tests.algorithms.problems import adam_loop

from steingate.algorithms.common.critics import fit_critic, fit_critics, init_critics
from steingate.algorithms.common.minibatch import init_adam, permutations
from steingate.algorithms.common.networks import init_network, value
from steingate.algorithms.config import CriticConfig


def test_each_epoch_has_its_own_permutation():
    order = permutations(np.random.default_rng(0), 200, 5)
    np.testing.assert_array_equal(np.sort(order, axis=1), np.tile(np.arange(200), (5, 1)))
    assert len({tuple(row) for row in order}) == 5
    np.testing.assert_array_equal(order, permutations(np.random.default_rng(0), 200, 5))


def gradient(params, obs, target, decay):
    """Loss and its gradient by hand, in float64."""
    (w1, w2, w3), (b1, b2, b3) = params["w"], params["b"]
    h1 = np.tanh(obs @ w1 + b1)
    h2 = np.tanh(h1 @ w2 + b2)
    error = (h2 @ w3 + b3)[:, 0] - target
    back = (2 * error / len(error))[:, None]
    back2 = back @ w3.T * (1 - h2**2)
    back1 = back2 @ w2.T * (1 - h1**2)
    slope = [obs.T @ back1, h1.T @ back2, h2.T @ back, back1.sum(0), back2.sum(0), back.sum(0)]
    flat = [*params["w"], *params["b"]]
    loss = np.mean(error**2) + decay * sum((p**2).sum() for p in flat)
    return loss, [g + 2 * decay * p for g, p in zip(slope, flat, strict=True)]


def regression(samples=70, scale=1.0):
    rng = np.random.default_rng(0)
    obs = rng.normal(size=(samples, 3)).astype(np.float32)
    target = (scale * (obs @ [0.5, -1.0, 0.2] + 0.3)).astype(np.float32)
    return init_network(rng, 3, (8, 6), 1), obs, target, rng


CONFIG = CriticConfig(vf_batch_size=16)  # 70 = 4 * 16 + 6: the last minibatch is incomplete


@pytest.mark.parametrize("scale", [1.0, 300.0])  # with 300 every gradient is clipped
def test_the_fit_of_a_critic_against_a_plain_loop(scale):
    params, obs, target, rng = regression(scale=scale)
    order = permutations(rng, 70, 4)
    fitted, adam, loss = fit_critic(params, init_adam(params), obs, target, order, CONFIG)
    start = [np.asarray(p, np.float64) for p in (*params["w"], *params["b"])]

    def loss_and_gradient(leaves, rows):
        current = {"w": leaves[:3], "b": leaves[3:]}
        return gradient(current, obs[rows].astype(np.float64), target[rows], CONFIG.vf_weight_decay)

    sizes = CONFIG.vf_batch_size, CONFIG.vf_lr, CONFIG.vf_max_grad_norm
    expected, expected_loss = adam_loop(start, loss_and_gradient, order, *sizes)
    for ours, theirs in zip((*fitted["w"], *fitted["b"]), expected, strict=True):
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, theirs, atol=2e-5)
    assert adam.steps == 4 * 5
    assert loss == pytest.approx(expected_loss, rel=1e-5)


def test_weights_count_as_copies():
    rng = np.random.default_rng(1)
    obs, target = rng.normal(size=(40, 2)).astype(np.float32), rng.normal(size=40).astype(np.float32)
    counts = rng.integers(1, 4, 40)
    params = init_network(rng, 2, (4,), 1)
    config = CriticConfig(vf_batch_size=1000)
    order = np.tile(np.arange(40, dtype=np.int32), (5, 1))
    one, _, _ = fit_critic(params, init_adam(params), obs, target, order, config, counts.astype(np.float32))
    copies = np.repeat(np.arange(40), counts)
    all_rows = np.tile(np.arange(len(copies), dtype=np.int32), (5, 1))
    two, _, _ = fit_critic(params, init_adam(params), obs[copies], target[copies], all_rows, config)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), one, two)


def test_both_critics_learn_linear_targets_unless_the_cost_critic_is_not_fitted():
    rng = np.random.default_rng(0)
    obs = rng.normal(size=(1000, 3)).astype(np.float32)
    targets = np.stack([obs @ [0.5, -1.0, 0.2], obs @ [0.0, 0.3, 1.0] - 1.0]).astype(np.float32)
    start = init_critics(np.random.default_rng(1), np.random.default_rng(2), 3, (8, 6))
    config = CriticConfig(vf_lr=1e-2, vf_weight_decay=0.0)
    fitted = start
    for _ in range(4):
        fitted = fit_critics(fitted, obs, targets, config, rng)
    for critic, target in zip((fitted.reward, fitted.cost), targets, strict=True):
        assert np.mean((np.asarray(value(critic, obs)) - target) ** 2) < 0.01 * target.var()
    assert fitted.reward_adam.steps == fitted.cost_adam.steps == 4 * 10 * 8
    alone = fit_critics(start, obs, targets, config, rng, fit_cost=False)
    assert alone.cost is start.cost
    same = [fit_critics(start, obs, targets, config, np.random.default_rng(3), epochs=k) for k in (10, None)]
    jax.tree.map(np.testing.assert_array_equal, *same)
