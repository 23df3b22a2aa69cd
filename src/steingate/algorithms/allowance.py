"""The allowance: costs are penalized lightly below an adaptive budget and heavily above it. The default algorithm.

With the limit d, the cost c_t of a step and the accumulated cost C_t, the policy observes

    z_t = -min(C_t / d, 1 + cost_obs_cap)

and learns from the reward

    r_t - inner_penalty_ratio q c_t          while C_t < m d
    over_budget_reward_weight r_t - q c_t    once  C_t >= m d
    q = max(penalty, min_penalty_fraction R / d) / m^2

R is the mean absolute episode return, smoothed over about ten epochs. After every block of ``episodes_per_update``
episodes, ``BudgetSchedule`` adapts the budget fraction m to the violation rate. Its alarm threshold is ``noise`` times
as high while the largest action standard deviation is ``noise`` times its final value, and m is held while the return
still grows and the mean cost is below ``cost_tolerance`` limits.

A block without growth of the return also lowers the largest action standard deviation, from ``init_std`` to
``min_std``, and with its square root the size of the policy update.
"""

from dataclasses import dataclass, replace
from math import inf, log, nan, pi, sqrt
from typing import Any, NamedTuple

import numpy as np

from steingate.algorithms.base import (
    Array,
    Batch,
    Decision,
    EnvParams,
    Episodes,
    MethodInfo,
    Metrics,
    Mode,
    Objective,
    OnPolicyAlgorithm,
    Params,
    RunContext,
    TrustRegionAlgorithm,
    Update,
)
from steingate.algorithms.common.episodes import gate_output
from steingate.algorithms.config import (
    EPISODE_FILTER,
    AdvantageConfig,
    CriticConfig,
    EpisodeFilter,
    NetworkConfig,
    PPOConfig,
)
from steingate.algorithms.ppo import MinibatchAlgorithm
from steingate.algorithms.saute import require_cost_budget
from steingate.certificates.betting import RHO, WEIGHTS
from steingate.errors import InputError
from steingate.monitoring.wealth import THETA
from steingate.policies.safety_state import SafetyState
from steingate.settings import FRACTION, NON_NEGATIVE, POSITIVE, UNIT, Range, check_ranges, group, option


@dataclass(frozen=True)
class PenaltyConfig:
    """Reward and cost observation."""

    penalty: float = option(0.1, "penalty per unit of cost beyond the budget, for a budget of one limit", POSITIVE)
    min_penalty_fraction: float = option(
        0.05, "smallest penalty of one limit of cost, as a fraction of the return", NON_NEGATIVE
    )
    inner_penalty_ratio: float = option(0.25, "penalty within the budget relative to beyond it", UNIT)
    over_budget_reward_weight: float = option(1.0, "weight of the reward beyond the budget", UNIT)
    cost_obs_cap: float | None = option(
        0.5, "upper bound of the cost observation, in limits beyond the first; none: unbounded", NON_NEGATIVE
    )


class ScheduleState(NamedTuple):
    """State of ``BudgetSchedule``. Everything but ``fraction`` and the last two counters restarts when m changes."""

    fraction: float  # budget fraction m
    below: Array = np.zeros(len(RHO))  # R_c: evidence of each bet that the violation rate is below the risk
    above: Array = np.zeros(len(THETA))  # S_a: evidence of each bet that it is above alarm * risk
    updates: int = 0  # since m changed, as are the next two
    violations: int = 0
    episodes: int = 0
    changes: int = 0  # of m
    alarms_at_min: int = 0  # alarms at min_fraction, where m cannot shrink


class ScheduleInfo(NamedTuple):
    """Evidence at an update: E and A of ``BudgetSchedule``."""

    grow_evidence: float
    shrink_evidence: float


