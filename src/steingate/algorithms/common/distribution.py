"""Action distributions of the policy network: diagonal Gaussian, or categorical over discrete actions.

A policy with a ``log_std`` is Gaussian, one without it is categorical: the network gives one logit per action, and
an action is its index 0, 1, ... as one float32. The KL of a categorical policy counts as one action dimension.
"""

from math import log, pi
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from steingate.algorithms.base import Params
from steingate.algorithms.common.networks import forward

HALF_LOG_2PI = 0.5 * log(2.0 * pi)


class ActionDistribution(NamedTuple):
    """Action distribution in each of N states."""

    out: Any  # (N, a) means, or (N, n_actions) logits
    log_std: Any  # (a,); None if categorical

    @property
    def dims(self) -> int:
        """Number of action dimensions that the KL is averaged over."""
        return 1 if self.log_std is None else int(self.log_std.shape[0])

    def log_prob(self, act: Any) -> jax.Array:
        """Return the log-density (or log-probability) of each row of ``act``: (N,)."""
        if self.log_std is None:
            return categorical_log_prob(self.out, act)
        return gaussian_log_prob(self.out, self.log_std, act)

    def kl(self, new: "ActionDistribution") -> jax.Array:
        """Return KL(self || new) of each sample and action dimension: (N, dims)."""
        if self.log_std is None:
            return categorical_kl(self.out, new.out)
        return gaussian_kl(self.out, self.log_std, new.out, new.log_std)


def action_distribution(params: Params, obs: Any) -> ActionDistribution:
    """Return the policy's action distribution for each row of ``obs``."""
    return ActionDistribution(forward(params, obs), params.get("log_std"))


def log_prob(params: Params, obs: Any, act: Any) -> jax.Array:
    """Return the policy's log-density (or log-probability) of each action: (N,)."""
    return action_distribution(params, obs).log_prob(act)


def gaussian_log_prob(mu: Any, log_std: Any, act: Any) -> jax.Array:
    """Return the log-density of ``act``, summed over action dimensions: (N, a) to (N,)."""
    z = (act - mu) * jnp.exp(-log_std)
    return jnp.sum(-0.5 * z * z - log_std - HALF_LOG_2PI, axis=-1)


def categorical_log_prob(logits: Any, act: Any) -> jax.Array:
    """Return the log-probability of the actions ``act``, (N, 1) indices, given ``logits``: (N,)."""
    return jnp.take_along_axis(jax.nn.log_softmax(logits, axis=-1), act.astype(jnp.int32), axis=-1)[..., 0]


def gaussian_kl(mu_old: Any, log_std_old: Any, mu_new: Any, log_std_new: Any) -> jax.Array:
    """Return KL(old || new) of each sample and action dimension: (N, a)."""
    ratio = jnp.exp(2.0 * (log_std_old - log_std_new))
    shift = ((mu_old - mu_new) * jnp.exp(-log_std_new)) ** 2
    divergence: jax.Array = 0.5 * (ratio + shift - 1.0) + (log_std_new - log_std_old)
    return divergence


def categorical_kl(logits_old: Any, logits_new: Any) -> jax.Array:
    """Return KL(old || new) of each sample, as one column: (N, n_actions) to (N, 1).

    An action whose old probability is 0 in float32 adds nothing, however small the new one is.
    """
    old, new = jax.nn.log_softmax(logits_old, axis=-1), jax.nn.log_softmax(logits_new, axis=-1)
    return jnp.sum(jnp.exp(old) * (old - new), axis=-1, keepdims=True)


def categorical_score(logits: Any, act: Any) -> jax.Array:
    """Return the gradient of each action's log-probability in the logits: one-hot minus probabilities.

    Features first: ``logits`` is (n_actions, n), ``act`` (1, n).
    """
    taken = jax.nn.one_hot(act[0].astype(jnp.int32), logits.shape[0], axis=0, dtype=logits.dtype)
    return jnp.asarray(taken - jax.nn.softmax(logits, axis=0))


def categorical_fisher(probability: Any, change: Any) -> jax.Array:
    """Return the Hessian of KL(old || new) at new = old in the logits, diag(p) - p p', times a change of them.

    Both arguments are (n_actions, n).
    """
    return jnp.asarray(probability * (change - jnp.sum(probability * change, axis=0, keepdims=True)))


compiled_log_prob = jax.jit(log_prob)
