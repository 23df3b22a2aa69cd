"""Advantages: generalized advantage estimation (GAE, Schulman et al., 2016), standardization, saturated policies.

Actions are clipped to [-1, 1]. If a mean lies some standard deviations outside, every sample is clipped to the same
action, no advantage distinguishes samples, and errors cannot be corrected. A shrinking standard deviation causes
this by itself. A nearly certain discrete action has the same effect: the other actions are never sampled again.
Two penalties, subtracted from the advantages, prevent this.
"""

from math import log
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.algorithms.base import Array

MARGIN = 1.0  # standard deviations outside the range at which the penalty begins; 5 of 6 samples are clipped there
MAX_LOG_ODDS = log(49.0)  # of the most likely action, where the penalty begins: probability 98 %


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


def saturation_penalty(act: npt.NDArray[np.float32], noise: npt.NDArray[np.float32], log_std: Any) -> Array:
    """Return the term to subtract from advantages (...,) so that means far out of range return.

    For each action dimension it is the noise of the sample times the excess of the mean, in standard deviations
    beyond ``MARGIN``. Its mean over samples is 0; its policy gradient is that of half the squared excess for the
    mean, and 0 for the standard deviation.

    Parameters
    ----------
    act : (..., a) actions as sampled, mean + std * noise
    noise : (..., a) standard normal noise
    log_std : (a,) log standard deviations
    """
    std = np.exp(np.asarray(log_std, np.float64))
    mean = act - std * noise
    excess = np.maximum((np.abs(mean) - 1.0) / std - MARGIN, 0.0)
    penalty: Array = np.sum(np.sign(mean) * excess * noise, axis=-1)
    return penalty


def overconfidence_penalty(act: npt.NDArray[np.float32], logits: npt.NDArray[np.float32]) -> Array:
    """Return the term to subtract from advantages (n,) so that nearly certain discrete actions become less so.

    It is the excess of the log-odds of the most likely action over ``MAX_LOG_ODDS`` times the standardized
    indicator that it was taken: mean 0, variance the squared excess. Its natural policy gradient lowers these
    log-odds and keeps the log-odds among the other actions.

    Parameters
    ----------
    act : (n, 1) indices of the actions taken
    logits : (n, n_actions) of the policy that took them
    """
    shifted = np.asarray(logits, np.float64)
    likeliest = shifted.argmax(axis=1)
    odds = np.exp(shifted - shifted.max(axis=1, keepdims=True))
    np.put_along_axis(odds, likeliest[:, None], 0.0, axis=1)
    others = np.maximum(odds.sum(axis=1), np.finfo(np.float64).tiny)
    excess = np.maximum(-np.log(others) - MAX_LOG_ODDS, 0.0)
    taken = act[:, 0] == likeliest
    return np.where(taken, np.sqrt(others), -1.0 / np.sqrt(others)) * excess
