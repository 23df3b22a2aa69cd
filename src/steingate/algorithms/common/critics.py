"""Critics of reward and cost: values of a rollout, and one fit per epoch by minibatch Adam."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.flatten_util import ravel_pytree

from steingate.algorithms.base import Params
from steingate.algorithms.common.networks import init_network, value
from steingate.algorithms.common.ppo_update import Adam, adam_step, adam_step_sizes, init_adam, minibatches
from steingate.algorithms.config import CriticConfig


class Critics(NamedTuple):
    """Parameters and optimizer of both critics."""

    reward: Params
    reward_adam: Adam
    cost: Params
    cost_adam: Adam


def init_critics(
    reward_rng: np.random.Generator, cost_rng: np.random.Generator, obs_dim: int, hidden: tuple[int, ...]
) -> Critics:
    """Return the critics before the first epoch."""
    reward, cost = (init_network(rng, obs_dim, hidden, 1) for rng in (reward_rng, cost_rng))
    return Critics(reward, init_adam(reward), cost, init_adam(cost))


def fit_critics(
    critics: Critics, obs: npt.NDArray[np.float32], targets: npt.NDArray[np.float32], config: CriticConfig,
    rng: np.random.Generator, epochs: int, weight: npt.NDArray[np.float32] | None = None, fit_cost: bool = True,
) -> Critics:  # fmt: skip
    """Return both critics after ``epochs`` passes over the targets (2, N), with the same minibatches for both.

    ``obs`` is (N, d); ``weight`` (N,) says how often each sample counts. The loss of a minibatch is the mean squared
    error plus ``vf_weight_decay`` times the sum of squares of all parameters.
    """
    reward, reward_adam, cost, cost_adam = critics
    rows, weights = minibatches(rng, len(obs), epochs, config.vf_batch_size, weight)
    for one_pass in zip(rows, weights, strict=True):  # a call for each, so that one shape serves any number of passes
        reward, reward_adam = _fit(reward, reward_adam, obs, targets[0], *one_pass, config)
        if fit_cost:
            cost, cost_adam = _fit(cost, cost_adam, obs, targets[1], *one_pass, config)
    return Critics(reward, reward_adam, cost, cost_adam)


def _fit(params: Params, adam: Adam, obs: Any, target: Any, rows: Any, weights: Any, config: CriticConfig) -> Any:
    """Return parameters and optimizer after one pass over minibatches with these rows and weights."""
    rate, epsilon = adam_step_sizes(adam.steps, len(rows), config.vf_lr)
    state = _compiled_fit(config)(params, adam.first, adam.second, obs, target, rows, weights, rate, epsilon)
    fitted, first, second = jax.tree.map(np.asarray, state)
    return fitted, Adam(adam.steps + len(rows), first, second)


@lru_cache(maxsize=16)
def _compiled_fit(config: CriticConfig) -> Callable[..., Any]:
    """Return the jitted scan over the minibatches of a pass."""

    def fit(
        params: Params, first: Params, second: Params, obs: Any, target: Any, rows: Any, weights: Any, rate: Any,
        epsilon: Any,
    ) -> Any:  # fmt: skip
        theta, unravel = ravel_pytree(params)

        def step(state: Any, batch: Any) -> tuple[Any, None]:
            row, w, step_rate, step_epsilon = batch

            def loss(theta: jax.Array) -> jax.Array:
                error = value(unravel(theta), obs[row]) - target[row]
                return jnp.vdot(w, error * error) + config.vf_weight_decay * jnp.vdot(theta, theta)

            return adam_step(state, jax.grad(loss)(state[0]), step_rate, step_epsilon, config.vf_max_grad_norm), None

        start = (theta, ravel_pytree(first)[0], ravel_pytree(second)[0])
        state, _ = jax.lax.scan(step, start, (rows, weights, rate, epsilon))
        return tuple(unravel(part) for part in state)

    return jax.jit(fit)


BLOCK = 64  # rows; more than the matrix product processes at once


@jax.jit
def _values(reward_critic: Params, cost_critic: Params, obs: jax.Array) -> tuple[jax.Array, jax.Array]:
    return value(reward_critic, obs), value(cost_critic, obs)


def values(critics: Critics, obs: npt.NDArray[np.float32], varying: bool = False) -> npt.NDArray[np.float64]:
    """Return both critics' values of the rows of ``obs``: (N, d) to (2, N).

    Rows are padded to whole blocks, so that a row's value does not depend on the number of rows. With
    ``varying`` they are padded to a power of two, so that a changing N compiles few shapes.
    """
    n = len(obs)
    size = max(BLOCK, 1 << (n - 1).bit_length()) if varying else -(-n // BLOCK) * BLOCK
    padded = np.zeros((size, obs.shape[1]), np.float32)
    padded[:n] = obs
    return np.array(_values(critics.reward, critics.cost, padded), np.float64)[:, :n]
