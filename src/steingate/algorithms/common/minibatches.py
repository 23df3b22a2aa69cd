"""Minibatches and Adam's step sizes, for every fit that makes passes over one epoch's samples."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from steingate.algorithms.common.base import Params

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


class Adam(NamedTuple):
    """Adam's state: steps taken, and running first and second moments shaped like the parameters."""

    steps: int
    first: Params
    second: Params


def init_adam(params: Params) -> Adam:
    """Return the optimizer state before the first step."""
    zeros = jax.tree.map(np.zeros_like, params)
    return Adam(0, zeros, zeros)


def minibatch_order(rng: np.random.Generator, samples: int, passes: int = 10) -> npt.NDArray[np.int32]:
    """Return one fresh permutation of the samples per pass, (passes, samples); both critics share it."""
    return rng.permuted(np.tile(np.arange(samples, dtype=np.int32), (passes, 1)), axis=1)


def minibatches(
    order: npt.NDArray[np.int32], batch_size: int, weight: npt.NDArray[np.float32] | None = None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return the rows of each minibatch and their weights, both (passes, minibatches, size).

    The last, incomplete minibatch of a pass is filled up with rows of weight 0. Weights sum to 1 in each
    minibatch; ``weight`` (N,) says how often each sample counts.
    """
    passes, samples = order.shape
    size = min(batch_size, samples)
    per_pass = -(-samples // size)
    rows = np.zeros((passes, per_pass * size), np.int32)
    share = np.zeros((passes, per_pass * size), np.float32)
    rows[:, :samples] = order
    share[:, :samples] = 1.0 if weight is None else weight[order]
    rows, share = rows.reshape(passes, per_pass, size), share.reshape(passes, per_pass, size)
    share /= share.sum(axis=2, keepdims=True)
    return rows, share


def adam_sizes(
    steps_before: int, steps: int, learning_rate: float
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return rate and epsilon of each of the next ``steps`` Adam steps, with the bias corrections in them.

    They are worked out here, in float64, because 1 - 0.999^t loses digits in float32.
    """
    step = steps_before + np.arange(1, steps + 1)
    root = np.sqrt(1.0 - BETA_2**step)
    rate = (learning_rate * root / (1.0 - BETA_1**step)).astype(np.float32)
    return rate, (EPSILON * root).astype(np.float32)


def adam_move(state: tuple[Any, Any, Any], gradient: Any, rate: Any, floor: Any, max_norm: float) -> Any:
    """Return parameters and moments, flat, after one Adam step along the gradient, clipped to ``max_norm``.

    ``rate`` and ``floor`` are this step's numbers of :func:`adam_sizes`.
    """
    theta, m, v = state
    g = gradient * jnp.minimum(1.0, max_norm / (jnp.linalg.norm(gradient) + 1e-6))
    m = BETA_1 * m + (1.0 - BETA_1) * g
    v = BETA_2 * v + (1.0 - BETA_2) * g * g
    return theta - rate * m / (jnp.sqrt(v) + floor), m, v
