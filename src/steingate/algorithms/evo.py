"""EVO (Extreme Value Policy Optimization, ICML 2025): CPO with a limit on a fitted extreme of the episode cost.

The constrained statistic is a high quantile of the costs of the last ``capacity`` episodes: above the 95th percentile
u, a generalized Pareto distribution is fitted to the excesses, and the statistic is u plus its median. Episodes of
earlier policies count by their likelihood ratio under the current policy. Transitions with an extreme reward
advantage, above a quantile fitted in the same way, count ``1 + copies`` times.
"""

import warnings
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from steingate.algorithms.base import (
    Array,
    Decision,
    Episodes,
    MethodInfo,
    Metrics,
    Mode,
    Params,
    RunContext,
    Trajectories,
    TrustRegionAlgorithm,
)
from steingate.algorithms.common.episodes import RecentEpisodes, append_window, gate_output
from steingate.algorithms.config import CostAdvantageConfig
from steingate.settings import NON_NEGATIVE, POSITIVE, UNIT, Range, group, option

PERCENT = Range(0.0, 100.0)
PUBLISHED_BUFFER = 100  # transitions in the published fit of the advantages: the last ones of the last environment


@dataclass(frozen=True)
class ExtremeValueConfig:
    """Extreme value of the episode cost."""

    capacity: int = option(50, "number of episodes", POSITIVE)
    percentile: float = option(95.0, "percentile above which the tail is fitted", PERCENT)
    quantile: float = option(0.5, "quantile of the fitted excess", UNIT)


@dataclass(frozen=True)
class ReplayConfig:
    """Transitions that count more than once."""

    copies: int = option(4, "further copies of each chosen transition", NON_NEGATIVE)
    percentile: float = option(90.0, "percentile above which the tail of the advantages is fitted", PERCENT)
    quantile: float = option(0.5, "quantile of the fitted excess", UNIT)


class Steps(NamedTuple):
    """Steps of whole episodes, one after the other."""

    obs: npt.NDArray[np.float32]
    act: npt.NDArray[np.float32]
    logp: npt.NDArray[np.float32]


class EVOState(NamedTuple):
    """The last ``capacity`` whole episodes with their steps, and the episodes that are still running."""

    recent: RecentEpisodes
    costs: Array
    steps: Steps
    lengths: npt.NDArray[np.int64]
    log_ratio: Array  # log likelihood ratio of each episode under the current policy
    running: tuple[Steps, ...]  # one entry per environment


@dataclass(frozen=True)
class EVO(TrustRegionAlgorithm):
    """Extreme-value policy optimization; its gate uses all episodes that finished."""

    info = MethodInfo(
        "evo",
        "CPO with a limit on a fitted extreme of the cost; high-advantage transitions count five times",
        "Extreme Value Policy Optimization (ICML 2025)",
        "adds the 95th percentile twice, clamps log ratios as if they were ratios, treats an epoch without "
        "cost as safe, fits rewards on the last 100 transitions of one environment, and lets the copies bias "
        "the cost gradient; on CPO's published update",
        "counts the percentile once, clamps ratios, fits excesses from 0 on all transitions, whose copies "
        "count in the reward gradient only; on CPO's corrected update",
        constraint="extreme value", update="trust region, replayed extremes", order=40, color="#e0a030",
    )  # fmt: skip
    cost_advantages: CostAdvantageConfig = group(CostAdvantageConfig, flat=True)
    extreme: ExtremeValueConfig = group(ExtremeValueConfig)
    replay: ReplayConfig = group(ReplayConfig)

    def init(self, context: RunContext, policy: Params) -> EVOState:
        dims = (len(policy["w"][0]),), (len(policy["log_std"]) if "log_std" in policy else 1,), ()
        nothing = Steps(*(np.zeros((0, *dim), np.float32) for dim in dims))
        none = np.zeros(0)
        return EVOState(RecentEpisodes(), none, nothing, np.zeros(0, np.int64), none, (nothing,) * context.num_envs)

    def record_rollout(self, context: RunContext, state: EVOState, policy: Params, rollout: Trajectories) -> EVOState:
        """Store the finished episodes, and the log likelihood ratio of all stored ones under ``policy``.

        The ratio of an episode of this rollout is 0, unless episodes are carried over from epoch to epoch: it may then
        have begun under an earlier policy.
        """
        arrays, carried = (rollout.obs, rollout.act, rollout.logp), context.carry_episodes
        running, begun = list(state.running), [0] * context.num_envs

        def path(env: int, end: int) -> Steps:
            return join(running[env], Steps(*(array[begun[env] : end, env] for array in arrays)))

        fresh = []
        for step, env in rollout.finished_at:
            fresh.append(path(env, step + 1))
            begun[env], running[env] = step + 1, Steps(*(array[:0, env] for array in arrays))
        if carried:
            running = [path(env, len(rollout.logp)) for env in range(context.num_envs)]
        lengths = np.append(state.lengths, [len(one.logp) for one in fresh]).astype(np.int64)
        dropped = int(lengths[: -self.extreme.capacity].sum())
        steps = Steps(*(array[dropped:] for array in join(state.steps, *fresh)))
        lengths = lengths[-self.extreme.capacity :]
        log_ratio = np.zeros(len(lengths))
        old = len(lengths) if carried else max(len(lengths) - len(fresh), 0)
        if old:
            log_ratio[:old] = log_ratios(steps, lengths[:old], policy)
        return state._replace(steps=steps, lengths=lengths, log_ratio=log_ratio, running=tuple(running))

    def decide(self, context: RunContext, state: EVOState, episodes: Episodes) -> Decision:
        """Constrain the extreme value of the cost; before the first finished episode minimize cost."""
        costs = append_window(state.costs, episodes.cost, self.extreme.capacity)
        recent = state.recent.extend(episodes, context.window)
        zero = self.is_published and not np.any(episodes.cost)
        value, fitted, mode = 0.0, True, Mode.BALANCE
        if len(costs) and not zero:
            value, fitted = extreme_value(costs, state.log_ratio, self.extreme, self.is_published)
        elif not zero:
            value, mode = context.cost_limit, Mode.RECOVER
        slack = context.cost_limit - value if self.is_published else recent.per_step(context.cost_limit - value)
        output = gate_output(mode, episodes, slack, ExtremeCost=value, FitFailed=float(not fitted))
        return state._replace(costs=costs, recent=recent), output

    def shape_advantages(self, advantage: Array) -> tuple[Array, npt.NDArray[np.float32] | None, Metrics]:
        """Let transitions with extreme advantages count more than once.

        Choosing transitions by their advantage changes the frequencies of actions, so a cost surrogate over the copies
        no longer estimates the policy's cost, and minimizing it can raise the cost. The copies therefore count in the
        reward surrogate only (weights None), except in the published variant.
        """
        published, replay, every = self.is_published, self.replay, advantage.ravel()
        by_environment = advantage.T.ravel()
        sample = by_environment[-PUBLISHED_BUFFER:] if published else by_environment
        threshold, fitted = 0.0, True
        if np.any(sample):
            quantile = min(max(replay.quantile, 0.2), 0.9)
            threshold, fitted = pareto_quantile(sample, replay.percentile, quantile, free_location=published)
        chosen = every >= threshold
        facts = {"Threshold": threshold, "Fraction": float(chosen.mean()), "FitFailed": float(not fitted)}
        metrics = {f"Loss/Replay{name}": value for name, value in facts.items()}
        weight = 1.0 + replay.copies * chosen
        if published:
            return every, weight.astype(np.float32), metrics
        return every * weight / weight.mean(), None, metrics


