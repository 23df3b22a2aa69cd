"""Penalty on saturated policies: policies whose samples all result in the same action.

Actions are clipped to [-1, 1]. If a mean lies some standard deviations outside, every sample is clipped to the same
action, no advantage distinguishes samples, and errors cannot be corrected. A shrinking standard deviation causes
this by itself. A nearly certain discrete action has the same effect: the other actions are never sampled again.
"""

from math import log
from typing import Any

import numpy as np
import numpy.typing as npt

MARGIN = 1.0  # standard deviations outside the range at which the penalty begins; 5 of 6 samples are clipped there
MAX_LOG_ODDS = log(49.0)  # of the most likely action, where the penalty begins: probability 98 %


def saturation_penalty(
    act: npt.NDArray[np.float32], noise: npt.NDArray[np.float32], log_std: Any
) -> npt.NDArray[np.float64]:
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
    penalty: npt.NDArray[np.float64] = np.sum(np.sign(mean) * excess * noise, axis=-1)
    return penalty


def overconfidence_penalty(act: npt.NDArray[np.float32], logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
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