@dataclass(frozen=True)
class BudgetSchedule:
    """Controller of the budget fraction m. It needs numbers of violations and episodes only, so it suits any learner.

    With B = ``risk`` and b = min(alarm B noise, 1), the j-th update since m changed, with h violations among n
    episodes, computes for the bets c and a and the weights w_c of ``monitoring.wealth``

        R_c <- (R_c + 1 / (j (j + 1))) c^h ((1 - c B) / (1 - B))^(n - h)      E = sum_c w_c R_c
        S_a <- (S_a + n) (1 + a (1 - b) / b)^h (1 - a)^(n - h)                A = mean_a S_a

        if A >= run_length:       m <- max(shrink m, min_fraction)
        else if E >= 1 / delta:   m <- min(grow m, 1)

    A change of m restarts everything: R, S and j become 0. An alarm at ``min_fraction`` restarts S, and is counted.

    Let p_t be the probability, given the past, that episode t is a violation; it may change with every episode.

    - For each value that m takes, the probability is at most ``delta`` that m grows at an update at which every window
      of the last updates had mean p_t >= B: E is an e-process with restarts (Ville's inequality). With ``spend``, the
      i-th value gets 6 delta / (pi i)^2, and ``delta`` holds for the whole run.
    - While p_t <= b, an alarm takes at least ``run_length`` episodes on average: A is a Shiryaev-Roberts detector.

    Examples
    --------
    >>> schedule = BudgetSchedule()
    >>> state = schedule.init()
    >>> for _ in range(9):
    ...     state, info = schedule.update(state, risk=0.05, violations=0, episodes=10)
    >>> round(state.fraction, 2), round(info.grow_evidence, 1)
    (0.69, 29.2)
    """

    init_fraction: float = option(0.6, "initial budget fraction")
    min_fraction: float = option(0.1, "smallest budget fraction; below it the penalty outweighs the reward", POSITIVE)
    shrink: float = option(0.85, "factor after evidence of too many violations", POSITIVE)
    grow: float = option(1.15, "factor after evidence of a violation rate below the risk")
    delta: float = option(0.05, "probability of growing wrongly, for each value of the budget fraction", FRACTION)
    spend: bool = option(False, "divide delta over the values of the budget fraction, so that it holds for the run")
    alarm: float = option(0.67, "violation rate, as a multiple of the risk, above which the fraction shrinks", POSITIVE)
    run_length: float = option(1000.0, "mean number of episodes between false alarms, at least", Range(1.0, inf))

    def __post_init__(self) -> None:
        check_ranges(self)
        if not self.min_fraction <= self.init_fraction <= 1.0:
            low = self.min_fraction
            raise InputError(f"init_fraction is {self.init_fraction!r}: it must be from min_fraction ({low!r}) to 1.")
        if not self.shrink < 1.0 < self.grow:
            raise InputError(f"shrink is {self.shrink!r} and grow {self.grow!r}: they must be below and above 1.")

    def init(self) -> ScheduleState:
        return ScheduleState(self.init_fraction)

    def update(
        self, state: ScheduleState, risk: float, violations: int, episodes: int, noise: float = 1.0, hold: bool = False
    ) -> tuple[ScheduleState, ScheduleInfo]:
        """Return the state after more episodes with the present m, and the evidence.

        ``risk`` is the target B of the violation rate, the same at every update. ``violations`` of ``episodes`` (at
        least one) had cost > limit since the last update. ``noise`` is a factor on the violation rate above which m
        shrinks, for policies that still explore. ``hold`` leaves m as it is on an alarm, and cuts A at ``run_length``.
        """
        if not 0.0 < risk < 1.0:
            raise InputError(f"risk is {risk!r}: give a violation rate between 0 and 1.")
        if not 0 <= violations <= episodes or episodes < 1:
            raise InputError(f"{violations} of {episodes} episodes cannot be violations.")
        c, a, safe = np.array(RHO), np.array(THETA), episodes - violations
        b, j = min(self.alarm * risk * noise, 1.0), state.updates + 1
        log_below = violations * np.log(c) + safe * (np.log1p(-c * risk) - np.log1p(-risk))
        log_above = violations * np.log1p(a * (1.0 - b) / b) + safe * np.log1p(-a)
        # at most exp(690), so that nothing overflows
        below = np.exp(np.minimum(np.log(state.below + 1.0 / (j * (j + 1))) + log_below, 690.0))
        above = np.exp(np.minimum(np.log(state.above + episodes) + log_above, 690.0))
        info = ScheduleInfo(float(np.array(WEIGHTS) @ below), float(above.mean()))

        delta = self.delta * (6.0 / (pi * (state.changes + 1)) ** 2 if self.spend else 1.0)
        alarm = info.shrink_evidence >= self.run_length
        m = state.fraction
        if alarm and not hold:
            m = max(m * self.shrink, self.min_fraction)
        elif info.grow_evidence >= 1.0 / delta and not alarm:
            m = min(m * self.grow, 1.0)
        if m != state.fraction:
            return ScheduleState(m, changes=state.changes + 1, alarms_at_min=state.alarms_at_min), info
        if alarm:
            above = above * (self.run_length / info.shrink_evidence if hold else 0.0)
        return ScheduleState(
            m, below, above, j, state.violations + violations, state.episodes + episodes, state.changes,
            state.alarms_at_min + int(alarm and not hold),
        ), info  # fmt: skip


