"""Gaussian policy and value networks as parameter trees: initial values, output, density, divergence."""

from itertools import pairwise
from math import log, pi, sqrt
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from steingate.algos.base import Params

HALF_LOG_2PI = 0.5 * log(2.0 * pi)


def init_critic(
    rng: np.random.Generator, obs_dim: int, hidden: tuple[int, ...] = (64, 64), out_dim: int = 1
) -> Params:
    """Return the parameters of a tanh network with a linear output, float32.

    Weights and biases are uniform in ±1/sqrt(fan_in), with no special scale on the output layer. ``W`` has
    shape (in, out).
    """
    sizes = (obs_dim, *hidden, out_dim)
    weights, biases = [], []
    for fan_in, fan_out in pairwise(sizes):
        bound = 1.0 / sqrt(fan_in)
        weights.append(rng.uniform(-bound, bound, (fan_in, fan_out)).astype(np.float32))
        biases.append(rng.uniform(-bound, bound, fan_out).astype(np.float32))
    return {"w": tuple(weights), "b": tuple(biases)}


def init_policy(
    rng: np.random.Generator, obs_dim: int, act_dim: int, hidden: tuple[int, ...] = (64, 64)
) -> Params:
    """Return the parameters of a diagonal Gaussian policy: a network for the mean, a free log_std of 0."""
    return {**init_critic(rng, obs_dim, hidden, act_dim), "log_std": np.zeros(act_dim, np.float32)}


def mean(params: Params, obs: Any) -> jax.Array:
    """Return the network's output for each row of ``obs``: (N, d) to (N, out)."""
    *inner, (w, b) = zip(params["w"], params["b"], strict=True)
    hidden: Any = obs
    for w_inner, b_inner in inner:
        hidden = jnp.tanh(hidden @ w_inner + b_inner)
    return jnp.asarray(hidden @ w + b)


def value(params: Params, obs: Any) -> jax.Array:
    """Return a critic's value of each row of ``obs``: (N, d) to (N,)."""
    return mean(params, obs)[:, 0]


def gaussian_log_prob(mu: Any, log_std: Any, act: Any) -> jax.Array:
    """Return the log-density of ``act``, summed over action dimensions: (N, a) to (N,)."""
    z = (act - mu) * jnp.exp(-log_std)
    return jnp.sum(-0.5 * z * z - log_std - HALF_LOG_2PI, axis=-1)


def log_prob(params: Params, obs: Any, act: Any) -> jax.Array:
    """Return the policy's log-density of each action, summed over action dimensions: (N,)."""
    return gaussian_log_prob(mean(params, obs), params["log_std"], act)


def gaussian_kl(mu_old: Any, log_std_old: Any, mu_new: Any, log_std_new: Any) -> jax.Array:
    """Return KL(old || new) of each sample and action dimension: (N, a)."""
    ratio = jnp.exp(2.0 * (log_std_old - log_std_new))
    shift = ((mu_old - mu_new) * jnp.exp(-log_std_new)) ** 2
    divergence: jax.Array = 0.5 * (ratio + shift - 1.0) + (log_std_new - log_std_old)
    return divergence


def mean_kl_per_dim(old: Params, new: Params, obs: Any) -> jax.Array:
    """Return KL(old || new) averaged over samples AND action dimensions.

    This is the trust region's divergence; the usual one, summed over dimensions, is ``act_dim`` times larger.
    """
    return jnp.mean(gaussian_kl(mean(old, obs), old["log_std"], mean(new, obs), new["log_std"]))