def pareto_quantile(sample: Array, percentile: float, quantile: float, free_location: bool) -> tuple[float, bool]:
    """Return the percentile plus a quantile of a Pareto distribution fitted to the excesses, and whether it was fitted.

    With ``free_location``, as published, the location is fitted too; otherwise excesses start at 0. If the fit fails
    (fewer than two different excesses, or no convergence to a number), the quantile of the excesses themselves is
    used.
    """
    from scipy.stats import FitError, genpareto  # half a second to import, and few algorithms need it

    threshold = float(np.percentile(sample, percentile))
    excess = sample[sample > threshold] - threshold
    if len(excess) == 0:
        return threshold, True
    if len(np.unique(excess)) > 1:
        fixed: dict[str, Any] = {} if free_location else {"floc": 0.0}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                value = float(genpareto.ppf(quantile, *genpareto.fit(excess, **fixed)))
            except (FitError, FloatingPointError, ValueError):
                value = np.nan
        if isfinite(value) and value >= 0.0:
            return threshold + value, True
    return threshold + float(np.quantile(excess, quantile)), False


def extreme_value(
    costs: Array, log_ratio: Array, config: ExtremeValueConfig, published: bool = False
) -> tuple[float, bool]:
    """Return the extreme value of the remembered costs, and whether the fit succeeded.

    Episodes are weighted by clamped likelihood ratios, rounded to about ten thousand copies in all. Published code
    clamps the logarithms instead, and adds the percentile twice.
    """
    weight = np.clip(np.exp(np.minimum(log_ratio, 1.0)), 0.8, 1.2)
    if published:
        weight = np.exp(np.clip(log_ratio, 0.8, 1.2))
    copies = (weight / weight.sum() * 1e4).astype(np.int64)
    sample = np.repeat(costs, copies)
    value, fitted = pareto_quantile(sample, config.percentile, config.quantile, free_location=published)
    return value + float(np.percentile(sample, config.percentile)) * published, fitted


def log_ratios(steps: Steps, lengths: npt.NDArray[np.int64], policy: Params) -> Array:
    """Return the summed log likelihood ratio of the first episodes in ``steps``, one for each length."""
    from steingate.algorithms.common.networks import compiled_log_prob

    rows = int(lengths.sum())
    size = max(64, 1 << (rows - 1).bit_length())  # few shapes, so that little is compiled
    obs = np.zeros((size, steps.obs.shape[1]), np.float32)
    act = np.zeros((size, steps.act.shape[1]), np.float32)
    obs[:rows], act[:rows] = steps.obs[:rows], steps.act[:rows]
    change = np.asarray(compiled_log_prob(policy, obs, act), np.float64)[:rows] - steps.logp[:rows]
    return np.asarray(np.add.reduceat(change, np.append(0, np.cumsum(lengths)[:-1])))


def join(*parts: Steps) -> Steps:
    """Return the steps of all parts, one after the other."""
    return Steps(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
