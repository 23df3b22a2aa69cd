"""How a gate behaved over training: how often it switched, and how long it stayed."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from steingate.gates.base import Mode


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
