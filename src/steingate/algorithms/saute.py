"""Sauté (Sootla et al., ICML 2022) and Simmer (NeurIPS 2022): reward while some of the cost budget is left.

The policy observes the part of the cost budget that is left and learns from a constant reward once it is spent:

    z_0 = m,   z_{t+1} = (z_t - c_t / B) / discount        B = limit * mean(1, discount, discount^2, ...)
    r_t                if z_{t+1} > 0
    unsafe_reward      otherwise

Sauté has m = 1. Simmer controls m: a PI controller moves the budget towards the mean cost of the policy, so that
the budget tightens while the policy exceeds it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from steingate.algorithms.base import (
    Array,
    Decision,
    EnvParams,
    Episodes,
    MethodInfo,
    Mode,
    OnPolicyAlgorithm,
    Params,
    RunContext,
    TrustRegionAlgorithm,
)
from steingate.algorithms.common.episodes import append_window, gate_output
from steingate.algorithms.config import EPISODE_FILTER, EpisodeFilter, LineSearchConfig, Variant
from steingate.algorithms.ppo import MinibatchAlgorithm, OptimizerState
from steingate.errors import InputError
from steingate.policies.safety_state import SafetyState
from steingate.settings import FRACTION, NON_NEGATIVE, POSITIVE, UNIT, group, option


def require_cost_budget(name: str, limit: float) -> None:
    """Refuse a limit of 0 for an algorithm whose policy spends a cost budget."""
    if not limit > 0.0:
        raise InputError(
            f"{name} spends a cost budget, and a cost_limit of {limit:g} leaves none; for costs in whole numbers "
            "a cost_limit of 0.5 means the same."
        )


@dataclass(frozen=True)
class ControllerConfig:
    """Simmer's PID controller of the budget; the error is smoothed first."""

    kp: float = option(5e-4, "proportional gain", NON_NEGATIVE)
    ki: float = option(1e-5, "integral gain", NON_NEGATIVE)
    kd: float = option(0.0, "derivative gain", NON_NEGATIVE)
    smoothing: float = option(0.995, "exponential smoothing of the error", UNIT)
    memory: int = option(10, "number of smoothed errors in the integral", POSITIVE)
    max_change: float = option(1.0, "largest change of the budget in one epoch", POSITIVE)


class SimmerState(NamedTuple):
    """Recent costs, the discounted budget, smoothed errors, the last action before and after clipping."""

    costs: Array
    budget: float
    errors: Array
    action: float = 0.0
    applied: float = 0.0
    optimizer: Any = ()


@dataclass(frozen=True)
class _Saute(OnPolicyAlgorithm):
    """Safety state and reward of all variants. Abstract."""

    budget_discount: float = option(0.999, "discount of the cost budget", FRACTION)
    unsafe_reward: float = option(-1.0, "reward once the budget is spent")

    @classmethod
    def published_options(cls, task: str, variant: Variant) -> Mapping[str, Any]:
        """Return the options that were published for the navigation tasks."""
        if not re.fullmatch(r"Safety(Point|Car)(Goal|Circle)[12]-v0", task):
            return {}
        options: dict[str, Any] = {"budget_discount": 0.9999, "unsafe_reward": -0.2}
        if issubclass(cls, MinibatchAlgorithm):
            options |= {"ppo.epochs": 80} | ({"normalize_obs": False} if "Goal" in task else {})
        return options

    def mean_discount(self, context: RunContext) -> float:
        """Return the mean of 1, discount, discount^2, ... over an episode of the task, or over 1000 steps as published.

        The limit times this is B, the discounted cost of an episode that spends the limit evenly.
        """
        discount, length = self.budget_discount, 1000 if self.is_published else context.episode_length
        return 1.0 if discount == 1.0 else (1.0 - discount**length) / ((1.0 - discount) * length)

    def init(self, context: RunContext, policy: Params) -> Any:
        return OptimizerState(self.init_optimizer(policy))

    def decide(self, context: RunContext, state: Any, episodes: Episodes) -> Decision:
        return state, gate_output(Mode.IMPROVE, episodes, Fallback=0.0)

    def safety_state(self, context: RunContext, params: EnvParams) -> SafetyState:
        """Return the cost budget that is left.

        Published code shows a full budget in the last observation of a truncated episode. Published Simmer
        also divides costs by the controlled budget and starts all episodes but the first of an epoch with a
        full one.
        """
        require_cost_budget(self.name, context.cost_limit)
        published, fraction = self.is_published, params.cost_budget_fraction
        budget = context.cost_limit * self.mean_discount(context)
        return SafetyState(
            start=fraction, scale=budget * fraction if published else budget, discount=self.budget_discount,
            restart=1.0 if published else None, final_shows_restart=published,
        )  # fmt: skip

    def shape_reward(self, context: RunContext, params: EnvParams, z: Array, reward: Array, cost: Array) -> Array:
        return np.where(z > 0.0, reward, self.unsafe_reward)


