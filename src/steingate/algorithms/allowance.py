"""The allowance: costs are penalized lightly below an adaptive budget and heavily above it. The default algorithm.

With the limit d, the cost c_t of a step and the accumulated cost C_t, the policy observes

    z_t = -min(C_t / d, 1 + cost_obs_cap)

and learns from the reward

    r_t - inner_penalty_ratio q c_t          while C_t < m d
    over_budget_reward_weight r_t - q c_t    once  C_t >= m d
    q = max(penalty, min_penalty_fraction R / d) / m^2

R is the mean absolute episode return, smoothed over about ten epochs. The budget fraction m follows the violation rate
in blocks of ``episodes_per_update`` episodes:

    shrink    if more than ``risk`` of a block violate the limit; not while the return still grows and the mean
              cost is below ``cost_tolerance`` limits, nor, while exploration is k times its final value, below
              k times ``risk``
    grow      if ``certify`` certifies ``risk`` on all blocks since the last change or the last bad block

A block without growth of the return also lowers the largest action standard deviation, from ``init_std`` to
``min_std``, and with its square root the size of the policy update.
"""

from dataclasses import dataclass
from math import inf, log, nan, sqrt
from typing import Any, NamedTuple

import numpy as np

from steingate.algorithms.base import (
    Array,
    Batch,
    EnvParams,
    Episodes,
    GateOutput,
    MethodInfo,
    Metrics,
    MinibatchAlgorithm,
    Mode,
    Objective,
    OnPolicyAlgorithm,
    Params,
    RunContext,
    TrustRegionAlgorithm,
)
from steingate.algorithms.common.episodes import gate_metrics
from steingate.algorithms.config import (
    EPISODE_FILTER,
    VARIANT,
    AdvantageConfig,
    CriticConfig,
    EpisodeFilter,
    LineSearchConfig,
    NetworkConfig,
    PPOConfig,
    TrustRegionConfig,
    Variant,
)
from steingate.algorithms.saute import require_cost_budget
from steingate.certificates.violation import certify
from steingate.errors import InputError, require_between, require_positive
from steingate.policies.safety_state import SafetyState
from steingate.settings import group, option


@dataclass(frozen=True)
class PenaltyConfig:
    """Reward and cost observation."""

    penalty: float = option(0.1, "penalty per unit of cost beyond the budget, at m = 1")
    min_penalty_fraction: float = option(0.05, "smallest penalty of one limit of cost, as a fraction of the return")
    inner_penalty_ratio: float = option(0.25, "penalty within the budget relative to beyond it")
    over_budget_reward_weight: float = option(1.0, "weight of the reward beyond the budget")
    cost_obs_cap: float | None = option(
        0.5, "upper bound of the cost observation, in limits beyond the first; none: unbounded"
    )

    def __post_init__(self) -> None:
        require_positive(self, "penalty")
        require_between(self, 0.0, 1.0, "inner_penalty_ratio", "over_budget_reward_weight")
        require_between(self, 0.0, inf, "min_penalty_fraction")
        if self.cost_obs_cap is not None:
            require_between(self, 0.0, inf, "cost_obs_cap")


@dataclass(frozen=True)
class BudgetSchedule:
    """Schedule of the budget fraction m, which stays in [``min_fraction``, 1], and of exploration."""

    init_fraction: float = option(0.6, "initial budget fraction")
    min_fraction: float = option(0.1, "smallest budget fraction; below it the penalty outweighs the reward")
    shrink: float = option(0.94, "factor after a block with too many violations")
    grow: float = option(1.05, "factor after a certificate")
    grow_late: float = option(1.02, "factor after a certificate once exploration has ended")
    episodes_per_update: int = option(128, "episodes of a block")
    improvement_z: float = option(1.0, "standard errors by which a block's return must exceed the last to be growth")
    cost_tolerance: float = option(0.5, "mean cost, in limits, up to which a growing policy is not tightened")
    std_decay: float = option(0.95, "factor on the largest action standard deviation after a block without growth")
    min_std: float = option(0.4, "final value of the largest action standard deviation")

    def __post_init__(self) -> None:
        require_positive(self, "init_fraction", "min_fraction", "shrink", "grow", "grow_late")
        require_positive(self, "episodes_per_update", "std_decay", "min_std")
        require_between(self, 0.0, inf, "improvement_z", "cost_tolerance")
        require_between(self, 0.0, 1.0, "std_decay", "min_std")
        if not self.min_fraction <= self.init_fraction <= 1.0:
            raise InputError(
                f"init_fraction is {self.init_fraction!r}: it must be between min_fraction ({self.min_fraction!r}) "
                "and 1."
            )
        if not self.shrink < 1.0 < min(self.grow, self.grow_late):
            raise InputError(
                f"shrink is {self.shrink!r}, grow {self.grow!r} and grow_late {self.grow_late!r}: shrink must be "
                "below 1, the others above."
            )


