"""Generalized advantages of one rollout, for reward and cost: path ends, recursion, standardization."""

from math import inf

import numpy as np
import numpy.typing as npt

from steingate.errors import InputError

Array = npt.NDArray[np.float64]


def close_paths(
    terminated: npt.NDArray[np.bool_],
    truncated: npt.NDArray[np.bool_],
    final_values: npt.ArrayLike,
    next_values: npt.ArrayLike,
) -> tuple[npt.NDArray[np.bool_], Array]:
    """Return where paths end and the value that follows each end, both (T, E).

    Parameters
    ----------
    terminated, truncated
        (T, E) flags of each step; a step that has both counts as terminated.
    final_values
        (T, E) value of the true final observation where ``truncated``; not looked at elsewhere.
    next_values
        (E,) value of the observation after the last step; used where that step ends nothing.
    """
    ends = terminated | truncated
    bootstrap = np.where(truncated & ~terminated, np.asarray(final_values, np.float64), 0.0)
    bootstrap[-1] = np.where(ends[-1], bootstrap[-1], next_values)
    ends[-1] = True
    return ends, bootstrap


def gae(
    rewards: npt.ArrayLike,
    values: npt.ArrayLike,
    ends: npt.NDArray[np.bool_],
    bootstrap: npt.ArrayLike,
    discount: npt.ArrayLike = 0.99,
    lam: npt.ArrayLike = 0.95,
) -> tuple[Array, Array]:
    """Return advantages and value targets, both (T, ...) in float64.

    delta_t = r_t + discount V_{t+1} - V_t and A_t = delta_t + discount lam A_{t+1} within a path;
    the target is A_t + V_t. All arrays share the shape (T, ...), time first; ``discount`` and ``lam`` may
    be arrays that broadcast against the rest of it, so reward and cost can share one call as (T, 2, E).

    Parameters
    ----------
    rewards, values
        Reward (or cost) of each step and value of the observation it was taken from.
    ends
        True on the last step of each path; the last row must be True throughout.
    bootstrap
        Value that follows a path's last step (see :func:`close_paths`); not looked at elsewhere.
    """
    if not np.all(ends[-1]):
        raise InputError("gae got a path without an end: set the last row of ends to True.")
    reward = np.asarray(rewards, np.float64)
    value = np.asarray(values, np.float64)
    after = np.empty_like(value)
    after[:-1] = value[1:]
    following = np.where(ends, np.asarray(bootstrap, np.float64), after)
    advantage = reward + np.asarray(discount) * following - value
    weight = np.where(ends, 0.0, np.multiply(discount, lam))
    for t in range(len(advantage) - 2, -1, -1):
        advantage[t] += weight[t] * advantage[t + 1]
    return advantage, advantage + value


def standardize(advantage: npt.ArrayLike, trim: float = inf) -> Array:
    """Return (A - mean) / (std + 1e-8) with the population std over all samples.

    With ``trim``, what lies further out than ``trim`` times the size that one sample in ten exceeds is first
    moved there, so that a few samples do not set the scale of all others.
    """
    a = np.asarray(advantage, np.float64)
    if trim < inf:
        centered = a - a.mean()
        end = trim * np.quantile(np.abs(centered), 0.9)
        a = np.clip(centered, -end, end)
    standard: Array = (a - a.mean()) / (a.std() + 1e-8)
    return standard


def center(advantage: npt.ArrayLike) -> Array:
    """Return A - mean over all samples: cost advantages keep their scale."""
    a = np.asarray(advantage, np.float64)
    centered: Array = a - a.mean()
    return centered
