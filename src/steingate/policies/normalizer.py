"""Statistics for the normalization of observations; ``training.rollout_kernels`` updates and applies them."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

STD_FLOOR = 0.01
CLIP = 5.0  # of normalized observations


class Stats(NamedTuple):
    """Count, mean and sum of squared deviations of every observation seen, per feature, in float64."""

    count: int  # type: ignore[assignment]
    mean: npt.NDArray[np.float64]
    m2: npt.NDArray[np.float64]


def init_stats(dim: int) -> Stats:
    """Return the statistics of nothing."""
    return Stats(0, np.zeros(dim), np.zeros(dim))
