"""The numbers of one group of runs: what the seeds of a configuration did in the last fifth, and in all."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from steingate.gates.base import Mode
from steingate.report.groups import Group
from steingate.report.loading import Run
from steingate.report.published import Published, published
from steingate.report.seeds import (
    Estimate,
    Statistic,
    interquartile_mean,
    mean,
    median,
    stratified_bootstrap,
)
from steingate.report.stats import (
    cvar,
    dwell_times,
    exceedance,
    feasible_return,
    switches,
    tail_feasibility,
    tail_start,
    violations,
    worst,
)

Array = npt.NDArray[np.float64]
TAIL = 0.2


@dataclass(frozen=True)
class Summary:
    """What the seeds of one configuration did.

    "Tail" is the last fifth of the epochs of each seed, pooled over seeds as in the paper.

    Attributes
    ----------
    env, label, algo, limit
        The configuration.
    seeds, complete, steps
        How many seeds, how many of them are complete, and the fewest steps among them.
    epoch_feasibility, epoch_return
        Tail feasibility and feasible return over epochs, each judged by the mean of its last hundred
        episodes: what the paper's table shows.
    episode_feasibility, episode_return
        The same over single episodes: what the paper's text says.
    feasibility
        Epoch feasibility, mean over seeds with its bootstrap interval.
    ret, cost
        Interquartile means over seeds of the tail's mean return and cost, with bootstrap intervals.
    seed_return, seed_exceedance
        Medians over seeds, with bootstrap intervals: the mean return of tail episodes, and the share of them
        above the limit.
    exceedance, cvar90, cvar95, worst
        Tail episodes: share above the limit, means of the costliest tenth and twentieth, the costliest.
    violations, violation_share, mean_excess, total_excess, worst_ever
        All of training: episodes above the limit per seed, as a share, by how much on average, the sum of
        what exceeds the limit per seed, and the costliest episode.
    switches, recover_share, recover_dwell
        The gate, means over seeds: changes of mode, share of epochs that recover, mean length of a recovery
        in epochs (NaN when there was none).
    paper
        What the paper's table says, where it says anything and the runs have the paper's settings.
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
    seed_exceedance: Estimate
    exceedance: float
    cvar90: float
    cvar95: float
    worst: float
    violations: float
    violation_share: float
    mean_excess: float
    total_excess: float
    worst_ever: float
    switches: float
    recover_share: float
    recover_dwell: float
    paper: Published | None


def summarize(group: Group, tail: float = TAIL) -> Summary:
    """Return the numbers of one group."""
    limit, runs = group.limit, group.runs
    epochs = [tail_epochs(run, tail) for run in runs]
    episodes = [tail_episodes(run, tail) for run in runs]
    ret, cost = (np.concatenate(parts) for parts in zip(*epochs, strict=True))
    ep_ret, ep_cost = (np.concatenate(parts) for parts in zip(*episodes, strict=True))
    points = [tail_point(run, tail) for run in runs]
    everything = np.concatenate([run.episodes["cost"] for run in runs])
    broken = violations(everything, limit)
    dwell = [dwell_times(run.modes).get(Mode.RECOVER) for run in runs]
    recoveries = [item for item in dwell if item is not None]
    return Summary(
        env=group.env,
        label=group.label,
        algo=group.algo,
        limit=limit,
        seeds=len(runs),
        complete=sum(run.complete for run in runs),
        steps=min(run.steps for run in runs),
        epoch_feasibility=tail_feasibility(cost, limit),
        epoch_return=feasible_return(ret, cost, limit),
        episode_feasibility=tail_feasibility(ep_cost, limit),
        episode_return=feasible_return(ep_ret, ep_cost, limit),
        feasibility=_estimate([tail_feasibility(part[1], limit) for part in epochs], mean),
        ret=_estimate([_mean(part[0]) for part in epochs]),
        cost=_estimate([_mean(part[1]) for part in epochs]),
        seed_return=_estimate([point.ret for point in points], median),
        seed_exceedance=_estimate([point.exceedance for point in points], median),
        exceedance=exceedance(ep_cost, limit),
        cvar90=cvar(ep_cost, 0.90),
        cvar95=cvar(ep_cost, 0.95),
        worst=worst(ep_cost),
        violations=broken.count / len(runs),
        violation_share=broken.share,
        mean_excess=broken.mean_excess,
        total_excess=broken.total_excess / len(runs),
        worst_ever=worst(everything),
        switches=float(np.mean([switches(run.modes) for run in runs])),
        recover_share=float(np.mean([np.mean(run.modes == Mode.RECOVER) for run in runs])),
        recover_dwell=(
            sum(item.mean * item.stretches for item in recoveries)
            / sum(item.stretches for item in recoveries)
            if recoveries
            else np.nan
        ),
        paper=published(runs[0].config),
    )


class Point(NamedTuple):
    """One run: mean return of its tail episodes, and the share of them above the limit."""

    ret: float
    exceedance: float


def tail_point(run: Run, tail: float = TAIL) -> Point:
    """Return where a run stands; NaN where no episode finished in the last epochs."""
    ret, cost = tail_episodes(run, tail)
    return Point(_mean(ret), exceedance(cost, run.limit))


def tail_epochs(run: Run, tail: float = TAIL) -> tuple[Array, Array]:
    """Return the recent returns and costs of the last epochs, without those before any episode finished."""
    start = tail_start(run.epochs, tail)
    ret, cost = run.recent["return"][start:], run.recent["cost"][start:]
    known = np.isfinite(ret) & np.isfinite(cost)
    return ret[known], cost[known]


def tail_episodes(run: Run, tail: float = TAIL) -> tuple[Array, Array]:
    """Return the returns and costs of the episodes that finished in the last epochs."""
    late = run.episodes["epoch"] >= tail_start(run.epochs, tail)
    return run.episodes["return"][late], run.episodes["cost"][late]


def tail_scores(group: Group, tail: float = TAIL) -> Array:
    """Return (seeds, 2): share of tail episodes within the limit, their mean return; no row where NaN."""
    points = np.array([tail_point(run, tail) for run in group.runs], np.float64)
    table = np.column_stack([1.0 - points[:, 1], points[:, 0]])
    return table[np.isfinite(table).all(axis=1)]


def _estimate(scores: list[float], statistic: Statistic = interquartile_mean) -> Estimate:
    known = [score for score in scores if np.isfinite(score)]
    return stratified_bootstrap([known], statistic) if known else Estimate(np.nan, np.nan, np.nan)


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else np.nan
