"""What a policy's network says about actions: a Gaussian around its outputs, or a choice by its logits.

A policy whose parameters have a ``log_std`` is Gaussian, one without it is categorical: its network gives one
logit for each choice, and an action is the number of the choice, 0, 1, ..., as one float32. The divergence of
a categorical policy counts as that of one action dimension.
"""

from math import log, pi
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from steingate.algorithms.common.base import Params
from steingate.algorithms.common.networks import mean

HALF_LOG_2PI = 0.5 * log(2.0 * pi)


class Law(NamedTuple):
    """How actions are distributed in each of N states."""

    out: Any  # (N, a) means, or (N, choices) logits
    log_std: Any  # (a,), None for a categorical law

    @property
    def dims(self) -> int:
        """Action dimensions that a divergence is averaged over."""
        return 1 if self.log_std is None else int(self.log_std.shape[0])


def law(params: Params, obs: Any) -> Law:
    """Return how the policy's actions are distributed for each row of ``obs``."""
    return Law(mean(params, obs), params.get("log_std"))


def gaussian_log_prob(mu: Any, log_std: Any, act: Any) -> jax.Array:
    """Return the log-density of ``act``, summed over action dimensions: (N, a) to (N,)."""
    z = (act - mu) * jnp.exp(-log_std)
    return jnp.sum(-0.5 * z * z - log_std - HALF_LOG_2PI, axis=-1)


def categorical_log_prob(logits: Any, act: Any) -> jax.Array:
    """Return the log-probability of the choices ``act``, (N, 1), among the columns of ``logits``: (N,)."""
    return jnp.take_along_axis(jax.nn.log_softmax(logits, axis=-1), act.astype(jnp.int32), axis=-1)[..., 0]


def law_log_prob(own: Law, act: Any) -> jax.Array:
    """Return the logarithm of the density, or of the probability, of each row of ``act``: (N,)."""
    if own.log_std is None:
        return categorical_log_prob(own.out, act)
    return gaussian_log_prob(own.out, own.log_std, act)


def log_prob(params: Params, obs: Any, act: Any) -> jax.Array:
    """Return the policy's log-density, or log-probability, of each action: (N,)."""
    return law_log_prob(law(params, obs), act)


def gaussian_kl(mu_old: Any, log_std_old: Any, mu_new: Any, log_std_new: Any) -> jax.Array:
    """Return KL(old || new) of each sample and action dimension: (N, a)."""
    ratio = jnp.exp(2.0 * (log_std_old - log_std_new))
    shift = ((mu_old - mu_new) * jnp.exp(-log_std_new)) ** 2
    divergence: jax.Array = 0.5 * (ratio + shift - 1.0) + (log_std_new - log_std_old)
    return divergence


def categorical_kl(logits_old: Any, logits_new: Any) -> jax.Array:
    """Return KL(old || new) of each sample, as one column: (N, choices) to (N, 1).

    A choice whose old probability is 0 in float32 adds nothing, however small the new one is.
    """
    old, new = jax.nn.log_softmax(logits_old, axis=-1), jax.nn.log_softmax(logits_new, axis=-1)
    return jnp.sum(jnp.exp(old) * (old - new), axis=-1, keepdims=True)


def kl(old: Law, new: Law) -> jax.Array:
    """Return KL(old || new) of each sample and action dimension: (N, a), or (N, 1) for a choice."""
    if old.log_std is None:
        return categorical_kl(old.out, new.out)
    return gaussian_kl(old.out, old.log_std, new.out, new.log_std)


def mean_kl_per_dim(old: Params, new: Params, obs: Any) -> jax.Array:
    """Return KL(old || new) averaged over samples AND action dimensions.

    This is the trust region's divergence; the usual one, summed over dimensions, is ``act_dim`` times larger.
    """
    return jnp.mean(kl(law(old, obs), law(new, obs)))


def choice_score(logits: Any, act: Any) -> jax.Array:
    """Return the gradient of the log-probability of each choice in its logits, features first.

    ``logits`` is (choices, n), ``act`` (1, n): one for the choice made, minus the probabilities.
    """
    made = jax.nn.one_hot(act[0].astype(jnp.int32), logits.shape[0], axis=0, dtype=logits.dtype)
    return jnp.asarray(made - jax.nn.softmax(logits, axis=0))


def choice_curvature(probability: Any, change: Any) -> jax.Array:
    """Return the Hessian of KL(old || new) at new = old in the logits, times a change of them, (choices, n).

    It is diag(p) - p p', exactly: the gradient of that KL, new probabilities minus old, vanishes there.
    """
    return jnp.asarray(probability * (change - jnp.sum(probability * change, axis=0, keepdims=True)))
