"""Generalized advantage estimation (GAE, Schulman et al., 2016) for reward and cost, and standardization."""

import numpy as np
import numpy.typing as npt

from steingate.errors import InputError

Array = npt.NDArray[np.float64]


def close_paths(
    terminated: npt.NDArray[np.bool_], truncated: npt.NDArray[np.bool_], final_values: npt.ArrayLike,
    next_values: npt.ArrayLike,
) -> tuple[npt.NDArray[np.bool_], Array]:  # fmt: skip
    """Return where paths end and the value that follows each end, both (T, E).

    Parameters
    ----------
    terminated, truncated : (T, E) flags of each step; a step that has both counts as terminated
    final_values : (T, E) value of the true final observation where ``truncated``; ignored elsewhere
    next_values : (E,) value of the observation after the last step; used where that step ends no episode
    """
    ends = terminated | truncated
    bootstrap = np.where(truncated & ~terminated, np.asarray(final_values, np.float64), 0.0)
    bootstrap[-1] = np.where(ends[-1], bootstrap[-1], next_values)
    ends[-1] = True
    return ends, bootstrap


def gae(
    rewards: npt.ArrayLike, values: npt.ArrayLike, ends: npt.NDArray[np.bool_], bootstrap: npt.ArrayLike,
    gamma: npt.ArrayLike = 0.99, gae_lambda: npt.ArrayLike = 0.95,
) -> tuple[Array, Array]:  # fmt: skip
    """Return advantages and value targets, both (T, ...) in float64.

    delta_t = r_t + gamma V_{t+1} - V_t and A_t = delta_t + gamma gae_lambda A_{t+1} within a path;
    the target is A_t + V_t. All arrays share the shape (T, ...), time first; ``gamma`` and ``gae_lambda`` may
    be arrays that broadcast against the rest of it, so reward and cost can share one call as (T, 2, E).

    Parameters
    ----------
    rewards, values : reward (or cost) of each step and value of the observation it was taken from
    ends : true on the last step of each path; the last row must be True throughout
    bootstrap : value that follows a path's last step (see :func:`close_paths`); ignored elsewhere
    """
    if not np.all(ends[-1]):
        raise InputError("gae got a path without an end; set the last row of ends to True.")
    reward = np.asarray(rewards, np.float64)
    value = np.asarray(values, np.float64)
    after = np.empty_like(value)
    after[:-1] = value[1:]
    following = np.where(ends, np.asarray(bootstrap, np.float64), after)
    advantage = reward + np.asarray(gamma) * following - value
    weight = np.where(ends, 0.0, np.multiply(gamma, gae_lambda))
    for t in range(len(advantage) - 2, -1, -1):
        advantage[t] += weight[t] * advantage[t + 1]
    return advantage, advantage + value


def standardize(advantage: npt.ArrayLike, clip: float | None = None) -> tuple[Array, float]:
    """Return (A - mean) / (std + 1e-8) and the population standard deviation ``std``, over all samples.

    With ``clip``, |A - mean| is first clipped at this multiple of its 90th percentile, so that a few samples do
    not set the scale of all others; ``std`` is that of the clipped advantages.
    """
    a = np.asarray(advantage, np.float64)
    if clip is not None:
        centered = a - a.mean()
        bound = clip * np.quantile(np.abs(centered), 0.9)
        a = np.clip(centered, -bound, bound)
    std = float(a.std())
    standard: Array = (a - a.mean()) / (std + 1e-8)
    return standard, std
