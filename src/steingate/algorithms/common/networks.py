"""Policy and value networks as parameter trees, and the action distribution of a policy.

A policy with a ``log_std`` is a diagonal Gaussian. One without it is categorical: the network gives one logit per
action, and an action is its index 0, 1, ... as one float32. The KL of a categorical policy counts as one dimension.
"""

from itertools import pairwise
from math import log, pi, sqrt
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steingate.algorithms.base import Params

HALF_LOG_2PI = 0.5 * log(2.0 * pi)


def init_network(rng: np.random.Generator, obs_dim: int, hidden: tuple[int, ...], out_dim: int) -> Params:
    """Return the parameters of a tanh network with a linear output, float32.

    Weights (in, out) and biases are uniform in ±1/sqrt(in), with no special scale on the output layer.
    """
    weights, biases = [], []
    for fan_in, fan_out in pairwise((obs_dim, *hidden, out_dim)):
        bound = 1.0 / sqrt(fan_in)
        weights.append(rng.uniform(-bound, bound, (fan_in, fan_out)).astype(np.float32))
        biases.append(rng.uniform(-bound, bound, fan_out).astype(np.float32))
    return {"w": tuple(weights), "b": tuple(biases)}


def init_policy(
    rng: np.random.Generator, obs_dim: int, act_dim: int, hidden: tuple[int, ...] = (64, 64), discrete: bool = False,
    init_std: float = 1.0,
) -> Params:  # fmt: skip
    """Return a policy: a network for the means and a free ``log_std``, or for the logits of ``act_dim`` actions."""
    network = init_network(rng, obs_dim, hidden, act_dim)
    return network if discrete else {**network, "log_std": np.full(act_dim, np.log(init_std), np.float32)}


def forward(params: Params, obs: Any) -> jax.Array:
    """Return the network's output for each row of ``obs``: (N, d) to (N, out)."""
    *inner, (w, b) = zip(params["w"], params["b"], strict=True)
    hidden: Any = obs
    for w_inner, b_inner in inner:
        hidden = jnp.tanh(hidden @ w_inner + b_inner)
    return jnp.asarray(hidden @ w + b)


def value(params: Params, obs: Any) -> jax.Array:
    """Return a critic's value of each row of ``obs``: (N, d) to (N,)."""
    return forward(params, obs)[:, 0]


class ActionDistribution(NamedTuple):
    """Action distribution in each of N states."""

    out: Any  # (N, a) means, or (N, n_actions) logits
    log_std: Any  # (a,); None if categorical

    @property
    def dims(self) -> int:
        """Number of action dimensions that the KL is averaged over."""
        return 1 if self.log_std is None else int(self.log_std.shape[0])

    def log_prob(self, act: Any) -> jax.Array:
        """Return the log-density, or log-probability, of each row of ``act``, (N, a) or (N, 1) indices: (N,)."""
        if self.log_std is None:
            logits = jax.nn.log_softmax(self.out, axis=-1)
            return jnp.take_along_axis(logits, act.astype(jnp.int32), axis=-1)[..., 0]
        z = (act - self.out) * jnp.exp(-self.log_std)
        return jnp.sum(-0.5 * z * z - self.log_std - HALF_LOG_2PI, axis=-1)

    def kl(self, new: "ActionDistribution") -> jax.Array:
        """Return KL(self || new) of each sample and action dimension: (N, dims).

        A discrete action whose probability is 0 in float32 adds nothing, however small the new one is.
        """
        if self.log_std is None:
            log_old, log_new = jax.nn.log_softmax(self.out, axis=-1), jax.nn.log_softmax(new.out, axis=-1)
            return jnp.sum(jnp.exp(log_old) * (log_old - log_new), axis=-1, keepdims=True)
        ratio = jnp.exp(2.0 * (self.log_std - new.log_std))
        shift = ((self.out - new.out) * jnp.exp(-new.log_std)) ** 2
        return jnp.asarray(0.5 * (ratio + shift - 1.0) + (new.log_std - self.log_std))


def action_distribution(params: Params, obs: Any) -> ActionDistribution:
    """Return the policy's action distribution for each row of ``obs``."""
    return ActionDistribution(forward(params, obs), params.get("log_std"))


def log_prob(params: Params, obs: Any, act: Any) -> jax.Array:
    """Return the policy's log-density (or log-probability) of each action: (N,)."""
    return action_distribution(params, obs).log_prob(act)


compiled_log_prob = jax.jit(log_prob)
