"""Policies that try nothing else any more, drawn back to where they do.

Actions are clipped to [-1, 1]. Once a mean is some deviations beyond that range every sample gives the same
action: nothing is explored there any more, no advantage tells one sample from another, and what is wrong
stays wrong. Where exploration fades this happens by itself, because means that were just far enough for a
large deviation are too far for a small one. Where actions are choices the same happens once one of them is
almost certain: whatever it comes to cost, the others are not sampled.
"""

from math import log
from typing import Any

import numpy as np
import numpy.typing as npt

FAR = 1.0  # deviations beyond the range; five in six samples are clipped there
CERTAIN = log(49.0)  # log-odds at which 98 % of the samples are the likeliest choice


def out_of_reach(
    act: npt.NDArray[np.float32], noise: npt.NDArray[np.float32], log_std: Any
) -> npt.NDArray[np.float64]:
    """Return what to take off the advantages (...,) so that means more than ``FAR`` out are drawn back.

    For each action it is the noise of the sample times how far the mean is beyond that, in deviations. Over
    samples it has mean 0, and its policy gradient is that of half the square of that distance for the mean
    and 0 for the deviation.

    Parameters
    ----------
    act
        (..., a) actions as sampled, mean + std * noise.
    noise
        (..., a) what was drawn for them.
    log_std
        (a,) logarithms of the deviations.
    """
    std = np.exp(np.asarray(log_std, np.float64))
    mean = act - std * noise
    far = np.maximum((np.abs(mean) - 1.0) / std - FAR, 0.0)
    found: npt.NDArray[np.float64] = np.sum(np.sign(mean) * far * noise, axis=-1)
    return found


def too_certain(act: npt.NDArray[np.float32], logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Return what to take off the advantages (n,) so that choices more certain than ``CERTAIN`` are less so.

    It is how far the log-odds of the likeliest choice are beyond that, times whether it was taken, in
    deviations: over samples it has mean 0, and variance the square of that distance. Its natural
    policy gradient lowers these log-odds and leaves those of the other choices among themselves as they are.

    Parameters
    ----------
    act
        (n, 1) choices made.
    logits
        (n, choices) by which they were.
    """
    apart = np.asarray(logits, np.float64)
    likeliest = apart.argmax(axis=1)
    odds = np.exp(apart - apart.max(axis=1, keepdims=True))
    np.put_along_axis(odds, likeliest[:, None], 0.0, axis=1)
    against = np.maximum(odds.sum(axis=1), np.finfo(np.float64).tiny)
    far = np.maximum(-np.log(against) - CERTAIN, 0.0)
    taken = act[:, 0] == likeliest
    return np.where(taken, np.sqrt(against), -1.0 / np.sqrt(against)) * far