@dataclass(frozen=True)
class ExplorationSchedule:
    """Schedule of the largest action standard deviation, and the test of whether the return still grows."""

    improvement_z: float = option(
        1.0, "standard errors by which a block's return must exceed the last to be growth", NON_NEGATIVE
    )
    cost_tolerance: float = option(
        0.5, "mean cost, in limits, up to which the budget of a growing policy is held", NON_NEGATIVE
    )
    std_decay: float = option(
        0.95, "factor on the largest action standard deviation after a block without growth", FRACTION
    )  # fmt: skip
    min_std: float = option(0.4, "final value of the largest action standard deviation", FRACTION)


class AllowanceState(NamedTuple):
    """State between epochs."""

    schedule: ScheduleState
    max_std: float  # largest action standard deviation
    block_cost: Array = np.zeros(0)  # episodes of the block that is being filled
    block_return: Array = np.zeros(0)
    last_return: float = -inf  # mean return of the last block
    last_variance: float = 0.0  # variance of this mean
    return_scale: float = 0.0  # R, the smoothed mean absolute return
    optimizer: Any = ()  # state of PPO's update


def limit_update(old: Params, new: Params, step_fraction: float, max_std: float) -> Params:
    """Return the policy at ``step_fraction`` of the way from ``old`` to ``new``, with std at most ``max_std``."""
    import jax

    if step_fraction < 1.0:
        new = jax.tree.map(lambda start, end: start + np.float32(step_fraction) * (end - start), old, new)
    if "log_std" not in new:
        return new
    return {**new, "log_std": np.minimum(new["log_std"], np.float32(log(max_std)))}


