"""What methods do over all tasks together: aggregates and performance profiles of normalized scores.

Each run has two scores over its last fifth. *Safety* is the share of its episodes within the limit. *Return*
is the mean return of its episodes divided by the task's scale: the highest mean over seeds that any method of
the report has there. A return of 0 scores 0, and the best method of each task scores 1 on average. A task on
which no method has a positive return has no such scale and is left out.

Aggregates follow Agarwal et al. (2021): the interquartile mean over all runs, the median over tasks of the
mean over seeds, the optimality gap (how far runs stay below a score of 1, on average), and the performance
profile (the share of runs above each score), with intervals that resample seeds within tasks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from steingate.report.groups import Group
from steingate.report.seeds import Estimate, interquartile_mean, percentiles, resampled
from steingate.report.summary import tail_point

Array = npt.NDArray[np.float64]
Strata = Sequence[Array]  # per task: (..., seeds)
Statistic = Callable[[Strata], Array]

TARGET = 1.0  # the score from which on a run leaves no gap
THRESHOLDS = np.linspace(0.0, 1.2, 61)


@dataclass(frozen=True)
class Aggregate:
    """One method over all tasks, in one score.

    Attributes
    ----------
    iqm, median, gap
        Interquartile mean, median over tasks, optimality gap, with 95 % intervals.
    profile, low, high
        The share of runs that score more than each of ``THRESHOLDS``, and its pointwise 95 % band (NaN where
        one seed per task says nothing of the spread).
    """

    iqm: Estimate
    median: Estimate
    gap: Estimate
    profile: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class Standing:
    """A method over all tasks: its first group, and both scores."""

    group: Group
    ret: Aggregate
    safety: Aggregate


@dataclass(frozen=True)
class Overall:
    """The methods that ran on all tasks of a report.

    Attributes
    ----------
    standings
        One for each such method.
    scales
        For each task the return that scores 1.
    missing
        Labels of the methods that lack one of these tasks.
    unscaled
        Tasks that are left out, because no method has a positive return there.
    """

    standings: Sequence[Standing]
    scales: dict[str, float]
    missing: Sequence[str]
    unscaled: Sequence[str]


def overall(groups: Sequence[Group]) -> Overall:
    """Return the standing of each method that ran on all tasks.

    Runs without a finished episode in their last fifth count for nothing.
    """
    methods: dict[str, dict[str, tuple[Group, Array]]] = {}
    for group in groups:
        points = np.array([tail_point(run) for run in group.runs])
        points = points[np.isfinite(points).all(axis=1)]
        if len(points):
            methods.setdefault(group.method, {})[group.env] = (group, points)
    best = {
        env: max(tasks[env][1][:, 0].mean() for tasks in methods.values() if env in tasks)
        for env in dict.fromkeys(env for tasks in methods.values() for env in tasks)
    }
    scales = {env: float(scale) for env, scale in best.items() if scale > 0.0}
    standings, missing = [], []
    for tasks in methods.values():
        first = next(iter(tasks.values()))[0]
        if not scales or not set(scales) <= set(tasks):
            missing.append(first.label)
            continue
        found = [(tasks[env][1], scale) for env, scale in scales.items()]
        ret = aggregate([points[:, 0] / scale for points, scale in found])
        standings.append(Standing(first, ret, aggregate([1.0 - points[:, 1] for points, _ in found])))
    return Overall(standings, scales, missing, [env for env in best if env not in scales])


def aggregate(tasks: Sequence[npt.ArrayLike], draws: int = 2000, seed: int = 0) -> Aggregate:
    """Return the aggregates of some scores, one array per task with one score per seed.

    Examples
    --------
    >>> float(aggregate([[0.5, 1.5], [1.0, 1.0]]).gap.value)
    0.125
    """
    strata = [np.asarray(scores, np.float64) for scores in tasks]
    drawn = None if max(map(len, strata)) == 1 else resampled(strata, draws, np.random.default_rng(seed))

    def estimate(statistic: Statistic) -> Estimate:
        value = float(statistic(strata))
        return Estimate(value, np.nan, np.nan) if drawn is None else percentiles(value, statistic(drawn))

    low = high = np.full(len(THRESHOLDS), np.nan)
    if drawn is not None:
        low, high = np.quantile(performance_profile(drawn, THRESHOLDS), [0.025, 0.975], axis=0)
    profile = performance_profile(strata, THRESHOLDS)
    return Aggregate(estimate(_iqm), estimate(task_median), estimate(optimality_gap), profile, low, high)


def task_median(strata: Strata) -> Array:
    """Return the median over tasks of the mean over seeds."""
    return np.asarray(np.median(np.stack([scores.mean(axis=-1) for scores in strata], axis=-1), axis=-1))


def optimality_gap(strata: Strata) -> Array:
    """Return by how much runs stay below ``TARGET`` on average; scores above it do not make up for others."""
    return np.asarray(np.maximum(TARGET - np.concatenate(strata, axis=-1), 0.0).mean(axis=-1))


def performance_profile(strata: Strata, thresholds: Array) -> Array:
    """Return the share of runs that score more than each threshold: (..., thresholds)."""
    scores = np.sort(np.concatenate(strata, axis=-1), axis=-1)
    flat = scores.reshape(-1, scores.shape[-1])
    below = np.stack([np.searchsorted(row, thresholds, side="right") for row in flat])
    return np.asarray(1.0 - below.reshape(*scores.shape[:-1], -1) / scores.shape[-1])


def _iqm(strata: Strata) -> Array:
    return interquartile_mean(np.concatenate(strata, axis=-1))
