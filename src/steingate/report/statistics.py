"""Statistics of episodes, epochs and seeds, as functions of arrays.

A point is feasible if its cost is at most the limit. The text of the paper counts feasible *episodes*; its
table counts feasible *epochs*, judged by the mean cost of the last 100 episodes. The functions below are used
for both.

Statistics over seeds follow Agarwal et al., "Deep reinforcement learning at the edge of the statistical
precipice" (2021): runs are resampled within each task, never across tasks, and ties count one half.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Scores = Sequence[Array]  # for each task: (..., seeds)
Statistic = Callable[[Scores], Array]  # scores of (..., seeds) to (...)

DRAWS = 2000


class Estimate(NamedTuple):
    """A number and its confidence interval, which is NaN if there is only one score per task."""

    value: float
    low: float
    high: float


# Episodes and epochs of one run


def tail_start(epochs: int) -> int:
    """Return the first epoch of the last fifth of ``epochs``, which has at least one epoch."""
    # Adding 1e-9 keeps 0.2 * 15 from being rounded down to 2.
    return max(epochs - max(int(0.2 * epochs + 1e-9), 1), 0)


def window_means(values: npt.ArrayLike, epoch: npt.ArrayLike, epochs: int, window: int = 100) -> Array:
    """Return, for each epoch, the mean over the last ``window`` episodes that finished by its end, or NaN.

    ``values`` and ``epoch``, shape (n_episodes,), are a number of each episode, in order of completion, and the epoch
    in which it finished; ``epochs`` is the number of epochs.
    """
    sums = np.concatenate([[0.0], np.cumsum(np.asarray(values, np.float64))])
    last = np.searchsorted(np.asarray(epoch), np.arange(epochs), side="right")
    first = np.maximum(last - window, 0)
    with np.errstate(invalid="ignore"):
        return np.asarray((sums[last] - sums[first]) / (last - first))


def window_cvar(values: npt.ArrayLike, epoch: npt.ArrayLike, epochs: int, window: int = 100) -> Array:
    """Return, for each epoch, CVaR 0.9 of the last ``window`` episodes that finished by its end, or NaN."""
    values = np.asarray(values, np.float64)
    last = np.searchsorted(np.asarray(epoch), np.arange(epochs), side="right")
    return np.array([cvar(values[max(end - window, 0) : end], 0.9) for end in last])


def tail_feasibility(cost: npt.ArrayLike, limit: float) -> float:
    """Return the fraction of costs that are at most ``limit``; NaN for no cost."""
    return _mean(_finite(cost) <= limit)


def feasible_return(ret: npt.ArrayLike, cost: npt.ArrayLike, limit: float) -> float:
    """Return the mean return over the points with a cost of at most ``limit``; NaN if there is none."""
    return _mean(_finite(np.asarray(ret, np.float64)[np.asarray(cost, np.float64) <= limit]))


def violation_rate(cost: npt.ArrayLike, limit: float) -> float:
    """Return the fraction of costs above ``limit``; NaN for no cost."""
    return _mean(_finite(cost) > limit)


def cvar(cost: npt.ArrayLike, level: float) -> float:
    """Return the conditional value at risk: the mean of the largest ``1 - level`` fraction of the costs.

    CVaR = min over u of u + E[(C - u)+] / (1 - level). NaN for no cost.
    """
    cost, tail = _finite(cost), 1.0 - level
    if not len(cost):
        return np.nan
    quantile = float(np.quantile(cost, 1.0 - tail, method="inverted_cdf"))
    return quantile + float(np.mean(np.maximum(cost - quantile, 0.0))) / tail


# Scores of seeds. All statistics work along the last axis, so that one call evaluates all resamples.


def median(scores: Scores) -> Array:
    """Return the median over all runs."""
    return np.asarray(np.median(np.concatenate(scores, axis=-1), axis=-1))


def interquartile_mean(scores: Scores) -> Array:
    """Return the mean over all runs without the lowest and the highest quarter (sizes rounded down)."""
    ordered = np.sort(np.concatenate(scores, axis=-1), axis=-1)
    cut = ordered.shape[-1] // 4
    return np.asarray(ordered[..., cut : ordered.shape[-1] - cut].mean(axis=-1))


def task_median(scores: Scores) -> Array:
    """Return the median over tasks of the mean over seeds."""
    return np.asarray(np.median(np.stack([task.mean(axis=-1) for task in scores], axis=-1), axis=-1))


def optimality_gap(scores: Scores) -> Array:
    """Return the mean of max(1 - score, 0) over all runs."""
    return np.asarray(np.maximum(1.0 - np.concatenate(scores, axis=-1), 0.0).mean(axis=-1))


def performance_profile(scores: Scores, thresholds: Array) -> Array:
    """Return the fraction of runs that score above each threshold, (..., thresholds)."""
    ordered = np.sort(np.concatenate(scores, axis=-1), axis=-1)
    rows = ordered.reshape(-1, ordered.shape[-1])
    below = np.stack([np.searchsorted(row, thresholds, side="right") for row in rows])
    return np.asarray(1.0 - below.reshape(*ordered.shape[:-1], -1) / ordered.shape[-1])


def resample(scores: Scores, draws: int = DRAWS) -> list[Array]:
    """Return, for each task, an array (draws, seeds) of its scores drawn with replacement."""
    rng = np.random.default_rng(0)
    return [task[rng.integers(len(task), size=(draws, len(task)))] for task in scores]


def bootstrap(
    scores: Sequence[npt.ArrayLike], statistic: Statistic = interquartile_mean, draws: int = DRAWS
) -> Estimate:
    """Return a statistic with its 95 % percentile bootstrap interval, resampled within tasks.

    ``scores`` has one array per task with one score per seed; tasks may have different numbers of seeds.
    """
    tasks = [np.asarray(task, np.float64) for task in scores]
    value = float(statistic(tasks))
    if max(map(len, tasks)) == 1:
        return Estimate(value, np.nan, np.nan)
    return _estimate(value, statistic(resample(tasks, draws)))


def probability_of_improvement(x: Sequence[npt.ArrayLike], y: Sequence[npt.ArrayLike], draws: int = DRAWS) -> Estimate:
    """Return the probability that a seed of ``x`` scores above one of ``y``, averaged over tasks.

    ``x`` and ``y`` have one array of scores per task, in the same order of tasks. Ties count one half; seeds
    are resampled within tasks.
    """
    pairs = [(np.asarray(a, np.float64), np.asarray(b, np.float64)) for a, b in zip(x, y, strict=True)]
    wins = [(a[:, None] > b[None, :]) + 0.5 * (a[:, None] == b[None, :]) for a, b in pairs]
    value = float(np.mean([won.mean() for won in wins]))
    if max(max(won.shape) for won in wins) == 1:
        return Estimate(value, np.nan, np.nan)
    rng = np.random.default_rng(0)
    total = np.zeros(draws)
    for won in wins:
        rows = rng.integers(won.shape[0], size=(draws, won.shape[0], 1))
        columns = rng.integers(won.shape[1], size=(draws, 1, won.shape[1]))
        total += won[rows, columns].mean(axis=(1, 2))
    return _estimate(value, total / len(pairs))


def _estimate(value: float, drawn: Array) -> Estimate:
    low, high = np.quantile(drawn, [0.5 - 0.95 / 2, 0.5 + 0.95 / 2])
    return Estimate(value, float(low), float(high))


def _finite(values: npt.ArrayLike) -> Array:
    values = np.asarray(values, np.float64)
    return values[np.isfinite(values)]


def _mean(values: npt.NDArray[Any]) -> float:
    return float(np.mean(values)) if len(values) else np.nan
