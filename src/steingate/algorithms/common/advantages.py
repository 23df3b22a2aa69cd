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


def gae(
    rewards: Array, values: Array, terminated: npt.NDArray[np.bool_], truncated: npt.NDArray[np.bool_],
    final_values: Array, gamma: npt.ArrayLike = 0.99, gae_lambda: npt.ArrayLike = 0.95,
) -> tuple[Array, Array]:  # fmt: skip
    """Return advantages and value targets, both (T, ...): reward and cost can share a call as (T, 2, E).

    delta_t = r_t + gamma V_{t+1} - V_t and A_t = delta_t + gamma gae_lambda A_{t+1} within an episode; the target is
    A_t + V_t. V_{t+1} is 0 after a termination, and that of the true final observation after a truncation.

    ``rewards`` (T, ...) are rewards or costs, ``values`` (T + 1, ...) those of the observations before and after every
    step, and ``final_values`` (T, ...) count where ``truncated``. Flags and discounts broadcast against them.
    """
    following = np.where(terminated, 0.0, np.where(truncated, final_values, values[1:]))
    advantage = rewards + np.asarray(gamma) * following - values[:-1]
    weight = np.where(terminated | truncated, 0.0, np.multiply(gamma, gae_lambda))
    for t in range(len(advantage) - 2, -1, -1):
        advantage[t] += weight[t] * advantage[t + 1]
    return advantage, advantage + values[:-1]


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
    mean, and 0 for the standard deviation. ``act`` (..., a) is mean + std * noise, with standard normal ``noise``.
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
    log-odds and keeps the log-odds among the other actions. ``act`` (n, 1) are indices, ``logits`` (n, n_actions).
    """
    shifted = np.asarray(logits, np.float64)
    likeliest = shifted.argmax(axis=1)
    odds = np.exp(shifted - shifted.max(axis=1, keepdims=True))
    np.put_along_axis(odds, likeliest[:, None], 0.0, axis=1)
    others = np.maximum(odds.sum(axis=1), np.finfo(np.float64).tiny)
    excess = np.maximum(-np.log(others) - MAX_LOG_ODDS, 0.0)
    taken = act[:, 0] == likeliest
    return np.where(taken, np.sqrt(others), -1.0 / np.sqrt(others)) * excess