class AllowanceState(NamedTuple):
    """State between epochs.

    fraction
        Budget fraction m.
    costs
        Episode costs of the blocks since the last change of m, or the last block with too many violations.
    block_cost, block_return
        Episodes of the block that is being filled.
    last_return, last_variance
        Mean return of the last block, and the variance of this mean.
    max_std
        Largest action standard deviation.
    return_scale
        R, the smoothed mean absolute return.
    optimizer
        State of PPO's update.
    """

    fraction: float
    max_std: float
    costs: Array = np.zeros(0)
    block_cost: Array = np.zeros(0)
    block_return: Array = np.zeros(0)
    last_return: float = -inf
    last_variance: float = 0.0
    return_scale: float = 0.0
    optimizer: Any = ()


def update_schedule(
    state: AllowanceState, schedule: BudgetSchedule, limit: float, risk: float, init_std: float
) -> tuple[AllowanceState, Metrics]:
    """Return the state after a full block, and metrics."""
    final_std = min(schedule.min_std, init_std)
    cost, returns = state.block_cost, state.block_return
    mean, variance = float(returns.mean()), float(returns.var()) / len(returns)
    error = sqrt(variance + state.last_variance)
    grows = mean - state.last_return > schedule.improvement_z * error
    tolerated = grows and float(cost.mean()) <= schedule.cost_tolerance * limit
    rate = certify(cost, limit, risk).violation_rate
    costs = np.concatenate([state.costs, cost]) if rate <= risk else cost
    certificate = certify(costs, limit, risk)
    fraction, costs = state.fraction, costs if rate <= risk else np.zeros(0)
    if rate > risk * (state.max_std / final_std) and not tolerated:
        fraction = max(fraction * schedule.shrink, schedule.min_fraction)
    elif rate <= risk and certificate.certified:
        factor = schedule.grow if state.max_std > final_std else schedule.grow_late
        fraction, costs = min(fraction * factor, 1.0), np.zeros(0)
    state = state._replace(
        fraction=fraction,
        max_std=state.max_std if grows else max(state.max_std * schedule.std_decay, final_std),
        costs=costs,
        block_cost=np.zeros(0),
        block_return=np.zeros(0),
        last_return=mean,
        last_variance=variance,
    )
    bound = certificate.bound
    return state, {"Gate/Bound": bound, "Gate/ViolationRate": rate, "Gate/ReturnGrows": float(grows)}


def limit_update(old: Params, new: Params, step_fraction: float, max_std: float) -> Params:
    """Return the policy at ``step_fraction`` of the way from ``old`` to ``new``, with std at most ``max_std``."""
    if step_fraction < 1.0:
        new = _interpolate(old, new, np.float32(step_fraction))
    if max_std == inf or "log_std" not in new:
        return new
    return {**new, "log_std": np.minimum(np.asarray(new["log_std"]), np.float32(log(max_std)))}


def _interpolate(old: Any, new: Any, fraction: np.float32) -> Any:
    if isinstance(new, dict):
        return {name: _interpolate(old[name], value, fraction) for name, value in new.items()}
    if isinstance(new, tuple | list):
        return type(new)(_interpolate(a, b, fraction) for a, b in zip(old, new, strict=True))
    start = np.asarray(old)
    return start + fraction * (np.asarray(new) - start)


