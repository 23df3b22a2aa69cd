"""Running observation statistics (Welford/Chan): push a batch, then normalize with the updated statistics."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

STD_FLOOR = 0.01
CLIP = 5.0


class Stats(NamedTuple):
    """Count, mean and sum of squared deviations of every observation seen, per feature, in float64."""

    count: int  # type: ignore[assignment]
    mean: npt.NDArray[np.float64]
    m2: npt.NDArray[np.float64]


def init_stats(dim: int) -> Stats:
    """Return the statistics of nothing."""
    return Stats(0, np.zeros(dim), np.zeros(dim))


def push(stats: Stats, rows: npt.ArrayLike) -> Stats:
    """Return the statistics with the rows of ``rows``, shape (n, dim), added as one batch."""
    data = np.asarray(rows, np.float64)
    n = data.shape[0]
    if n == 0:
        return stats
    total = stats.count + n
    batch_mean = data.mean(axis=0)
    delta = batch_mean - stats.mean
    mean = stats.mean + delta * (n / total)
    m2 = stats.m2 + ((data - batch_mean) ** 2).sum(axis=0) + delta * delta * (stats.count * n / total)
    return Stats(total, mean, m2)


def std(stats: Stats) -> npt.NDArray[np.float64]:
    """Return the sample standard deviation of each feature, at least ``STD_FLOOR``; ones if there is none."""
    if stats.count <= 1:
        return np.ones_like(stats.mean)
    return np.maximum(np.sqrt(stats.m2 / (stats.count - 1)), STD_FLOOR)


def normalize(stats: Stats, rows: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the rows centered, scaled and clipped to ±``CLIP``; raw while at most one row has been seen."""
    data = np.asarray(rows, np.float64)
    if stats.count <= 1:
        return data
    return np.clip((data - stats.mean) / std(stats), -CLIP, CLIP)
