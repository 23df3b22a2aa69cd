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
from math import inf
from typing import Any, NamedTuple, Self

import numpy as np

from steingate.algorithms.base import (
    Array,
    EnvParams,
    Episodes,
    GateOutput,
    MethodInfo,
    Mode,
    Objective,
    OnPolicyAlgorithm,
    Params,
    RunContext,
    TrustRegionAlgorithm,
)
from steingate.algorithms.common.episodes import append_window, gate_metrics, maximize_reward
from steingate.algorithms.config import EPISODE_FILTER, EpisodeFilter, LineSearchConfig, Variant
from steingate.algorithms.ppo import MinibatchAlgorithm
from steingate.errors import InputError, require_between, require_positive
from steingate.policies.safety_state import SafetyState
from steingate.settings import group, option

_GOAL, _CIRCLE = r"Safety(Point|Car)Goal[12]-v0", r"Safety(Point|Car)Circle[12]-v0"
_NAVIGATION = {"budget_discount": 0.9999, "unsafe_reward": -0.2}  # published for the navigation tasks


def require_cost_budget(name: str, limit: float) -> None:
    """Refuse a limit of 0 for an algorithm whose policy spends a cost budget."""
    if not limit > 0.0:
        raise InputError(
            f"{name} spends a cost budget, and a cost_limit of {limit:g} leaves none; for costs in whole numbers "
            "a cost_limit of 0.5 means the same."
        )


def mean_discount(discount: float, length: int) -> float:
    """Return the mean of 1, discount, discount^2, ... over ``length`` steps.

    The limit times this is the discounted cost of an episode that spends the limit evenly.
    """
    if discount == 1.0:
        return 1.0
    return float((1.0 - discount**length) / ((1.0 - discount) * length))


@dataclass(frozen=True)
class BudgetConfig:
    """Cost budget of Sauté and Simmer."""

    budget_discount: float = option(0.999, "discount of the cost budget")
    unsafe_reward: float = option(-1.0, "reward once the budget is spent")
    budget_length: int | None = option(
        None, "steps over which the budget is discounted; none takes the task's episode length"
    )

    def __post_init__(self) -> None:
        require_positive(self, "budget_discount")
        require_between(self, 0.0, 1.0, "budget_discount")
        if self.budget_length is not None:
            require_positive(self, "budget_length")

    def resolve(self, episode_length: int, published: bool) -> "BudgetConfig":
        """Return the budget with its length: that of the task, or 1000 as published."""
        length = self.budget_length or (1000 if published else episode_length)
        return replace(self, budget_length=length)

    def budget(self, context: RunContext, published: bool) -> float:
        """Return B, the discounted budget of an episode."""
        length = self.resolve(context.episode_length, published).budget_length
        return context.cost_limit * mean_discount(self.budget_discount, length or context.episode_length)


@dataclass(frozen=True)
class ControllerConfig:
    """Simmer's PID controller of the budget; the error is smoothed first."""

    kp: float = option(5e-4, "proportional gain")
    ki: float = option(1e-5, "integral gain")
    kd: float = option(0.0, "derivative gain")
    smoothing: float = option(0.995, "exponential smoothing of the error")
    memory: int = option(10, "number of smoothed errors in the integral")
    max_change: float = option(1.0, "largest change of the budget in one epoch")

    def __post_init__(self) -> None:
        require_between(self, 0.0, inf, "kp", "ki", "kd")
        require_between(self, 0.0, 1.0, "smoothing")
        require_positive(self, "memory", "max_change")


class SimmerState(NamedTuple):
    """Recent costs, the discounted budget, smoothed errors, the last action before and after clipping."""

    costs: Array
    budget: float
    errors: Array
    action: float = 0.0
    applied: float = 0.0
    optimizer: Any = ()


class SauteState(NamedTuple):
    """State of Sauté: the optimizer of a minibatch update."""

    optimizer: Any = ()


