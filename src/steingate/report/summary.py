"""Numbers of a report: each configuration, pairs of methods, and methods over all tasks.

"Tail" means the last fifth of the epochs of a run.

Scores over all tasks: each run has two scores over its tail. *Safety* is the fraction of its episodes within
the limit. *Return* is the mean return of its episodes divided by the scale of the task, which is the highest
mean over seeds of any method of the report. A return of 0 scores 0, and the best method of each task scores 1
on average. Tasks on which no method has a positive return are left out.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from steingate.gates.base import Mode
from steingate.report.groups import Group, group_colors, group_runs
from steingate.report.load import Run, Skipped, load_runs
from steingate.report.paper_results import PaperResult, paper_result
from steingate.report.statistics import (
    Estimate,
    Statistic,
    cvar,
    feasible_return,
    interquartile_mean,
    max_cost,
    mean,
    median,
    mode_lengths,
    percentile_interval,
    probability_of_improvement,
    resample,
    stratified_bootstrap,
    switches,
    tail_feasibility,
    tail_start,
    violation_rate,
    violations,
)

Array = npt.NDArray[np.float64]
Strata = Sequence[Array]  # for each task: (..., seeds)

TAIL = 0.2  # fraction of the epochs of a run
TARGET_SCORE = 1.0  # the optimality gap is measured from this score
THRESHOLDS = np.linspace(0.0, 1.2, 61)  # scores at which performance profiles are computed


@dataclass(frozen=True)
class Summary:
    """Statistics of all seeds of one configuration.

    Attributes
    ----------
    env, label, algo, limit
        The configuration.
    seeds, complete, steps
        Number of seeds, number of complete ones, and the fewest steps among them.
    epoch_feasibility, epoch_return
        Tail feasibility and feasible return over epochs, each judged by the means of its last 100 episodes,
        pooled over seeds (the numbers in the table of the paper).
    episode_feasibility, episode_return
        The same over single episodes (the definition in the text of the paper).
    feasibility
        Epoch feasibility, mean over seeds with bootstrap interval.
    ret, cost
        Mean return and cost of the tail, interquartile means over seeds with bootstrap intervals.
    seed_return, seed_violation_rate
        Mean return and violation rate of tail episodes, medians over seeds with bootstrap intervals.
    violation_rate, cvar90, cvar95, max_cost
        Costs of tail episodes, pooled over seeds.
    training_violations, training_violation_rate, mean_excess, total_excess, training_max_cost
        All episodes of training: number of violations per seed, their rate, their mean excess over the limit,
        total excess per seed, and the largest cost.
    mode_switches, recovery_fraction, recovery_length
        Gate, means over seeds: changes of mode, fraction of epochs in recovery, mean length of a recovery in
        epochs (NaN if there was none).
    paper
        Result in the paper for the same settings, if there is one.
    """

    env: str
    label: str
    algo: str
    limit: float
    seeds: int
    complete: int
    steps: int
    epoch_feasibility: float
    epoch_return: float
    episode_feasibility: float
    episode_return: float
    feasibility: Estimate
    ret: Estimate
    cost: Estimate
    seed_return: Estimate
    seed_violation_rate: Estimate
    violation_rate: float
    cvar90: float
    cvar95: float
    max_cost: float
    training_violations: float
    training_violation_rate: float
    mean_excess: float
    total_excess: float
    training_max_cost: float
    mode_switches: float
    recovery_fraction: float
    recovery_length: float
    paper: PaperResult | None


@dataclass(frozen=True)
class Comparison:
    """Probability that a seed of one method scores higher than a seed of another, over their common tasks."""

    better: Group  # on the first common task
    than: Group
    tasks: int
    safety: Estimate
    ret: Estimate


@dataclass(frozen=True)
class Aggregate:
    """One score of a method over all tasks (Agarwal et al., 2021).

    Attributes
    ----------
    iqm, median, gap
        Interquartile mean over all runs, median over tasks of the mean over seeds, and optimality gap (mean
        distance of runs below a score of 1), with 95 % intervals that resample seeds within tasks.
    profile, low, high
        Performance profile, the fraction of runs that score above each of ``THRESHOLDS``, and its pointwise
        95 % band (NaN for one seed per task).
    """

    iqm: Estimate
    median: Estimate
    gap: Estimate
    profile: Array
    low: Array
    high: Array


class MethodScores(NamedTuple):
    """Scores of a method over all tasks; ``group`` is its group on the first task."""

    group: Group
    ret: Aggregate
    safety: Aggregate


@dataclass(frozen=True)
class Overall:
    """Methods that ran on all tasks of a report.

    Attributes
    ----------
    methods
        Their scores.
    scales
        For each task the return that scores 1.
    missing
        Labels of the methods that lack one of these tasks.
    unscaled
        Tasks that are left out because no method has a positive return.
    """

    methods: Sequence[MethodScores]
    scales: dict[str, float]
    missing: Sequence[str]
    unscaled: Sequence[str]


@dataclass(frozen=True)
class Report:
    """Everything that tables, figures and pages are made from.

    Attributes
    ----------
    runs, skipped
        Loaded runs, and runs that could not be loaded.
    groups, summaries
        Groups of runs in the order of tables, and the statistics of each.
    comparisons
        Of each pair of methods with a common task.
    overall
        Scores over all tasks.
    colors
        Color of each method (``Group.method``).
    """

    runs: Sequence[Run]
    skipped: Sequence[Skipped]
    groups: Sequence[Group]
    summaries: Sequence[Summary]
    comparisons: Sequence[Comparison]
    overall: Overall
    colors: Mapping[str, str]

    def color(self, group: Group) -> str:
        """Return the color of the method of a group."""
        return self.colors[group.method]

    def by_task(self) -> dict[str, list[tuple[Group, Summary]]]:
        """Return the groups of each task with their statistics."""
        tasks: dict[str, list[tuple[Group, Summary]]] = {}
        for group, summary in zip(self.groups, self.summaries, strict=True):
            tasks.setdefault(group.env, []).append((group, summary))
        return tasks


def load_report(roots: Iterable[str | Path]) -> Report:
    """Load the runs in folders and archives and compute their report."""
    return make_report(*load_runs(roots))


def make_report(runs: Sequence[Run], skipped: Sequence[Skipped] = ()) -> Report:
    """Compute the report of some runs."""
    groups = group_runs(runs)
    summaries = [summarize(group) for group in groups]
    return Report(runs, skipped, groups, summaries, compare(groups), overall(groups), group_colors(groups))


def summarize(group: Group) -> Summary:
    """Return the statistics of one group."""
    limit, runs = group.limit, group.runs
    epochs = [tail_epochs(run) for run in runs]
    episodes = [tail_episodes(run) for run in runs]
    epoch_return, epoch_cost = (np.concatenate(column) for column in zip(*epochs, strict=True))
    episode_return, episode_cost = (np.concatenate(column) for column in zip(*episodes, strict=True))
    scores = [tail_score(run) for run in runs]
    all_costs = np.concatenate([run.episodes["cost"] for run in runs])
    training = violations(all_costs, limit)
    recoveries = np.concatenate([mode_lengths(run.modes, Mode.RECOVER) for run in runs])
    return Summary(
        env=group.env,
        label=group.label,
        algo=group.algo,
        limit=limit,
        seeds=len(runs),
        complete=sum(run.complete for run in runs),
        steps=min(run.steps for run in runs),
        epoch_feasibility=tail_feasibility(epoch_cost, limit),
        epoch_return=feasible_return(epoch_return, epoch_cost, limit),
        episode_feasibility=tail_feasibility(episode_cost, limit),
        episode_return=feasible_return(episode_return, episode_cost, limit),
        feasibility=_estimate([tail_feasibility(cost, limit) for _, cost in epochs], mean),
        ret=_estimate([_mean(ret) for ret, _ in epochs]),
        cost=_estimate([_mean(cost) for _, cost in epochs]),
        seed_return=_estimate([score.ret for score in scores], median),
        seed_violation_rate=_estimate([score.violation_rate for score in scores], median),
        violation_rate=violation_rate(episode_cost, limit),
        cvar90=cvar(episode_cost, 0.90),
        cvar95=cvar(episode_cost, 0.95),
        max_cost=max_cost(episode_cost),
        training_violations=training.count / len(runs),
        training_violation_rate=training.rate,
        mean_excess=training.mean_excess,
        total_excess=training.total_excess / len(runs),
        training_max_cost=max_cost(all_costs),
        mode_switches=float(np.mean([switches(run.modes) for run in runs])),
        recovery_fraction=float(np.mean([np.mean(run.modes == Mode.RECOVER) for run in runs])),
        recovery_length=float(recoveries.mean()) if len(recoveries) else np.nan,
        paper=paper_result(runs[0].config),
    )


class TailScore(NamedTuple):
    """Mean return and violation rate of the tail episodes of a run; NaN if there is no episode."""

    ret: float
    violation_rate: float


def tail_score(run: Run) -> TailScore:
    """Return mean return and violation rate of the tail episodes of a run."""
    ret, cost = tail_episodes(run)
    return TailScore(_mean(ret), violation_rate(cost, run.limit))


def seed_scores(group: Group) -> dict[int, TailScore]:
    """Return the scores of each seed that finished an episode in the tail."""
    scores = {run.seed: tail_score(run) for run in group.runs}
    return {seed: score for seed, score in scores.items() if np.isfinite(score).all()}


def tail_epochs(run: Run) -> tuple[Array, Array]:
    """Return mean return and cost of the last 100 episodes for each tail epoch, without NaN."""
    start = tail_start(run.n_epochs, TAIL)
    ret, cost = run.recent["return"][start:], run.recent["cost"][start:]
    known = np.isfinite(ret) & np.isfinite(cost)
    return ret[known], cost[known]


def tail_episodes(run: Run) -> tuple[Array, Array]:
    """Return returns and costs of the episodes that finished in the tail."""
    late = run.episodes["epoch"] >= tail_start(run.n_epochs, TAIL)
    return run.episodes["return"][late], run.episodes["cost"][late]


def compare(groups: Sequence[Group]) -> list[Comparison]:
    """Compare each pair of methods by episodes within the limit and by return of the tail."""
    methods = _scores_by_method(groups)
    result = []
    for i, than in enumerate(methods.values()):
        for better in list(methods.values())[i + 1 :]:
            common = [env for env in than if env in better]
            if not common:
                continue
            safety, ret = (
                probability_of_improvement(
                    [better[env][1][:, column] for env in common], [than[env][1][:, column] for env in common]
                )
                for column in (1, 0)
            )
            first = common[0]
            result.append(Comparison(better[first][0], than[first][0], len(common), safety, ret))
    return result


def overall(groups: Sequence[Group]) -> Overall:
    """Return the scores of each method that ran on all tasks."""
    methods = _scores_by_method(groups)
    best = {
        env: max(tasks[env][1][:, 0].mean() for tasks in methods.values() if env in tasks)
        for env in dict.fromkeys(env for tasks in methods.values() for env in tasks)
    }
    scales = {env: float(scale) for env, scale in best.items() if scale > 0.0}
    found, missing = [], []
    for tasks in methods.values():
        first = next(iter(tasks.values()))[0]
        if not scales or not set(scales) <= set(tasks):
            missing.append(first.label)
            continue
        ret = aggregate([tasks[env][1][:, 0] / scale for env, scale in scales.items()])
        found.append(MethodScores(first, ret, aggregate([tasks[env][1][:, 1] for env in scales])))
    return Overall(found, scales, missing, [env for env in best if env not in scales])


def aggregate(tasks: Sequence[npt.ArrayLike], draws: int = 2000, seed: int = 0) -> Aggregate:
    """Return the aggregates of scores, given as one array per task with one score per seed.

    Examples
    --------
    >>> float(aggregate([[0.5, 1.5], [1.0, 1.0]]).gap.value)
    0.125
    """
    strata = [np.asarray(scores, np.float64) for scores in tasks]
    drawn = None if max(map(len, strata)) == 1 else resample(strata, draws, np.random.default_rng(seed))

    def estimate(statistic: Callable[[Strata], Array]) -> Estimate:
        value = float(statistic(strata))
        if drawn is None:
            return Estimate(value, np.nan, np.nan)
        return percentile_interval(value, statistic(drawn))

    low = high = np.full(len(THRESHOLDS), np.nan)
    if drawn is not None:
        low, high = np.quantile(performance_profile(drawn, THRESHOLDS), [0.025, 0.975], axis=0)
    profile = performance_profile(strata, THRESHOLDS)
    return Aggregate(estimate(_iqm), estimate(task_median), estimate(optimality_gap), profile, low, high)


def task_median(strata: Strata) -> Array:
    """Return the median over tasks of the mean over seeds."""
    return np.asarray(np.median(np.stack([scores.mean(axis=-1) for scores in strata], axis=-1), axis=-1))


def optimality_gap(strata: Strata) -> Array:
    """Return the mean of max(1 - score, 0) over all runs."""
    return np.asarray(np.maximum(TARGET_SCORE - np.concatenate(strata, axis=-1), 0.0).mean(axis=-1))


def performance_profile(strata: Strata, thresholds: Array) -> Array:
    """Return the fraction of runs that score above each threshold, (..., thresholds)."""
    scores = np.sort(np.concatenate(strata, axis=-1), axis=-1)
    flat = scores.reshape(-1, scores.shape[-1])
    below = np.stack([np.searchsorted(row, thresholds, side="right") for row in flat])
    return np.asarray(1.0 - below.reshape(*scores.shape[:-1], -1) / scores.shape[-1])


def _scores_by_method(groups: Sequence[Group]) -> dict[str, dict[str, tuple[Group, Array]]]:
    """Return for each method and task its group and scores (seeds, 2): return, fraction within the limit."""
    methods: dict[str, dict[str, tuple[Group, Array]]] = {}
    for group in groups:
        scores = [[score.ret, 1.0 - score.violation_rate] for score in seed_scores(group).values()]
        if scores:
            methods.setdefault(group.method, {})[group.env] = (group, np.array(scores))
    return methods


def _iqm(strata: Strata) -> Array:
    return interquartile_mean(np.concatenate(strata, axis=-1))


def _estimate(scores: list[float], statistic: Statistic = interquartile_mean) -> Estimate:
    known = [score for score in scores if np.isfinite(score)]
    return stratified_bootstrap([known], statistic) if known else Estimate(np.nan, np.nan, np.nan)


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else np.nan
