"""Numbers of a report: each configuration, pairs of methods, and methods over all tasks.

"Tail" means the last fifth of the epochs of a run.

Scores over all tasks: each run has two scores over its tail. *Safety* is the fraction of its episodes within
the limit. *Return* is the mean return of its episodes divided by the scale of the task, which is the highest
mean over seeds of any method of the report. A return of 0 scores 0, and the best method of each task scores 1
on average. Tasks on which no method has a positive return are left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from steingate.certificates.betting import e_bh
from steingate.errors import is_real
from steingate.monitoring.wealth import bets_below
from steingate.report import statistics as stats
from steingate.report.groups import Group, group_colors, group_runs
from steingate.report.load import Run, Skipped, load_runs
from steingate.report.statistics import Estimate, Statistic

Array = npt.NDArray[np.float64]

THRESHOLDS = np.linspace(0.0, 1.2, 61)  # scores at which performance profiles are computed
LEVEL = 0.05  # of e-BH: largest expected fraction of wrong ones among the selected policies


@dataclass(frozen=True)
class Summary:
    """Statistics of all seeds of one configuration."""

    group: Group
    seeds: int
    complete: int  # number of seeds that finished training
    tested: int  # number of seeds with a result of certification
    certified: int  # number of seeds with a certified policy
    steps: int  # fewest steps of a seed
    # Feasibility and feasible return of the tail, pooled over seeds. By epoch: judged by the mean of the last
    # 100 episodes, as in the table of the SteinGate paper; by episode: as in its text.
    epoch_feasibility: float
    epoch_return: float
    episode_feasibility: float
    episode_return: float
    # The tail over seeds, with 95 % bootstrap intervals.
    ret: Estimate  # interquartile mean of the mean over epochs
    cost: Estimate
    seed_return: Estimate  # median of the mean over episodes
    seed_violation_rate: Estimate
    # Episode costs of the tail, pooled over seeds.
    violation_rate: float
    cvar90: float
    cvar95: float
    max_cost: float
    # Episodes of all of training.
    training_violations: float  # per seed
    training_violation_rate: float
    mean_excess: float  # of a violation over the limit
    training_max_cost: float


class Comparison(NamedTuple):
    """Probability that a seed of one method scores higher than a seed of another, over their common tasks."""

    better: str
    than: str
    tasks: int
    safety: Estimate
    ret: Estimate


class Aggregate(NamedTuple):
    """One score of a method over all tasks (Agarwal et al., 2021), with 95 % intervals."""

    iqm: Estimate  # interquartile mean over all runs
    median: Estimate  # over tasks, of the mean over seeds
    gap: Estimate  # mean distance of runs below a score of 1
    profile: Array  # fraction of runs that score above each of THRESHOLDS
    low: Array  # pointwise band of the profile, NaN for one seed per task
    high: Array


class MethodScores(NamedTuple):
    """Scores of a method over all tasks."""

    label: str
    ret: Aggregate
    safety: Aggregate


class Overall(NamedTuple):
    """Methods that ran on all tasks of a report."""

    methods: Sequence[MethodScores]
    scales: dict[str, float]  # for each task the return that scores 1
    missing: Sequence[str]  # labels of the methods that lack one of these tasks
    unscaled: Sequence[str]  # tasks without a positive return


@dataclass(frozen=True)
class Report:
    """Everything that tables, figures and pages are made from."""

    runs: Sequence[Run]
    skipped: Sequence[Skipped]  # runs that could not be loaded
    summaries: Sequence[Summary]  # of each group of runs, in the order of tables
    comparisons: Sequence[Comparison]  # of each pair of methods with a common task
    overall: Overall
    colors: Mapping[str, str]  # by label

    @property
    def several_seeds(self) -> bool:
        """Whether some method has more than one seed; otherwise there are no intervals."""
        return any(item.seeds > 1 for item in self.summaries)

    def by_task(self) -> dict[str, list[Summary]]:
        """Return the statistics of the groups of each task."""
        tasks: dict[str, list[Summary]] = {}
        for item in self.summaries:
            tasks.setdefault(item.group.env, []).append(item)
        return tasks


def load_report(roots: Iterable[str | Path], limit: float | None = None) -> Report:
    """Load the runs in folders and archives and compute their report, at ``limit`` if it is given."""
    return make_report(*load_runs(roots, limit))


def make_report(runs: Sequence[Run], skipped: Sequence[Skipped] = ()) -> Report:
    """Compute the report of some runs."""
    groups = group_runs(runs)
    summaries = [summarize(group) for group in groups]
    return Report(runs, skipped, summaries, compare(groups), overall(groups), group_colors(groups))


def summarize(group: Group) -> Summary:
    """Return the statistics of one group."""
    limit, runs = group.limit, group.runs
    epochs = [tail_epochs(run) for run in runs]
    epoch_return, epoch_cost = (np.concatenate(column) for column in zip(*epochs, strict=True))
    episodes = [tail_episodes(run) for run in runs]
    episode_return, episode_cost = (np.concatenate(column) for column in zip(*episodes, strict=True))
    seed_return, seed_violation_rate = seed_medians(group)
    costs = np.concatenate([run.episodes["cost"] for run in runs])
    results = [run.certification for run in runs if run.certification is not None]
    excess = costs[costs > limit] - limit
    return Summary(
        group=group,
        seeds=len(runs),
        complete=sum(run.complete for run in runs),
        tested=len(results),
        certified=sum(result.get("certified") is True for result in results),
        steps=min(run.steps for run in runs),
        epoch_feasibility=stats.tail_feasibility(epoch_cost, limit),
        epoch_return=stats.feasible_return(epoch_return, epoch_cost, limit),
        episode_feasibility=stats.tail_feasibility(episode_cost, limit),
        episode_return=stats.feasible_return(episode_return, episode_cost, limit),
        ret=_estimate([_mean(ret) for ret, _ in epochs]),
        cost=_estimate([_mean(cost) for _, cost in epochs]),
        seed_return=seed_return,
        seed_violation_rate=seed_violation_rate,
        violation_rate=stats.violation_rate(episode_cost, limit),
        cvar90=stats.cvar(episode_cost, 0.90),
        cvar95=stats.cvar(episode_cost, 0.95),
        max_cost=float(episode_cost.max(initial=-np.inf)),
        training_violations=len(excess) / len(runs),
        training_violation_rate=stats.violation_rate(costs, limit),
        mean_excess=float(excess.mean()) if len(excess) else 0.0,
        training_max_cost=float(costs.max(initial=-np.inf)),
    )


class Selection(NamedTuple):
    """Certified policies that e-BH selects among all tested runs."""

    tested: int
    certified: int
    expected_wrong: float  # largest expected number of wrong certificates: the sum of the deltas
    selected: Sequence[Run]
    left_out: Sequence[Run]  # certified, but not selected


def select_certified(runs: Sequence[Run]) -> Selection:
    """Select certified policies so that the expected fraction of wrong ones among them is at most ``LEVEL``.

    A certificate alone is wrong with probability delta, so in a grid the fraction of wrong ones among the certified
    policies can be larger; e-BH bounds it under any dependence between the runs.
    """
    tested = [(run, run.certification) for run in runs if run.certification is not None]
    values = [certificate_e_value(certification) for _, certification in tested]
    chosen = e_bh(values, LEVEL).tolist() if tested else []
    certified = [(run, s) for (run, _), value, s in zip(tested, values, chosen, strict=True) if value > 0.0]
    deltas = [certification.get("delta") for _, certification in tested]
    wrong = sum(delta for delta in deltas if is_real(delta) and 0.0 < delta < 1.0)
    selected, left_out = ([run for run, s in certified if s is wanted] for wanted in (True, False))
    return Selection(len(tested), len(certified), wrong, selected, left_out)


def certificate_e_value(certification: Mapping[str, Any]) -> float:
    """Return the e-value of a run against "its certified policy exceeds the accepted risk"; 0 if none is certified.

    It is (delta_k / delta) W: W is the wealth of the monitor after the test that certified the policy and the fresh
    episodes that followed, and delta_k the part of delta that this test had. As these parts add up to delta, the
    expectation over all tests of a run is at most 1, whichever policy is delivered. Without these numbers it is
    1 / delta, because a run certifies a wrong policy with probability at most delta.
    """
    try:
        budget, delta, test = (certification[name] for name in ("budget", "delta", "policy"))
        if certification["certified"] is not True or not (0.0 < budget < 1.0 and 0.0 < delta < 1.0):
            return 0.0
        if test["delta"] is None:
            return float(1.0 / delta)
        samples = [test, certification.get("fresh_episodes") or {"violations": 0, "episodes": 0}]
        counts = [(int(sample["violations"]), int(sample["episodes"])) for sample in samples]
        if not (all(0 <= over <= n for over, n in counts) and 0.0 < test["delta"] <= delta):
            return 0.0
        over, n = map(sum, zip(*counts, strict=True))
        return float(test["delta"] / delta * exp(min(bets_below(budget).log_wealth(over, n - over), 700.0)))
    except (KeyError, TypeError, ValueError, OverflowError):
        return 0.0


class TailScore(NamedTuple):
    """Mean return and violation rate of the tail episodes of a run."""

    ret: float
    violation_rate: float


def seed_scores(group: Group) -> dict[int, TailScore]:
    """Return the scores of each seed that finished an episode in the tail."""
    tails = {run.seed: tail_episodes(run) for run in group.runs}
    return {
        seed: TailScore(_mean(ret), stats.violation_rate(cost, group.limit))
        for seed, (ret, cost) in tails.items()
        if len(cost)
    }


def seed_medians(group: Group) -> tuple[Estimate, Estimate]:
    """Return the medians over seeds of return and violation rate of the tail episodes."""
    scores = seed_scores(group).values()
    rets, rates = [score.ret for score in scores], [score.violation_rate for score in scores]
    return _estimate(rets, stats.median), _estimate(rates, stats.median)


def tail_epochs(run: Run) -> tuple[Array, Array]:
    """Return mean return and cost of the last 100 episodes for each tail epoch, without NaN."""
    start = stats.tail_start(run.n_epochs)
    ret, cost = run.recent["return"][start:], run.recent["cost"][start:]
    known = np.isfinite(ret) & np.isfinite(cost)
    return ret[known], cost[known]


def tail_episodes(run: Run) -> tuple[Array, Array]:
    """Return returns and costs of the episodes that finished in the tail."""
    late = run.episodes["epoch"] >= stats.tail_start(run.n_epochs)
    return run.episodes["return"][late], run.episodes["cost"][late]


def compare(groups: Sequence[Group]) -> list[Comparison]:
    """Compare each pair of methods, unless both have one seed, by episodes within the limit and return of the tail."""
    methods = list(_scores_by_method(groups).items())
    result = []
    for index, (than, theirs) in enumerate(methods):
        for better, ours in methods[index + 1 :]:
            common = [env for env in theirs if env in ours]
            if any(tasks[env].shape[1] > 1 for tasks in (ours, theirs) for env in common):
                pairs = [([ours[env][i] for env in common], [theirs[env][i] for env in common]) for i in (0, 1)]
                ret, safety = (stats.probability_of_improvement(*pair) for pair in pairs)
                result.append(Comparison(better, than, len(common), safety, ret))
    return result


def overall(groups: Sequence[Group]) -> Overall:
    """Return the scores of each method that ran on all tasks."""
    methods = _scores_by_method(groups)
    best: dict[str, float] = {}
    for tasks in methods.values():
        for env, (returns, _) in tasks.items():
            best[env] = max(best.get(env, -np.inf), float(returns.mean()))
    scales = {env: scale for env, scale in best.items() if scale > 0.0}
    found, missing = [], []
    for label, tasks in methods.items():
        if scales and set(scales) <= set(tasks):
            ret = aggregate([tasks[env][0] / scale for env, scale in scales.items()])
            found.append(MethodScores(label, ret, aggregate([tasks[env][1] for env in scales])))
        else:
            missing.append(label)
    return Overall(found, scales, missing, [env for env in best if env not in scales])


def aggregate(tasks: Sequence[npt.ArrayLike], draws: int = stats.DRAWS) -> Aggregate:
    """Return the aggregates of scores, given as one array per task with one score per seed.

    >>> float(aggregate([[0.5, 1.5], [1.0, 1.0]]).gap.value)
    0.125
    """
    scores = [np.asarray(task, np.float64) for task in tasks]
    low = high = np.full(len(THRESHOLDS), np.nan)
    if max(map(len, scores)) > 1:
        profiles = stats.performance_profile(stats.resample(scores, draws), THRESHOLDS)
        low, high = np.quantile(profiles, [0.025, 0.975], axis=0)
    return Aggregate(
        stats.bootstrap(scores, stats.interquartile_mean, draws),
        stats.bootstrap(scores, stats.task_median, draws),
        stats.bootstrap(scores, stats.optimality_gap, draws),
        stats.performance_profile(scores, THRESHOLDS),
        low,
        high,
    )


def _scores_by_method(groups: Sequence[Group]) -> dict[str, dict[str, Array]]:
    """Return for each method and task (2, seeds): mean return, and fraction of episodes within the limit."""
    methods: dict[str, dict[str, Array]] = {}
    for group in groups:
        scores = [[score.ret, 1.0 - score.violation_rate] for score in seed_scores(group).values()]
        if scores:
            methods.setdefault(group.label, {})[group.env] = np.array(scores).T
    return methods


def _estimate(scores: list[float], statistic: Statistic = stats.interquartile_mean) -> Estimate:
    known = [score for score in scores if np.isfinite(score)]
    return stats.bootstrap([known], statistic) if known else Estimate(np.nan, np.nan, np.nan)


def _mean(values: npt.NDArray[np.floating | np.integer]) -> float:
    return float(values.mean()) if len(values) else np.nan
