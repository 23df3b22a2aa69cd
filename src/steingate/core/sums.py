"""Sums over all pairs of points on a line without touching all pairs."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def median_pair_distance(x: Array) -> float:
    """Lower median of |x_i - x_j| over the pairs i < j of the points ``x`` (at least two)."""
    n = x.size
    # The full matrix holds n zeros and each pair twice.
    rank = n + 2 * ((n * (n - 1) // 2 - 1) // 2)
    distance = np.abs(x[:, None] - x).ravel()
    distance.partition(rank)
    return float(distance[rank])