@dataclass(frozen=True)
class _Allowance(OnPolicyAlgorithm):
    """The method without its policy update. Abstract."""

    penalty: PenaltyConfig = group(PenaltyConfig, flat=True)
    risk: float = option(
        0.01,
        "violation rate P(cost > limit) in training that the cost budget is adapted to",
        Range(0.0, 0.99, above=True),
    )
    episodes_per_update: int = option(128, "episodes between updates of the budget and of exploration", POSITIVE)
    schedule: BudgetSchedule = group(BudgetSchedule)
    exploration: ExplorationSchedule = group(ExplorationSchedule)
    episode_filter: EpisodeFilter = option(None, EPISODE_FILTER)
    networks: NetworkConfig = group(
        lambda: NetworkConfig(init_std=2.0, lidar_powers=(4.0, 12.0, 36.0), lidar_positions=True), flat=True
    )
    advantages: AdvantageConfig = group(
        lambda: AdvantageConfig(gae_lambda=0.98, advantage_clip=3.0, saturation_coef=0.05), flat=True
    )
    critics: CriticConfig = group(CriticConfig, flat=True)

    def init(self, context: RunContext, policy: Params) -> AllowanceState:
        optimizer = self.init_optimizer(policy)
        return AllowanceState(self.schedule.init(), self.networks.init_std, optimizer=optimizer)

    def initial_messages(self, context: RunContext) -> tuple[str, ...]:
        risk, schedule = self.risk, self.schedule
        rate, noise = schedule.alarm * risk, self.networks.init_std / self._final_std
        early = f" ({_percent(min(rate * noise, 1.0))} at first, because it explores)" if noise > 1.0 else ""
        wrong = "in the whole run" if schedule.spend else "for each value of the budget"
        return (
            "Cost is penalized lightly up to a budget and heavily beyond it. The budget starts at "
            f"{_percent(schedule.init_fraction)} of the limit.",
            f"Every {self.episodes_per_update} episodes it shrinks on evidence that more than "
            f"{_percent(rate)} of the episodes exceed the limit{early}, and grows on evidence that less than "
            f"{_percent(risk)} do; {wrong}, it grows wrongly with probability at most {_percent(schedule.delta)}.",
        )

    @property
    def _final_std(self) -> float:
        return min(self.exploration.min_std, self.networks.init_std)

    def _step_fraction(self, state: AllowanceState) -> float:
        return sqrt(state.max_std / self.networks.init_std)

    def env_params(self, context: RunContext, state: AllowanceState) -> EnvParams:
        return EnvParams(state.schedule.fraction, state.return_scale)

    def safety_state(self, context: RunContext, params: EnvParams) -> SafetyState:
        """Return z: the negative accumulated cost in limits. It does not depend on m, which may change."""
        require_cost_budget(self.name, context.cost_limit)
        cap = self.penalty.cost_obs_cap
        return SafetyState(start=0.0, scale=context.cost_limit, floor=-inf if cap is None else -1.0 - cap)

    def shape_reward(self, context: RunContext, params: EnvParams, z: Array, reward: Array, cost: Array) -> Array:
        config, fraction = self.penalty, params.cost_budget_fraction
        least = config.min_penalty_fraction / context.cost_limit
        penalty = max(config.penalty, least * params.return_scale) / fraction**2 * cost
        within = reward - config.inner_penalty_ratio * penalty
        return np.where(z > -fraction, within, config.over_budget_reward_weight * reward - penalty)

    def decide(self, context: RunContext, state: AllowanceState, episodes: Episodes) -> Decision:
        """Maximize the penalized reward; after a full block, update m and exploration."""
        state = state._replace(
            block_cost=np.concatenate([state.block_cost, np.maximum(episodes.cost, 0.0)]),
            block_return=np.concatenate([state.block_return, episodes.ret]),
        )
        if len(episodes.ret):
            size = float(np.abs(episodes.ret).mean())
            smoothed = size if state.return_scale == 0.0 else 0.9 * state.return_scale + 0.1 * size
            state = state._replace(return_scale=smoothed)
        messages: tuple[str, ...] = ()
        evidence: Metrics = {"GrowEvidence": nan, "ShrinkEvidence": nan, "ReturnGrows": nan}
        if len(state.block_cost) >= self.episodes_per_update:
            state, evidence, messages = self._end_block(state, context.cost_limit)
        schedule = state.schedule
        return state, gate_output(
            Mode.IMPROVE, episodes, messages=messages, **evidence, Budget=self.risk, BudgetFraction=schedule.fraction,
            BudgetViolationRate=schedule.violations / schedule.episodes if schedule.episodes else nan,
            BudgetEpisodes=float(schedule.episodes), AlarmsAtMin=float(schedule.alarms_at_min), MaxStd=state.max_std,
            StepFraction=self._step_fraction(state), ReturnScale=state.return_scale,
        )  # fmt: skip

    def _end_block(self, state: AllowanceState, limit: float) -> tuple[AllowanceState, Metrics, tuple[str, ...]]:
        """Return the state after a full block, metrics and messages."""
        exploration = self.exploration
        cost, returns = state.block_cost, state.block_return
        mean, variance = float(returns.mean()), float(returns.var()) / len(returns)
        grows = mean - state.last_return > exploration.improvement_z * sqrt(variance + state.last_variance)
        schedule, info = self.schedule.update(
            state.schedule, self.risk, violations=int((cost > limit).sum()), episodes=len(cost),
            noise=state.max_std / self._final_std,
            hold=grows and float(cost.mean()) <= exploration.cost_tolerance * limit,
        )  # fmt: skip
        messages: tuple[str, ...] = ()
        if schedule.alarms_at_min > state.schedule.alarms_at_min and schedule.alarms_at_min % 10 == 1:
            messages = (
                f"The violation rate is above {_percent(self.schedule.alarm * self.risk)} although the cost budget is "
                f"at its minimum, {_percent(schedule.fraction)} of the limit (alarm {schedule.alarms_at_min}, "
                f"{schedule.violations} of {schedule.episodes} episodes): accept a larger --risk or raise --penalty.",
            )
        state = state._replace(
            schedule=schedule,
            max_std=state.max_std if grows else max(state.max_std * exploration.std_decay, self._final_std),
            block_cost=np.zeros(0), block_return=np.zeros(0), last_return=mean, last_variance=variance,
        )  # fmt: skip
        evidence = {"GrowEvidence": info.grow_evidence, "ShrinkEvidence": info.shrink_evidence}
        return state, {**evidence, "ReturnGrows": float(grows)}, messages

    def update(self, context: RunContext, state: Any, policy: Params, batch: Batch, objective: Objective) -> Update:
        state, updated, metrics = super().update(context, state, policy, batch, objective)  # type: ignore[safe-super]
        return state, limit_update(policy, updated, self._step_fraction(state), state.max_std), metrics


def _percent(number: float) -> str:
    return f"{100.0 * number:.3g} %"


@dataclass(frozen=True)
class Allowance(_Allowance, TrustRegionAlgorithm):
    """The allowance with the trust-region update."""

    info = MethodInfo(
        "allowance",
        "penalize cost lightly below an adaptive budget and heavily above it; an anytime-valid test of the "
        "violation rate adapts the budget",
        "our own method, without a paper: docs/allowance.md",
        "there is no published code",
        constraint="violation rate, by an anytime-valid test", update="trust region",
        inputs="accumulated cost, lidar features", order=210, color="#c2187a",
    )  # fmt: skip


@dataclass(frozen=True)
class AllowancePPO(_Allowance, MinibatchAlgorithm):
    """The allowance with PPO's update."""

    info = replace(
        Allowance.info, name="allowance-ppo", summary="the allowance with PPO's update", update="PPO", order=205,
        color="#e58fc0",
    )  # fmt: skip
    ppo: PPOConfig = group(lambda: PPOConfig(epochs=10, batch_size=256, lr=5e-4))
