"""Both kinds of policy: what they say of actions, against SciPy, brute force and automatic derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import stats
from scipy.special import rel_entr, softmax
from steingate.algorithms.common.base import Batch
from steingate.algorithms.common.heads import (
    Law,
    categorical_kl,
    categorical_log_prob,
    choice_curvature,
    choice_score,
    kl,
    law,
    law_log_prob,
    log_prob,
    mean_kl_per_dim,
)

from steingate.algorithms.common import fisher
from steingate.algorithms.common.networks import init_policy, mean

CHOICES = 4


def chooser(seed=0, rows=9, obs_dim=3):
    """A categorical policy, observations, choices, and another policy a little way off."""
    rng = np.random.default_rng(seed)
    params, other = (init_policy(rng, obs_dim, CHOICES, (5, 6), discrete=True) for _ in range(2))
    near = jax.tree.map(lambda a, b: (0.8 * a + 0.2 * b).astype(np.float32), params, other)
    obs = rng.normal(size=(rows, obs_dim)).astype(np.float32)
    act = rng.integers(CHOICES, size=(rows, 1)).astype(np.float32)
    return params, near, obs, act


def test_a_categorical_policy_has_one_logit_for_each_choice_and_nothing_else():
    params, *_ = chooser()
    assert set(params) == {"w", "b"}
    assert params["b"][-1].shape == (CHOICES,)


def test_log_probabilities_are_those_of_scipy():
    params, _, obs, act = chooser()
    p = softmax(np.asarray(mean(params, obs), np.float64), axis=1)
    expected = [
        stats.rv_discrete(values=(range(CHOICES), row)).logpmf(int(a)) for row, a in zip(p, act[:, 0], strict=True)
    ]
    np.testing.assert_allclose(log_prob(params, obs, act), expected, rtol=2e-6)


def test_divergences_are_those_of_scipy_and_none_from_itself():
    params, near, obs, _ = chooser()
    old, new = (softmax(np.asarray(mean(one, obs), np.float64), axis=1) for one in (params, near))
    expected = rel_entr(old, new).sum(axis=1)
    found = kl(law(params, obs), law(near, obs))
    assert found.shape == (len(obs), 1)
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-5, atol=3e-7)  # rounding of log-probabilities
    np.testing.assert_allclose(mean_kl_per_dim(params, near, obs), expected.mean(), atol=3e-7)
    assert float(jnp.abs(kl(law(params, obs), law(params, obs))).max()) == 0.0


def test_a_choice_that_is_never_made_does_not_spoil_the_divergence():
    sure, other = np.array([[0.0, -500.0]], np.float32), np.array([[0.0, -200.0]], np.float32)
    assert float(categorical_kl(sure, other)[0, 0]) == 0.0
    assert np.isfinite(categorical_kl(other, sure)).all()
    assert float(categorical_log_prob(sure, np.array([[1.0]]))[0]) == -500.0


def test_score_and_curvature_are_the_derivatives():
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(CHOICES, 1)).astype(np.float32)
    act = np.array([[2.0]], np.float32)
    slope = jax.grad(lambda z: categorical_log_prob(z.T, act.T)[0])(logits)
    np.testing.assert_allclose(choice_score(logits, act), slope, atol=1e-6)
    hessian = jax.hessian(lambda z: categorical_kl(logits.T, z[None])[0, 0])(logits[:, 0])
    for direction in np.eye(CHOICES, dtype=np.float32):
        curved = choice_curvature(jax.nn.softmax(logits, axis=0), direction[:, None])
        np.testing.assert_allclose(curved[:, 0], hessian @ direction, atol=1e-6)


@pytest.mark.parametrize("rows", [7, 2 * fisher.BLOCK + 5])
def test_the_fisher_product_is_the_hessian_of_the_divergence(rows):
    params, _, obs, act = chooser(rows=rows)
    weight = np.random.default_rng(1).integers(1, 6, rows).astype(np.float32)
    batch = Batch(obs, act, np.zeros(rows, np.float32), *np.zeros((2, rows), np.float32), weight)
    blocks = fisher.cut(batch)
    theta, unravel = ravel_pytree(fisher.to_theta(params))
    policy = fisher.linearize(unravel(theta), blocks)

    def divergence(flat):
        moved = kl(law(params, obs), law(fisher.to_params(unravel(flat)), obs))[:, 0]
        return jnp.vdot(weight / weight.sum(), moved)

    for seed in range(3):
        v = np.random.default_rng(seed).normal(size=theta.size).astype(np.float32)
        product = ravel_pytree(fisher.fisher_product(policy, blocks, unravel(jnp.asarray(v))))[0]
        expected = jax.jvp(jax.grad(divergence), (theta,), (jnp.asarray(v),))[1]
        np.testing.assert_allclose(product, expected, rtol=2e-3, atol=2e-5 * float(jnp.abs(expected).max()))


def test_surrogates_their_gradients_and_the_divergence():
    params, near, obs, act = chooser(rows=50)
    rng = np.random.default_rng(2)
    adv, cost_adv = rng.normal(size=(2, 50)).astype(np.float32)
    logp = np.asarray(log_prob(near, obs, act))
    batch = Batch(obs, act, logp, adv, cost_adv)
    blocks = fisher.cut(batch)
    theta, unravel = ravel_pytree(fisher.to_theta(params))
    policy = fisher.linearize(unravel(theta), blocks)

    def surrogate(flat, advantage):
        ratio = jnp.exp(log_prob(fisher.to_params(unravel(flat)), obs, act) - logp)
        return jnp.mean(ratio * advantage)

    reward, cost, g, b = fisher.surrogate_gradients(policy, blocks)
    for value, gradient, advantage in ((reward, g, adv), (cost, b, cost_adv)):
        expected, slope = jax.value_and_grad(surrogate)(theta, advantage)
        np.testing.assert_allclose(value, expected, rtol=1e-5)
        np.testing.assert_allclose(ravel_pytree(gradient)[0], slope, rtol=1e-3, atol=1e-6)
    reward, cost, moved = fisher.evaluate(fisher.to_theta(near), policy, blocks)
    np.testing.assert_allclose(reward, np.mean(adv), rtol=1e-4)  # ``near`` took the actions: all ratios are 1
    np.testing.assert_allclose(cost, np.mean(cost_adv), rtol=1e-4)
    np.testing.assert_allclose(moved, mean_kl_per_dim(params, near, obs), rtol=1e-4)


def test_a_gaussian_law_is_summed_over_dimensions_and_a_choice_counts_as_one():
    rng = np.random.default_rng(0)
    mu, log_std = rng.normal(size=(5, 2)), rng.normal(size=2)
    act = rng.normal(size=(5, 2))
    expected = stats.norm.logpdf(act, mu, np.exp(log_std)).sum(axis=1)
    np.testing.assert_allclose(law_log_prob(Law(mu, log_std), act), expected, rtol=1e-5)
    assert Law(mu, log_std).dims == 2
    assert Law(mu, None).dims == 1
