"""Fisher products against dense Hessians, surrogates against automatic differentiation, for both kinds of policy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from tests.algorithms.problems import mean_kl, problem, surrogates

from steingate.algorithms.base import Batch
from steingate.algorithms.common import fisher
from steingate.algorithms.common.networks import init_policy, log_prob


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """Blocks so small that the batch needs several, the last of them padded."""
    monkeypatch.setattr(fisher, "BLOCK", 7)


def categorical(samples):
    """A categorical policy, and a weighted batch of actions of another policy."""
    rng = np.random.default_rng(0)
    params, other = (init_policy(rng, 3, 4, (5, 6), discrete=True) for _ in range(2))
    obs = rng.normal(size=(samples, 3)).astype(np.float32)
    act = rng.integers(4, size=(samples, 1)).astype(np.float32)
    adv, cost_adv = rng.normal(size=(2, samples)).astype(np.float32)
    return params, Batch(obs, act, np.asarray(log_prob(other, obs, act)), adv, cost_adv)


def dense_fisher(params, obs, weight=None):
    """Hessian of the KL in double precision, (n, n)."""
    with jax.enable_x64(True):
        wide = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)
        theta, unravel = ravel_pytree(fisher.to_theta(wide))
        rows = obs.astype(np.float64)
        if weight is not None:
            rows = np.repeat(rows, weight.astype(int), axis=0)
        hessian = jax.hessian(lambda t: mean_kl(wide, fisher.to_params(unravel(t)), rows))
        return np.asarray(jax.jit(hessian)(theta))


def products(params, batch):
    """Fisher products with all unit vectors, (n, n)."""
    theta, unravel = ravel_pytree(fisher.to_theta(params))
    blocks = fisher.split_blocks(batch)
    policy = fisher.linearize(fisher.to_theta(params), blocks)
    product = jax.jit(lambda v: ravel_pytree(fisher.fisher_product(policy, blocks, unravel(v)))[0])
    return np.stack([product(row) for row in np.eye(len(theta), dtype=np.float32)])


@pytest.mark.parametrize("hidden", [(6,), (4, 3, 5)])
def test_gaussian_fisher_products_against_the_hessian_of_the_kl(hidden):
    params, batch = problem(samples=31, hidden=hidden)
    assert fisher.split_blocks(batch).obs.shape[0] == 5
    np.testing.assert_allclose(products(params, batch), dense_fisher(params, batch.obs), atol=2e-6)


def test_categorical_fisher_products_against_the_hessian_of_the_kl():
    params, batch = categorical(samples=31)
    np.testing.assert_allclose(products(params, batch), dense_fisher(params, batch.obs), atol=2e-6)
    weight = np.random.default_rng(1).integers(1, 6, 31).astype(np.float32)
    expected = dense_fisher(params, batch.obs, weight)
    np.testing.assert_allclose(products(params, batch._replace(weight=weight)), expected, atol=2e-6)


@pytest.mark.parametrize("kind", ["gaussian", "categorical"])
def test_surrogates_and_gradients_against_automatic_differentiation(kind):
    params, batch = problem(samples=40) if kind == "gaussian" else categorical(samples=40)
    batch = batch._replace(logp=batch.logp + 0.1 * np.sin(np.arange(40)).astype(np.float32))
    theta, unravel = ravel_pytree(fisher.to_theta(params))
    blocks = fisher.split_blocks(batch)
    found = jax.jit(lambda t: fisher.surrogate_gradients(fisher.linearize(unravel(t), blocks), blocks))(theta)

    def surrogate(t, advantage):
        return jnp.mean(jnp.exp(log_prob(fisher.to_params(unravel(t)), batch.obs, batch.act) - batch.logp) * advantage)

    for number, gradient, advantage in zip(found[:2], found[2:], (batch.adv, batch.cost_adv), strict=True):
        expected, slope = jax.jit(jax.value_and_grad(surrogate))(theta, advantage)
        assert float(number) == pytest.approx(float(expected), abs=1e-6)
        np.testing.assert_allclose(ravel_pytree(gradient)[0], slope, atol=1e-6)


@pytest.mark.parametrize("kind", ["gaussian", "categorical"])
def test_surrogates_and_kl_of_a_trial_against_the_networks(kind):
    params, batch = problem(samples=40) if kind == "gaussian" else categorical(samples=40)
    theta, unravel = ravel_pytree(fisher.to_theta(params))
    blocks = fisher.split_blocks(batch)
    moved = theta + 0.1 * jnp.cos(jnp.arange(len(theta)))

    @jax.jit
    def evaluate(old, new):
        return fisher.surrogates_and_kl(unravel(new), fisher.linearize(unravel(old), blocks), blocks)

    reward, cost, kl = evaluate(theta, moved)
    new = fisher.to_params(unravel(moved))
    assert (float(reward), float(cost)) == pytest.approx(surrogates(new, batch), abs=1e-6)
    assert float(kl) == pytest.approx(float(mean_kl(params, new, batch.obs)), rel=1e-4)
