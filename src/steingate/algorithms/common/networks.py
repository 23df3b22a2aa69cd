"""Policy and value networks as parameter trees: initial values and output."""

from itertools import pairwise
from math import sqrt
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from steingate.algorithms.base import Params


def init_network(rng: np.random.Generator, obs_dim: int, hidden: tuple[int, ...], out_dim: int) -> Params:
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
    rng: np.random.Generator, obs_dim: int, act_dim: int, hidden: tuple[int, ...] = (64, 64), discrete: bool = False,
    init_std: float = 1.0,
) -> Params:  # fmt: skip
    """Return the parameters of a policy: a network for the means and a free ``log_std``.

    With ``discrete`` it is a network for the logits of ``act_dim`` actions.
    """
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
