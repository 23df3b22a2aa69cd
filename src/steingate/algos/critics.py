"""Fitting a value network: minibatch Adam over a whole epoch as one compiled scan."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.flatten_util import ravel_pytree

from steingate.algos.base import Params
from steingate.algos.networks import value
from steingate.errors import InputError
from steingate.gates.base import Log

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class CriticFit:
    """How a critic is fitted in one epoch."""

    passes: int = 10
    batch_size: int = 128
    learning_rate: float = 1e-3
    penalty: float = 0.001  # times the sum of squares of all parameters, biases too
    max_grad_norm: float = 40.0

    def __post_init__(self) -> None:
        for name in ("passes", "batch_size", "learning_rate", "max_grad_norm"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be positive, got {getattr(self, name)}.")
        if not self.penalty >= 0:
            raise InputError(f"penalty must not be negative, got {self.penalty}.")


DEFAULT_FIT = CriticFit()


class Adam(NamedTuple):
    """Adam's state: steps taken, and running first and second moments shaped like the parameters."""

    steps: int
    first: Params
    second: Params


def init_adam(params: Params) -> Adam:
    """Return the optimiser state before the first step."""
    zeros = jax.tree.map(np.zeros_like, params)
    return Adam(0, zeros, zeros)


def minibatch_order(rng: np.random.Generator, samples: int, passes: int = 10) -> npt.NDArray[np.int32]:
    """Return one fresh permutation of the samples per pass, (passes, samples); both critics share it."""
    return rng.permuted(np.tile(np.arange(samples, dtype=np.int32), (passes, 1)), axis=1)


def fit_critic(
    params: Params,
    adam: Adam,
    obs: npt.NDArray[np.float32],
    target: npt.NDArray[np.float32],
    order: npt.NDArray[np.int32],
    cfg: CriticFit = DEFAULT_FIT,
) -> tuple[Params, Adam, Log]:
    """Return the fitted critic, its optimiser state and the mean minibatch loss as ``{"loss": ...}``.

    Each minibatch's loss is the mean squared error plus ``penalty`` times the sum of squares of all
    parameters; its gradient is clipped to norm ``max_grad_norm``. The last, incomplete minibatch of each pass
    is kept.

    Parameters
    ----------
    obs, target
        (N, d) observations and (N,) value targets, computed once per epoch.
    order
        (passes, N) from :func:`minibatch_order`.
    """
    passes, samples = order.shape
    size = min(cfg.batch_size, samples)
    per_pass = -(-samples // size)
    rows = np.zeros((passes, per_pass * size), np.int32)
    weight = np.zeros((passes, per_pass * size), np.float32)
    rows[:, :samples], weight[:, :samples] = order, 1.0
    rows, weight = rows.reshape(-1, size), weight.reshape(-1, size)
    weight /= weight.sum(axis=1, keepdims=True)
    # Bias corrections are worked out here because 1 - 0.999^t loses digits in float32.
    step = adam.steps + np.arange(1, len(rows) + 1)
    root = np.sqrt(1.0 - BETA_2**step)
    rate = (cfg.learning_rate * root / (1.0 - BETA_1**step)).astype(np.float32)
    floor = (EPSILON * root).astype(np.float32)
    state = (params, adam.first, adam.second)
    state, loss = _compiled(cfg)(*state, obs, target, rows, weight, rate, floor)
    fitted, first, second = jax.tree.map(np.asarray, state)
    return fitted, Adam(int(step[-1]), first, second), {"loss": float(loss)}


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
            theta, m, v = state
            row, w, step, eps = batch

            def loss(theta: jax.Array) -> jax.Array:
                error = value(unravel(theta), obs[row]) - target[row]
                return jnp.vdot(w, error * error) + cfg.penalty * jnp.vdot(theta, theta)

            number, g = jax.value_and_grad(loss)(theta)
            g = g * jnp.minimum(1.0, cfg.max_grad_norm / (jnp.linalg.norm(g) + 1e-6))
            m = BETA_1 * m + (1.0 - BETA_1) * g
            v = BETA_2 * v + (1.0 - BETA_2) * g * g
            return (theta - step * m / (jnp.sqrt(v) + eps), m, v), number

        start = (theta, ravel_pytree(first)[0], ravel_pytree(second)[0])
        state, losses = jax.lax.scan(minibatch, start, (rows, weight, rate, floor))
        return tuple(unravel(part) for part in state), jnp.mean(losses)

    return jax.jit(fit)
