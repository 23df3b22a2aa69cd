"""What is measured on the episodes, epochs and modes of training, as functions of arrays.

A point is feasible when its cost is at most the limit. The paper's text counts *episodes*; its table counts
*epochs*, each by the mean of the last hundred episodes. Both use the functions below, on different arrays.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from steingate.gates.base import Mode
from steingate.gates.tail import cvar as tail_mean

Array = npt.NDArray[np.float64]


def tail_start(epochs: int, share: float = 0.2) -> int:
    """Return the first epoch of the last ``share`` of ``epochs``: 400 of 500, and never past the last."""
    # The small number keeps 0.2 * 15 from being 2.
    return max(epochs - max(int(share * epochs + 1e-9), 1), 0)


def window_means(values: npt.ArrayLike, epoch: npt.ArrayLike, epochs: int, window: int = 100) -> Array:
    """Return, for each epoch, the mean over the last ``window`` episodes finished by its end.

    Parameters
    ----------
    values, epoch
        One entry per episode, in order of completion: the number, and the epoch in which it finished.
    epochs
        How many epochs there were. One before the first finished episode gives NaN.
    window
        Episodes in a mean; fewer are used until there are as many.
    """
    sums = np.concatenate([[0.0], np.cumsum(np.asarray(values, np.float64))])
    last = np.searchsorted(np.asarray(epoch), np.arange(epochs), side="right")
    first = np.maximum(last - window, 0)
    with np.errstate(invalid="ignore"):
        return np.asarray((sums[last] - sums[first]) / (last - first))


def window_tails(
    values: npt.ArrayLike, epoch: npt.ArrayLike, epochs: int, window: int = 100, level: float = 0.9
) -> Array:
    """Return, for each epoch, the ``cvar`` of the last ``window`` episodes finished by its end; else NaN."""
    values = np.asarray(values, np.float64)
    last = np.searchsorted(np.asarray(epoch), np.arange(epochs), side="right")
    return np.array([cvar(values[max(end - window, 0) : end], level) for end in last])


def tail_feasibility(cost: npt.ArrayLike, limit: float) -> float:
    """Return the share of points with a cost of at most ``limit``; NaN without any point."""
    cost = _known(cost)
    return float(np.mean(cost <= limit)) if len(cost) else np.nan


def feasible_return(ret: npt.ArrayLike, cost: npt.ArrayLike, limit: float) -> float:
    """Return the mean return over the points with a cost of at most ``limit``; NaN when there is none."""
    ret, cost = np.asarray(ret, np.float64), np.asarray(cost, np.float64)
    feasible = ret[(cost <= limit) & np.isfinite(ret)]
    return float(feasible.mean()) if len(feasible) else np.nan


def exceedance(cost: npt.ArrayLike, limit: float) -> float:
    """Return the share of points with a cost above ``limit``; NaN without any point."""
    cost = _known(cost)
    return float(np.mean(cost > limit)) if len(cost) else np.nan


def cvar(cost: npt.ArrayLike, level: float) -> float:
    """Return the mean of the costliest ``1 - level`` share; the point at the edge counts in part."""
    cost = _known(cost)
    return tail_mean(cost, 1.0 - level)[0] if len(cost) else np.nan


def worst(cost: npt.ArrayLike) -> float:
    """Return the largest cost; NaN without any point."""
    cost = _known(cost)
    return float(cost.max()) if len(cost) else np.nan


@dataclass(frozen=True)
class Violations:
    """Episodes above the limit, how many and by how much.

    Attributes
    ----------
    count, share
        How many, and as a share of all episodes.
    mean_excess, max_excess, total_excess
        Cost above the limit: mean and largest over the violating episodes, and the sum.
    """

    count: int
    share: float
    mean_excess: float
    max_excess: float
    total_excess: float


def violations(cost: npt.ArrayLike, limit: float) -> Violations:
    """Return how many episodes exceed ``limit`` and by how much."""
    cost = _known(cost)
    excess = cost[cost > limit] - limit
    if not len(excess):
        return Violations(0, 0.0 if len(cost) else np.nan, 0.0, 0.0, 0.0)
    return Violations(
        count=len(excess),
        share=len(excess) / len(cost),
        mean_excess=float(excess.mean()),
        max_excess=float(excess.max()),
        total_excess=float(excess.sum()),
    )


@dataclass(frozen=True)
class Dwell:
    """The unbroken stretches of one mode, in epochs.

    The first and the last stretch of a run are cut off by its ends; they count with the length that was seen.
    """

    stretches: int
    mean: float
    longest: int
    share: float  # of all epochs


def stretches(modes: npt.ArrayLike) -> list[tuple[int, int, int]]:
    """Return the unbroken stretches in order, each as mode, first epoch and length."""
    modes = np.asarray(modes, np.int64)
    if not len(modes):
        return []
    starts = np.concatenate([[0], np.flatnonzero(np.diff(modes)) + 1])
    lengths = np.diff(np.concatenate([starts, [len(modes)]]))
    return [
        (int(modes[start]), int(start), int(length)) for start, length in zip(starts, lengths, strict=True)
    ]


def switches(modes: npt.ArrayLike) -> int:
    """Return how many epochs have another mode than the epoch before."""
    return int(np.count_nonzero(np.diff(np.asarray(modes, np.int64))))


def dwell_times(modes: npt.ArrayLike) -> dict[Mode, Dwell]:
    """Return the stretches of each mode that occurs."""
    runs = stretches(modes)
    total = sum(length for _, _, length in runs)
    result = {}
    for mode in Mode:
        lengths = [length for value, _, length in runs if value == mode]
        if lengths:
            result[mode] = Dwell(
                len(lengths), sum(lengths) / len(lengths), max(lengths), sum(lengths) / total
            )
    return result


def _known(values: npt.ArrayLike) -> Array:
    values = np.asarray(values, np.float64)
    return values[np.isfinite(values)]