@dataclass(frozen=True)
class _Saute(OnPolicyAlgorithm):
    """Safety state and reward of all variants. Abstract."""

    budget: BudgetConfig = group(BudgetConfig, flat=True)

    def resolve(self, episode_length: int) -> Self:
        """Return the algorithm with the length of the budget."""
        budget = self.budget.resolve(episode_length, self.is_published)
        return replace(self, budget=budget)  # type: ignore[type-var]

    def init(self, context: RunContext, policy: Params) -> Any:
        """Return the state before the first epoch."""
        return SauteState(self.init_optimizer(policy))

    def decide(self, context: RunContext, state: Any, episodes: Episodes) -> tuple[Any, GateOutput]:
        """Maximize the shaped reward."""
        return state, maximize_reward(episodes)

    def safety_state(self, context: RunContext, params: EnvParams) -> SafetyState:
        """Return the cost budget that is left.

        Published code shows a full budget in the last observation of a truncated episode. Published Simmer
        also divides costs by the controlled budget and starts all episodes but the first of an epoch with a
        full one.
        """
        published = self.is_published
        require_cost_budget(self.name, context.cost_limit)
        budget = self.budget.budget(context, published)
        fraction = params.cost_budget_fraction
        return SafetyState(
            start=fraction, scale=budget * fraction if published else budget, discount=self.budget.budget_discount,
            restart=1.0 if published else None, final_shows_restart=published,
        )  # fmt: skip

    def shape_reward(self, context: RunContext, params: EnvParams, z: Array, reward: Array, cost: Array) -> Array:
        """Return the reward while z > 0, and ``unsafe_reward`` afterwards."""
        return np.where(z > 0.0, reward, self.budget.unsafe_reward)


@dataclass(frozen=True)
class _Simmer(_Saute):
    """Sauté with a controlled budget. Abstract."""

    episode_filter: EpisodeFilter = option(None, EPISODE_FILTER)
    controller: ControllerConfig = group(ControllerConfig)

    def init(self, context: RunContext, policy: Params) -> SimmerState:
        """Return the state before the first epoch, with the full budget."""
        full = self.budget.budget(context, self.is_published)
        return SimmerState(np.zeros(0), full, np.zeros(0), optimizer=self.init_optimizer(policy))

    def env_params(self, context: RunContext, state: SimmerState) -> EnvParams:
        """Return the controlled fraction of the budget."""
        return EnvParams(state.budget / self.budget.budget(context, self.is_published))

    def decide(self, context: RunContext, state: SimmerState, episodes: Episodes) -> tuple[SimmerState, GateOutput]:
        """Move the budget towards the mean cost of the last ``window`` episodes.

        The budget stays until the first episode has finished. ``Gate/CostBudget`` is undiscounted.
        """
        costs = append_window(state.costs, episodes.cost, context.window)
        mean = float(costs.mean()) if len(costs) else context.cost_limit
        state = state._replace(costs=costs)
        length = self.budget.resolve(context.episode_length, self.is_published).budget_length
        scale = mean_discount(self.budget.budget_discount, length or context.episode_length)
        if len(costs):
            state = control_budget(state, mean * scale, context.cost_limit * scale, self.controller)
        metrics = gate_metrics(Mode.IMPROVE, episodes, MeanCost=mean, CostBudget=state.budget / scale)
        return state, GateOutput(Objective(Mode.IMPROVE), metrics)


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


def _ppo_options(task: str) -> Mapping[str, Any]:
    """Return the options that were published for PPO on a task."""
    if re.fullmatch(_GOAL, task):
        return {**_NAVIGATION, "ppo.epochs": 80, "normalize_obs": False}
    return {**_NAVIGATION, "ppo.epochs": 80} if re.fullmatch(_CIRCLE, task) else {}


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

    @classmethod
    def published_options(cls, task: str, variant: Variant) -> Mapping[str, Any]:
        """Return the budget that was published for the navigation tasks."""
        return _NAVIGATION if re.fullmatch(f"{_GOAL}|{_CIRCLE}", task) else {}


@dataclass(frozen=True)
class PPOSaute(_Saute, MinibatchAlgorithm):
    """Sauté with PPO's update."""

    info = replace(
        TRPOSaute.info, name="ppo-saute", update="PPO", order=100, color="#b79fce",
        summary="maximize reward while some of the observed cost budget is left, by PPO",
    )  # fmt: skip

    @classmethod
    def published_options(cls, task: str, variant: Variant) -> Mapping[str, Any]:
        """Return the options that were published for the navigation tasks."""
        return _ppo_options(task)


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

    @classmethod
    def published_options(cls, task: str, variant: Variant) -> Mapping[str, Any]:
        """Return the budget that was published for the navigation tasks."""
        return TRPOSaute.published_options(task, variant)


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
        return {} if missing else _ppo_options(task)
