"""Fitting a value network: minibatch Adam over a whole epoch as one compiled scan."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.flatten_util import ravel_pytree

from steingate.algorithms.common.base import Params
from steingate.algorithms.common.minibatches import (
    Adam,
    adam_move,
    adam_sizes,
    init_adam,
    minibatch_order,
    minibatches,
)
from steingate.algorithms.common.networks import value
from steingate.algorithms.common.sizes import CriticFit
from steingate.gates.base import Log

__all__ = ["Adam", "CriticFit", "fit_critic", "init_adam", "minibatch_order"]


DEFAULT_FIT = CriticFit()


def fit_critic(
    params: Params,
    adam: Adam,
    obs: npt.NDArray[np.float32],
    target: npt.NDArray[np.float32],
    order: npt.NDArray[np.int32],
    cfg: CriticFit = DEFAULT_FIT,
    weight: npt.NDArray[np.float32] | None = None,
) -> tuple[Params, Adam, Log]:
    """Return the fitted critic, its optimizer state and the mean minibatch loss as ``{"loss": ...}``.

    Each minibatch's loss is the mean squared error plus ``penalty`` times the sum of squares of all
    parameters; its gradient is clipped to norm ``max_grad_norm``. The last, incomplete minibatch of each pass
    is kept.

    Parameters
    ----------
    obs, target
        (N, d) observations and (N,) value targets, computed once per epoch.
    order
        (passes, N) from :func:`minibatch_order`.
    weight
        (N,) how often each sample counts in the mean of its minibatch; once each by default.
    """
    rows, share = (part.reshape(-1, part.shape[2]) for part in minibatches(order, cfg.batch_size, weight))
    rate, floor = adam_sizes(adam.steps, len(rows), cfg.learning_rate)
    state = (params, adam.first, adam.second)
    state, loss = _compiled(cfg)(*state, obs, target, rows, share, rate, floor)
    fitted, first, second = jax.tree.map(np.asarray, state)
    return fitted, Adam(adam.steps + len(rows), first, second), {"loss": float(loss)}


@lru_cache(maxsize=16)
def _compiled(cfg: CriticFit) -> Callable[..., tuple[Any, jax.Array]]:
    """Return the jitted scan over all minibatches."""

    def fit(
        params: Params,
        first: Params,
        second: Params,
        obs: Any,
        target: Any,
        rows: Any,
        weight: Any,
        rate: Any,
        floor: Any,
    ) -> tuple[Any, jax.Array]:
        theta, unravel = ravel_pytree(params)

        def minibatch(state: Any, batch: Any) -> tuple[Any, jax.Array]:
            row, w, step, eps = batch

            def loss(theta: jax.Array) -> jax.Array:
                error = value(unravel(theta), obs[row]) - target[row]
                return jnp.vdot(w, error * error) + cfg.penalty * jnp.vdot(theta, theta)

            number, g = jax.value_and_grad(loss)(state[0])
            return adam_move(state, g, step, eps, cfg.max_grad_norm), number

        start = (theta, ravel_pytree(first)[0], ravel_pytree(second)[0])
        state, losses = jax.lax.scan(minibatch, start, (rows, weight, rate, floor))
        return tuple(unravel(part) for part in state), jnp.mean(losses)

    return jax.jit(fit)
