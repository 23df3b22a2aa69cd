"""What few seeds can say: medians, interquartile means, bootstrap intervals, probability of improvement.

The conventions are those of Agarwal et al., "Deep reinforcement learning at the edge of the statistical
precipice" (2021): runs are resampled within each task, never across tasks, and ties count one half.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from steingate.errors import InputError

Array = npt.NDArray[np.float64]
Statistic = Callable[[Array], Array]  # (draws, scores) -> (draws,)


@dataclass(frozen=True)
class Estimate:
    """A number and its interval; the interval is NaN where one score per task says nothing of its spread."""

    value: float
    low: float
    high: float


def mean(scores: npt.ArrayLike) -> Array:
    """Return the mean over the last axis."""
    return np.asarray(np.mean(np.asarray(scores, np.float64), axis=-1))


def median(scores: npt.ArrayLike) -> Array:
    """Return the median over the last axis."""
    return np.asarray(np.median(np.asarray(scores, np.float64), axis=-1))


def interquartile_mean(scores: npt.ArrayLike) -> Array:
    """Return the mean over the last axis without its lowest and highest quarter, each rounded down."""
    ordered = np.sort(np.asarray(scores, np.float64), axis=-1)
    cut = ordered.shape[-1] // 4
    return np.asarray(ordered[..., cut : ordered.shape[-1] - cut].mean(axis=-1))


def stratified_bootstrap(
    tasks: Sequence[npt.ArrayLike],
    statistic: Statistic = interquartile_mean,
    draws: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """Return a statistic of the scores of all tasks with its percentile bootstrap interval.

    Parameters
    ----------
    tasks
        One array of scores per task, one score per seed; tasks may have different numbers of seeds.
    statistic
        Function over the last axis; it sees the scores of all tasks side by side.
    draws, confidence, seed
        Resamples, probability of the interval, and the seed of the resampling: equal input gives equal
        intervals.
    """
    strata = [np.asarray(scores, np.float64) for scores in tasks]
    if not strata or min(map(len, strata)) == 0:
        raise InputError("A bootstrap needs at least one score for each task.")
    value = float(statistic(np.concatenate(strata)))
    if max(map(len, strata)) == 1:
        return Estimate(value, np.nan, np.nan)
    drawn = resampled(strata, draws, np.random.default_rng(seed))
    return percentiles(value, statistic(np.concatenate(drawn, axis=1)), confidence)


def resampled(strata: Sequence[Array], draws: int, rng: np.random.Generator) -> list[Array]:
    """Return, for each task, (draws, seeds) scores drawn from its own with replacement."""
    return [scores[rng.integers(len(scores), size=(draws, len(scores)))] for scores in strata]


def improvement(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Return the probability that a seed of ``x`` scores above one of ``y``; ties count one half."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if not len(x) or not len(y):
        raise InputError("A probability of improvement needs at least one score on both sides.")
    # The rank sum of x, minus what it would be against itself alone, counts the pairs that x wins.
    wins = rankdata(np.concatenate([x, y]))[: len(x)].sum() - len(x) * (len(x) + 1) / 2
    return float(wins / (len(x) * len(y)))


def probability_of_improvement(
    x: Sequence[npt.ArrayLike],
    y: Sequence[npt.ArrayLike],
    draws: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """Return the mean over tasks of ``improvement`` with its stratified bootstrap interval.

    ``x`` and ``y`` hold one array of scores per task, in the same order of tasks.
    """
    if not x or len(x) != len(y):
        raise InputError(f"Both sides need the same tasks, at least one; there are {len(x)} and {len(y)}.")
    pairs = [(np.asarray(a, np.float64), np.asarray(b, np.float64)) for a, b in zip(x, y, strict=True)]
    value = float(np.mean([improvement(a, b) for a, b in pairs]))
    if max(max(len(a), len(b)) for a, b in pairs) == 1:
        return Estimate(value, np.nan, np.nan)
    rng = np.random.default_rng(seed)
    total = np.zeros(draws)
    for a, b in pairs:
        won = (a[:, None] > b[None, :]) + 0.5 * (a[:, None] == b[None, :])
        rows = rng.integers(len(a), size=(draws, len(a), 1))
        columns = rng.integers(len(b), size=(draws, 1, len(b)))
        total += won[rows, columns].mean(axis=(1, 2))
    return percentiles(value, total / len(pairs), confidence)


def percentiles(value: float, drawn: Array, confidence: float = 0.95) -> Estimate:
    """Return a number with the interval between the percentiles of its resamples."""
    low, high = np.quantile(drawn, [0.5 - confidence / 2, 0.5 + confidence / 2])
    return Estimate(value, float(low), float(high))
