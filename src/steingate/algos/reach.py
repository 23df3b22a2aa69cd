"""Means of actions that are out of reach, drawn back.

Actions are clipped to [-1, 1]. Once a mean is some deviations beyond that range every sample gives the same
action: nothing is explored there any more, no advantage tells one sample from another, and what is wrong
stays wrong. Where exploration fades this happens by itself, because means that were just far enough for a
large deviation are too far for a small one.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

FAR = 2.0  # deviations beyond the range at which 98 % of the samples are clipped


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
