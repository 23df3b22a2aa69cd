import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from steingate.algorithms.common.heads import log_prob, mean_kl_per_dim
from tests.algorithms.problems import problem

from steingate.algorithms.common import fisher


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks so small that the batch needs several, the last of them padded."""
    monkeypatch.setattr(fisher, "BLOCK", 7)


@pytest.mark.parametrize("hidden", [(5, 4), (6,), (4, 3, 5)])
def test_fisher_product_against_the_hessian_of_the_divergence(hidden, small_blocks):
    params, batch = problem(samples=31, hidden=hidden)
    theta, unravel = ravel_pytree(fisher.to_theta(params))
    with jax.enable_x64(True):
        wide = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)
        wide_flat, wide_unravel = ravel_pytree(fisher.to_theta(wide))
        obs = batch.obs.astype(np.float64)
        hessian = jax.hessian(lambda t: mean_kl_per_dim(wide, fisher.to_params(wide_unravel(t)), obs))
        dense = np.asarray(jax.jit(hessian)(wide_flat))
    blocks = fisher.cut(batch)
    assert blocks.obs.shape[0] == 5

    @jax.jit
    def product(row):
        policy = fisher.linearize(unravel(theta), blocks)
        return ravel_pytree(fisher.fisher_product(policy, blocks, unravel(row)))[0]

    direct = np.stack([product(row) for row in np.eye(len(theta), dtype=np.float32)])
    np.testing.assert_allclose(direct, dense, atol=2e-6)


def test_surrogates_and_gradients_against_automatic_differentiation(small_blocks):
    params, batch = problem(samples=40)
    behind = batch._replace(logp=batch.logp + 0.1 * np.sin(np.arange(40)).astype(np.float32))
    theta, unravel = ravel_pytree(fisher.to_theta(params))
    blocks = fisher.cut(behind)
    found = jax.jit(lambda t: fisher.surrogate_gradients(fisher.linearize(unravel(t), blocks), blocks))(theta)

    def surrogate(t, advantage):
        return jnp.mean(jnp.exp(log_prob(fisher.to_params(unravel(t)), batch.obs, batch.act) - behind.logp) * advantage)

    for number, gradient, advantage in zip(found[:2], found[2:], (batch.adv, batch.cost_adv), strict=True):
        expected, slope = jax.jit(jax.value_and_grad(surrogate))(theta, advantage)
        assert float(number) == pytest.approx(float(expected), abs=1e-6)
        np.testing.assert_allclose(ravel_pytree(gradient)[0], slope, atol=1e-6)


def test_measures_of_a_trial_against_the_plain_networks(small_blocks):
    params, batch = problem(samples=40)
    theta, unravel = ravel_pytree(fisher.to_theta(params))
    blocks = fisher.cut(batch)
    moved = theta + 0.1 * jnp.cos(jnp.arange(len(theta)))

    @jax.jit
    def evaluate(old, new):
        return fisher.evaluate(unravel(new), fisher.linearize(unravel(old), blocks), blocks)

    reward, cost, kl = evaluate(theta, moved)
    new = fisher.to_params(unravel(moved))
    ratio = np.exp(np.asarray(log_prob(new, batch.obs, batch.act)) - batch.logp)
    assert float(reward) == pytest.approx(float((ratio * batch.adv).mean()), abs=1e-6)
    assert float(cost) == pytest.approx(float((ratio * batch.cost_adv).mean()), abs=1e-6)
    assert float(kl) == pytest.approx(float(mean_kl_per_dim(params, new, batch.obs)), rel=1e-4)
