"""Statistics of episodes, epochs and seeds, as functions of arrays.

A point is feasible if its cost is at most the limit. The text of the paper counts feasible *episodes*; its
table counts feasible *epochs*, judged by the mean cost of the last 100 episodes. The functions below are used
for both.

Statistics over seeds follow Agarwal et al., "Deep reinforcement learning at the edge of the statistical
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


def tail_start(epochs: int, fraction: float = 0.2) -> int:
    """Return the first epoch of the last ``fraction`` of ``epochs``, which has at least one epoch."""
    # Adding 1e-9 keeps 0.2 * 15 from being rounded down to 2.
    return max(epochs - max(int(fraction * epochs + 1e-9), 1), 0)


def window_means(values: npt.ArrayLike, epoch: npt.ArrayLike, epochs: int, window: int = 100) -> Array:
    """Return, for each epoch, the mean over the last ``window`` episodes that finished by its end.

    Parameters
    ----------
    values, epoch : (n_episodes,)
        A number of each episode, in order of completion, and the epoch in which the episode finished.
    epochs
        Number of epochs. Epochs before the first finished episode give NaN.
    window
        Maximum number of episodes in a mean.
    """
    sums = np.concatenate([[0.0], np.cumsum(np.asarray(values, np.float64))])
    last = np.searchsorted(np.asarray(epoch), np.arange(epochs), side="right")
    first = np.maximum(last - window, 0)
    with np.errstate(invalid="ignore"):
        return np.asarray((sums[last] - sums[first]) / (last - first))


def window_tails(
    values: npt.ArrayLike, epoch: npt.ArrayLike, epochs: int, window: int = 100, level: float = 0.9
) -> Array:
    """Return, for each epoch, the CVaR of the last ``window`` episodes that finished by its end, or NaN."""
    values = np.asarray(values, np.float64)
    last = np.searchsorted(np.asarray(epoch), np.arange(epochs), side="right")
    return np.array([cvar(values[max(end - window, 0) : end], level) for end in last])


def tail_feasibility(cost: npt.ArrayLike, limit: float) -> float:
    """Return the fraction of costs that are at most ``limit``; NaN for no cost."""
    cost = _finite(cost)
    return float(np.mean(cost <= limit)) if len(cost) else np.nan


def feasible_return(ret: npt.ArrayLike, cost: npt.ArrayLike, limit: float) -> float:
    """Return the mean return over the points with a cost of at most ``limit``; NaN if there is none."""
    ret, cost = np.asarray(ret, np.float64), np.asarray(cost, np.float64)
    feasible = ret[(cost <= limit) & np.isfinite(ret)]
    return float(feasible.mean()) if len(feasible) else np.nan


def violation_rate(cost: npt.ArrayLike, limit: float) -> float:
    """Return the fraction of costs above ``limit``; NaN for no cost."""
    cost = _finite(cost)
    return float(np.mean(cost > limit)) if len(cost) else np.nan


def cvar(cost: npt.ArrayLike, level: float) -> float:
    """Return the conditional value at risk: the mean of the largest ``1 - level`` fraction of the costs.

    CVaR = min over u of u + E[(C - u)+] / (1 - level). NaN for no cost.
    """
    cost, tail = _finite(cost), 1.0 - level
    if not len(cost):
        return np.nan
    quantile = float(np.quantile(cost, 1.0 - tail, method="inverted_cdf"))
    return quantile + float(np.mean(np.maximum(cost - quantile, 0.0))) / tail


def max_cost(cost: npt.ArrayLike) -> float:
    """Return the largest cost; NaN for no cost."""
    cost = _finite(cost)
    return float(cost.max()) if len(cost) else np.nan


@dataclass(frozen=True)
class Violations:
    """Episodes with a cost above the limit: their number, rate, and mean and total excess over the limit."""

    count: int
    rate: float
    mean_excess: float
    total_excess: float


def violations(cost: npt.ArrayLike, limit: float) -> Violations:
    """Return the number of episodes above ``limit`` and by how much they exceed it."""
    cost = _finite(cost)
    excess = cost[cost > limit] - limit
    if not len(excess):
        return Violations(0, 0.0 if len(cost) else np.nan, 0.0, 0.0)
    return Violations(len(excess), len(excess) / len(cost), float(excess.mean()), float(excess.sum()))


def mode_lengths(modes: npt.ArrayLike, mode: int) -> npt.NDArray[np.int64]:
    """Return the lengths of the uninterrupted sequences of ``mode``, in epochs.

    >>> mode_lengths([0, 2, 2, 0, 2], 2).tolist()
    [2, 1]
    """
    inside = np.concatenate([[False], np.asarray(modes) == mode, [False]]).astype(np.int8)
    change = np.diff(inside)
    return np.asarray(np.flatnonzero(change == -1) - np.flatnonzero(change == 1), np.int64)


def switches(modes: npt.ArrayLike) -> int:
    """Return the number of epochs whose mode differs from the mode of the epoch before."""
    return int(np.count_nonzero(np.diff(np.asarray(modes, np.int64))))


def _finite(values: npt.ArrayLike) -> Array:
    values = np.asarray(values, np.float64)
    return values[np.isfinite(values)]


@dataclass(frozen=True)
class Estimate:
    """A number and its confidence interval, which is NaN if there is only one score per task."""

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
    """Return the mean over the last axis without the lowest and the highest quarter (sizes rounded down)."""
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
    """Return a statistic of the scores of all tasks with a percentile bootstrap interval.

    Parameters
    ----------
    tasks
        One array of scores per task, one score per seed; tasks may have different numbers of seeds.
    statistic
        Function over the last axis, applied to the concatenated scores of all tasks.
    draws, confidence, seed
        Number of resamples, coverage of the interval, and seed of the resampling.
    """
    strata = [np.asarray(scores, np.float64) for scores in tasks]
    if not strata or min(map(len, strata)) == 0:
        raise InputError("A bootstrap needs at least one score for each task.")
    value = float(statistic(np.concatenate(strata)))
    if max(map(len, strata)) == 1:
        return Estimate(value, np.nan, np.nan)
    drawn = resample(strata, draws, np.random.default_rng(seed))
    return percentile_interval(value, statistic(np.concatenate(drawn, axis=1)), confidence)


def resample(strata: Sequence[Array], draws: int, rng: np.random.Generator) -> list[Array]:
    """Return, for each task, an array (draws, seeds) of its scores drawn with replacement."""
    return [scores[rng.integers(len(scores), size=(draws, len(scores)))] for scores in strata]


def improvement(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Return the probability that a seed of ``x`` scores above one of ``y``; ties count one half."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if not len(x) or not len(y):
        raise InputError("A probability of improvement needs at least one score on both sides.")
    # Mann-Whitney U statistic: the number of pairs in which x is larger.
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
    return percentile_interval(value, total / len(pairs), confidence)


def percentile_interval(value: float, drawn: Array, confidence: float = 0.95) -> Estimate:
    """Return ``value`` with the percentile interval of its resamples."""
    low, high = np.quantile(drawn, [0.5 - confidence / 2, 0.5 + confidence / 2])
    return Estimate(value, float(low), float(high))
