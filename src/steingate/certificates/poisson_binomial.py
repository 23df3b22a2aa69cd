"""The number of successes of independent trials with different probabilities: its distribution function."""

from functools import lru_cache
from itertools import accumulate, pairwise
from math import ceil, log2, sqrt

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_SHORT = 40  # trials up to which plain lists are quickest
_GROUPS = 256
_ROUNDING = 1e-12  # taken off, and 1e-15 more for every trial: more than the transform's rounding


def successes_at_most(probabilities: Array, most: int | None = None) -> Array:
    """Return P(K <= k) for k = 0 .. n, K the successes of n independent trials, or slightly less.

    Up to 40 trials by adding one trial at a time. For more, the characteristic function is inverted on a
    window of nine standard deviations around the mean, outside of which less than 1e-17 lies. Beyond 256
    trials, sorted neighbors share the mean of their group. Moving two probabilities towards each other
    changes P(K <= k) by their product's gain times P(K' = k) - P(K' = k - 1), K' the successes of the others.
    That is at most 0 beyond the mode of K', which is within 1 of its mean, so for k >= E[K] + 2 groups can
    only lower P(K <= k). For smaller k, the most that they can raise it by is taken off: half the sum of
    squares within groups, times pi / (4 Var K') or 1, which both bound the difference (the first by its
    Fourier integral, with |E exp(itK')| <= exp(-2 Var(K') t^2 / pi^2)).

    Parameters
    ----------
    probabilities
        Sorted, in [0, 1].
    most
        Counts above it may be left out.
    """
    first, last = np.searchsorted(probabilities, 0.0, "right"), np.searchsorted(probabilities, 1.0, "left")
    uncertain = probabilities[first:last]
    if uncertain.size <= _SHORT:
        wanted = uncertain.size if most is None else min(max(most, 0), uncertain.size)
        at_most = np.array(_by_adding(uncertain.tolist(), wanted + 1))
    else:
        at_most = _by_transform(uncertain)
    if at_most.size > uncertain.size:
        at_most[-1] = 1.0
    if uncertain.size == probabilities.size:
        return at_most
    never, always = int(first), int(probabilities.size - last)
    above = np.ones(never) if at_most.size > uncertain.size else np.zeros(0)
    return np.concatenate([np.zeros(always), at_most, above])


def _by_adding(probabilities: list[float], counts: int) -> list[float]:
    """Return P(K <= k) for the first ``counts`` values of k."""
    mass = [1.0]
    for p in probabilities:
        q = 1.0 - p
        mass = [
            mass[0] * q,
            *[here * q + before * p for before, here in pairwise(mass)],
            mass[-1] * p,
        ][:counts]
    return list(accumulate(mass))


@lru_cache(maxsize=8)
def _turn(window: int) -> npt.NDArray[np.complex128]:
    """Return exp(-i angle) - 1 for the angles of half a turn."""
    angle = np.linspace(0.0, np.pi, window // 2 + 1)
    return np.asarray(-2.0 * np.sin(0.5 * angle) ** 2 - 1j * np.sin(angle))


def _by_transform(probabilities: Array) -> Array:
    n = probabilities.size
    mean = float(probabilities.sum())
    groups = min(n, _GROUPS)
    size, larger = divmod(n, groups)  # the first `larger` groups have one more
    sizes = np.full(groups, size)
    sizes[:larger] += 1
    level = np.add.reduceat(probabilities, np.cumsum(sizes) - sizes) / sizes
    spread = sqrt(float(sizes @ (level * (1.0 - level))))
    window = 2 ** ceil(log2(2.0 * (9.0 * spread + 40.0)))
    turn = _turn(window)
    smaller = np.multiply.reduce(1.0 + np.multiply.outer(level[larger:], turn))
    transform = smaller**size
    if larger:
        bigger = np.multiply.reduce(1.0 + np.multiply.outer(level[:larger], turn))
        transform = transform * bigger ** (size + 1)
    mass = np.fft.irfft(transform, window)
    first = int(mean) - window // 2
    mass = np.roll(mass, -(first % window))
    sums = np.cumsum(np.maximum(mass, 0.0)) - (_ROUNDING + 1e-15 * n)
    at_most = np.zeros(n + 1)
    low, high = max(first, 0), min(first + window, n + 1)
    at_most[low:high] = np.clip(sums[low - first : high - first], 0.0, 1.0)
    at_most[high:] = at_most[high - 1]
    lost = 0.5 * max(float(probabilities @ probabilities) - float(sizes @ level**2), 0.0)
    if lost > 0.0:
        others = max(float(probabilities @ (1.0 - probabilities)) - 0.5, np.pi / 4.0)
        at_most[: ceil(mean) + 2] -= lost * np.pi / (4.0 * others)
    return np.maximum(at_most, 0.0)