class _Allowance(OnPolicyAlgorithm):
    """What both updates share. Abstract."""

    penalty: PenaltyConfig
    schedule: BudgetSchedule
    risk: float

    def __post_init__(self) -> None:
        super().__post_init__()
        require_between(self, 0.0, 1.0, "risk")

    def init(self, context: RunContext, policy: Params) -> AllowanceState:
        """Return the state before the first epoch."""
        del context
        optimizer = self.init_optimizer(policy)
        return AllowanceState(self.schedule.init_fraction, self.networks.init_std, optimizer=optimizer)

    def env_params(self, context: RunContext, state: AllowanceState) -> EnvParams:
        """Return the budget fraction m and the return scale R."""
        del context
        return EnvParams(state.fraction, state.return_scale)

    def safety_state(self, context: RunContext, params: EnvParams) -> SafetyState:
        """Return z: the negative accumulated cost in limits. It does not depend on m, which may change."""
        del params
        require_cost_budget(self.name, context.cost_limit)
        cap = self.penalty.cost_obs_cap
        return SafetyState(start=0.0, scale=context.cost_limit, floor=-inf if cap is None else -1.0 - cap)

    def shape_reward(self, context: RunContext, params: EnvParams, z: Array, reward: Array, cost: Array) -> Array:
        """Return the penalized reward of the module's equations."""
        config, fraction = self.penalty, params.cost_budget_fraction
        least = config.min_penalty_fraction / context.cost_limit
        penalty = max(config.penalty, least * params.return_scale) / fraction**2 * cost
        within = reward - config.inner_penalty_ratio * penalty
        return np.where(z > -fraction, within, config.over_budget_reward_weight * reward - penalty)

    def decide(
        self, context: RunContext, state: AllowanceState, episodes: Episodes
    ) -> tuple[AllowanceState, GateOutput]:
        """Maximize the penalized reward; after a full block, update m and exploration."""
        state = state._replace(
            block_cost=np.concatenate([state.block_cost, np.maximum(episodes.cost, 0.0)]),
            block_return=np.concatenate([state.block_return, episodes.ret]),
        )
        if len(episodes.ret):
            size = float(np.abs(episodes.ret).mean())
            smoothed = size if state.return_scale == 0.0 else 0.9 * state.return_scale + 0.1 * size
            state = state._replace(return_scale=smoothed)
        block: Metrics = {"Gate/Bound": nan, "Gate/ViolationRate": nan, "Gate/ReturnGrows": nan}
        init_std = self.networks.init_std
        if len(state.block_cost) >= self.schedule.episodes_per_update:
            state, block = update_schedule(state, self.schedule, context.cost_limit, self.risk, init_std)
        metrics = block | gate_metrics(
            Mode.IMPROVE,
            episodes,
            Budget=self.risk,
            BudgetFraction=state.fraction,
            MaxStd=state.max_std,
            StepFraction=sqrt(state.max_std / init_std),
            ReturnScale=state.return_scale,
            PendingEpisodes=float(len(state.costs) + len(state.block_cost)),
        )
        return state, GateOutput(Objective(Mode.IMPROVE), metrics)

    def update(
        self, context: RunContext, state: AllowanceState, policy: Params, batch: Batch, objective: Objective
    ) -> tuple[AllowanceState, Params, Metrics]:
        """Update the policy, with the step fraction and the largest standard deviation of the schedule."""
        state, updated, metrics = super().update(context, state, policy, batch, objective)  # type: ignore[safe-super]
        step_fraction = sqrt(state.max_std / self.networks.init_std)
        return state, limit_update(policy, updated, step_fraction, state.max_std), metrics


def allowance_networks() -> NetworkConfig:
    """Return the allowance's networks: lidar features, and wide initial exploration."""
    return NetworkConfig(init_std=2.0, lidar_powers=(4.0, 12.0, 36.0), lidar_positions=True)


def allowance_advantages() -> AdvantageConfig:
    """Return the allowance's advantages: a larger lambda, clipping, and the penalty on saturated policies."""
    return AdvantageConfig(gae_lambda=0.98, advantage_clip=3.0, saturation_coef=0.05)


@dataclass(frozen=True)
class Allowance(_Allowance, TrustRegionAlgorithm):
    """The allowance with the trust-region update."""

    info = MethodInfo(
        "allowance",
        "penalize cost lightly below an adaptive budget and heavily above it; a certificate on the violation rate "
        "adapts the budget",
        "our own method, without a paper: docs/allowance.md",
        "there is no published code",
        constraint="violation rate, by a certificate",
        update="trust region",
        inputs="accumulated cost, lidar features",
        order=210,
        color="#c2187a",
    )
    variant: Variant = option("corrected", VARIANT)
    penalty: PenaltyConfig = group(PenaltyConfig, flat=True)
    schedule: BudgetSchedule = group(BudgetSchedule)
    risk: float = option(0.015, "violation rate P(cost > limit) that the budget is adapted to")
    episode_filter: EpisodeFilter = option(None, EPISODE_FILTER)
    networks: NetworkConfig = group(allowance_networks, flat=True)
    advantages: AdvantageConfig = group(allowance_advantages, flat=True)
    critics: CriticConfig = group(CriticConfig, flat=True)
    trust_region: TrustRegionConfig = group(TrustRegionConfig, flat=True)
    line_search: LineSearchConfig = group(LineSearchConfig, flat=True)


@dataclass(frozen=True)
class AllowancePPO(_Allowance, MinibatchAlgorithm):
    """The allowance with PPO's update."""

    info = MethodInfo(
        "allowance-ppo",
        "the allowance with PPO's update",
        "our own method, without a paper: docs/allowance.md",
        "there is no published code",
        constraint="violation rate, by a certificate",
        update="PPO",
        inputs="accumulated cost, lidar features",
        order=205,
        color="#e58fc0",
    )
    variant: Variant = option("corrected", VARIANT)
    penalty: PenaltyConfig = group(PenaltyConfig, flat=True)
    schedule: BudgetSchedule = group(BudgetSchedule)
    risk: float = option(0.015, "violation rate P(cost > limit) that the budget is adapted to")
    episode_filter: EpisodeFilter = option(None, EPISODE_FILTER)
    networks: NetworkConfig = group(allowance_networks, flat=True)
    advantages: AdvantageConfig = group(allowance_advantages, flat=True)
    critics: CriticConfig = group(CriticConfig, flat=True)
    ppo: PPOConfig = group(lambda: PPOConfig(epochs=10, batch_size=256, lr=5e-4))