@dataclass(frozen=True)
class _Simmer(_Saute):
    """Sauté with a controlled budget. Abstract."""

    episode_filter: EpisodeFilter = option(None, EPISODE_FILTER)
    controller: ControllerConfig = group(ControllerConfig)

    def init(self, context: RunContext, policy: Params) -> SimmerState:
        full = context.cost_limit * self.mean_discount(context)
        return SimmerState(np.zeros(0), full, np.zeros(0), optimizer=self.init_optimizer(policy))

    def env_params(self, context: RunContext, state: SimmerState) -> EnvParams:
        return EnvParams(state.budget / (context.cost_limit * self.mean_discount(context)))

    def decide(self, context: RunContext, state: SimmerState, episodes: Episodes) -> Decision:
        """Move the budget towards the mean cost of the last ``window`` episodes.

        The budget stays until the first episode has finished. ``Gate/CostBudget`` is undiscounted.
        """
        costs = append_window(state.costs, episodes.cost, context.window)
        mean = float(costs.mean()) if len(costs) else context.cost_limit
        state, scale = state._replace(costs=costs), self.mean_discount(context)
        if len(costs):
            state = control_budget(state, mean * scale, context.cost_limit * scale, self.controller)
        return state, gate_output(Mode.IMPROVE, episodes, MeanCost=mean, CostBudget=state.budget / scale)


def control_budget(state: SimmerState, cost: float, upper: float, gains: ControllerConfig) -> SimmerState:
    """Return the state after one step of the controller; ``cost`` and the bound ``upper`` are discounted."""
    before = float(state.errors[-1]) if len(state.errors) else 0.0
    error = gains.smoothing * before + (1.0 - gains.smoothing) * (state.budget - cost)
    errors = append_window(state.errors, np.array([error]), gains.memory)
    derivative = state.applied - state.action
    action = gains.kp * error + gains.ki * float(errors.sum()) + gains.kd * derivative
    change = min(max(action, -gains.max_change), gains.max_change)
    budget = min(max(state.budget + change, 1e-6), upper)
    return state._replace(budget=budget, errors=errors, action=action, applied=budget - state.budget)


@dataclass(frozen=True)
class TRPOSaute(_Saute, TrustRegionAlgorithm):
    """Sauté with TRPO's update."""

    info = MethodInfo(
        "trpo-saute",
        "maximize reward while some of the observed cost budget is left, by TRPO",
        "Saute RL (Sootla et al., ICML 2022)",
        "shows a full budget in the last observation of an episode that its time limit ends, and discounts the "
        "budget over 1000 steps for every task",
        "shows the budget that is left, and uses the task's episode length",
        constraint="cost budget of an episode", update="trust region", inputs="remaining budget", order=90,
        color="#8a63a6",
    )  # fmt: skip
    line_search: LineSearchConfig = group(lambda: LineSearchConfig(backtrack_iters=15), flat=True)


@dataclass(frozen=True)
class PPOSaute(_Saute, MinibatchAlgorithm):
    """Sauté with PPO's update."""

    info = replace(
        TRPOSaute.info, name="ppo-saute", update="PPO", order=100, color="#b79fce",
        summary="maximize reward while some of the observed cost budget is left, by PPO",
    )  # fmt: skip


@dataclass(frozen=True)
class TRPOSimmer(_Simmer, TrustRegionAlgorithm):
    """Simmer with TRPO's update."""

    info = MethodInfo(
        "trpo-simmer",
        "Saute with a budget that follows the mean cost, by TRPO",
        "Enhancing Safe Exploration Using Safety State Augmentation (Sootla et al., NeurIPS 2022)",
        "as Saute; also divides costs by the controlled budget and starts every episode but the first of an "
        "epoch with a full one",
        "as Saute; divides by the full budget and starts every episode with the controlled fraction",
        constraint="controlled cost budget of an episode", update="trust region", inputs="remaining budget", order=110,
        color="#c7683c",
    )  # fmt: skip
    line_search: LineSearchConfig = group(lambda: LineSearchConfig(backtrack_iters=15), flat=True)


@dataclass(frozen=True)
class PPOSimmer(_Simmer, MinibatchAlgorithm):
    """Simmer with PPO's update."""

    info = replace(
        TRPOSimmer.info, name="ppo-simmer", summary="Saute with a budget that follows the mean cost, by PPO",
        published=TRPOSimmer.info.published + "; lacks its own settings on CarCircle1",
        corrected=TRPOSimmer.info.corrected + ", with PointCircle1's settings on CarCircle1",
        update="PPO", order=120, color="#e3a27f",
    )  # fmt: skip

    @classmethod
    def published_options(cls, task: str, variant: Variant) -> Mapping[str, Any]:
        """Return the options that were published for the navigation tasks; those of CarCircle1 were missing."""
        missing = variant == "published" and task == "SafetyCarCircle1-v0"
        return {} if missing else super().published_options(task, variant)
