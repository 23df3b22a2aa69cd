"""Minibatch Adam, for policies and critics: permutations, step sizes, one step."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from steingate.algorithms.base import Params

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


class Adam(NamedTuple):
    """Optimizer state: steps taken, and first and second moments shaped like the parameters."""

    steps: int
    first: Params
    second: Params


def init_adam(params: Params) -> Adam:
    """Return the optimizer state before the first step."""
    zeros = jax.tree.map(np.zeros_like, params)
    return Adam(0, zeros, zeros)


def permutations(rng: np.random.Generator, samples: int, epochs: int) -> npt.NDArray[np.int32]:
    """Return one permutation of the samples per epoch, (epochs, samples)."""
    return rng.permuted(np.tile(np.arange(samples, dtype=np.int32), (epochs, 1)), axis=1)


def minibatches(
    order: npt.NDArray[np.int32], batch_size: int, weight: npt.NDArray[np.float32] | None = None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return rows and weights of each minibatch, both (epochs, minibatches, size).

    The last, incomplete minibatch of an epoch is padded with rows of weight 0. Weights sum to 1 in each
    minibatch; ``weight`` (N,) says how often each sample counts.
    """
    epochs, samples = order.shape
    size = min(batch_size, samples)
    per_epoch = -(-samples // size)
    rows = np.zeros((epochs, per_epoch * size), np.int32)
    share = np.zeros((epochs, per_epoch * size), np.float32)
    rows[:, :samples] = order
    share[:, :samples] = 1.0 if weight is None else weight[order]
    rows, share = rows.reshape(epochs, per_epoch, size), share.reshape(epochs, per_epoch, size)
    share /= share.sum(axis=2, keepdims=True)
    return rows, share


def adam_step_sizes(
    steps_before: int, steps: int, lr: float
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return learning rate and epsilon of the next steps with Adam's bias correction, both (steps,).

    With v uncorrected, a step is rate * m / (sqrt(v) + epsilon).
    """
    step = steps_before + np.arange(1, steps + 1)
    root = np.sqrt(1.0 - BETA_2**step)
    rate = (lr * root / (1.0 - BETA_1**step)).astype(np.float32)
    return rate, (EPSILON * root).astype(np.float32)


def adam_step(state: tuple[Any, Any, Any], gradient: Any, rate: Any, epsilon: Any, max_norm: float) -> Any:
    """Return flat parameters and moments after one Adam step with the gradient clipped to ``max_norm``."""
    theta, m, v = state
    g = gradient * jnp.minimum(1.0, max_norm / (jnp.linalg.norm(gradient) + 1e-6))
    m = BETA_1 * m + (1.0 - BETA_1) * g
    v = BETA_2 * v + (1.0 - BETA_2) * g * g
    return theta - rate * m / (jnp.sqrt(v) + epsilon), m, v
