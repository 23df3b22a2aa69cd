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
from steingate.algorithms.common.minibatch import Adam, adam_step, adam_step_sizes, init_adam, minibatches, permutations
from steingate.algorithms.common.networks import init_network, value
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
    rng: np.random.Generator, *, weight: npt.NDArray[np.float32] | None = None, epochs: int | None = None,
    fit_cost: bool = True,
) -> Critics:  # fmt: skip
    """Return both critics fitted to the targets (2, N) of an epoch, with the same minibatches for both.

    ``weight`` (N,) says how often each sample counts. ``epochs`` replaces a number that changes from update to
    update; each pass is then a call of its own, so that no new shape is compiled.
    """
    count = (config.vf_epochs or 0) if epochs is None else epochs
    order = permutations(rng, len(obs), count)
    parts = [order] if epochs is None else np.split(order, epochs) if epochs else []
    reward, reward_adam, cost, cost_adam = critics
    for part in parts:
        reward, reward_adam, _ = fit_critic(reward, reward_adam, obs, targets[0], part, config, weight)
        if fit_cost:
            cost, cost_adam, _ = fit_critic(cost, cost_adam, obs, targets[1], part, config, weight)
    return Critics(reward, reward_adam, cost, cost_adam)


def fit_critic(
    params: Params, adam: Adam, obs: npt.NDArray[np.float32], target: npt.NDArray[np.float32],
    order: npt.NDArray[np.int32], config: CriticConfig, weight: npt.NDArray[np.float32] | None = None,
) -> tuple[Params, Adam, float]:  # fmt: skip
    """Return the fitted critic, its optimizer state and the mean minibatch loss.

    The loss is the mean squared error plus ``vf_weight_decay`` times the sum of squares of all parameters.

    ``obs`` is (N, d), ``target`` (N,), ``order`` (epochs, N) permutations; ``weight`` (N,) says how often each sample
    counts in the mean of its minibatch.
    """
    rows, weights = (part.reshape(-1, part.shape[2]) for part in minibatches(order, config.vf_batch_size, weight))
    rate, epsilon = adam_step_sizes(adam.steps, len(rows), config.vf_lr)
    state, loss = _compiled_fit(config)(params, adam.first, adam.second, obs, target, rows, weights, rate, epsilon)
    fitted, first, second = jax.tree.map(np.asarray, state)
    return fitted, Adam(adam.steps + len(rows), first, second), float(loss)


@lru_cache(maxsize=16)
def _compiled_fit(config: CriticConfig) -> Callable[..., tuple[Any, jax.Array]]:
    """Return the jitted scan over all minibatches."""

    def fit(
        params: Params, first: Params, second: Params, obs: Any, target: Any, rows: Any, weights: Any, rate: Any,
        epsilon: Any,
    ) -> tuple[Any, jax.Array]:  # fmt: skip
        theta, unravel = ravel_pytree(params)

        def step(state: Any, batch: Any) -> tuple[Any, jax.Array]:
            row, w, step_rate, step_epsilon = batch

            def loss(theta: jax.Array) -> jax.Array:
                error = value(unravel(theta), obs[row]) - target[row]
                return jnp.vdot(w, error * error) + config.vf_weight_decay * jnp.vdot(theta, theta)

            number, g = jax.value_and_grad(loss)(state[0])
            return adam_step(state, g, step_rate, step_epsilon, config.vf_max_grad_norm), number

        start = (theta, ravel_pytree(first)[0], ravel_pytree(second)[0])
        state, losses = jax.lax.scan(step, start, (rows, weights, rate, epsilon))
        return tuple(unravel(part) for part in state), jnp.mean(losses)

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
