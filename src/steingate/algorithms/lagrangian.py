"""Lagrangian methods: maximize reward - lambda * cost, with a multiplier lambda >= 0 that follows the violation.

    lambda <- lambda + lr * (mean cost - limit)       dual ascent, with Adam's step size; or a PID controller

The mean is over the last ``window`` episodes. The policy update uses the advantage (A_r - lambda A_c) / (1 + lambda):
TRPO's update in ``trpo-lag``, PPO's in ``ppo-lag``, and a full natural-gradient step in ``rcpo``. FOCOPS and CUP share
the multiplier.
"""

from dataclasses import dataclass, fields, replace
from math import inf, sqrt
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from steingate.algorithms.base import (
    Array,
    ConstrainedAlgorithm,
    Decision,
    Episodes,
    MethodInfo,
    Mode,
    Params,
    RunContext,
    TrustRegionAlgorithm,
)
from steingate.algorithms.common.episodes import RecentEpisodes, append_window, gate_output
from steingate.algorithms.config import LineSearchConfig
from steingate.algorithms.ppo import MinibatchAlgorithm
from steingate.errors import InputError
from steingate.settings import NON_NEGATIVE, POSITIVE, UNIT, group, option


class AdamMultiplier(NamedTuple):
    """State of dual ascent: multiplier, number of updates, Adam's moments of the gradient."""

    value: float
    updates: int = 0
    first: float = 0.0
    second: float = 0.0


class PIDMultiplier(NamedTuple):
    """State of the PID controller: multiplier, integral, smoothed violation and cost, earlier smoothed costs."""

    value: float
    integral: float
    violation: float
    cost: float
    earlier_costs: Array


@dataclass(frozen=True)
class AdamConfig:
    """Gradient ascent on multiplier * (mean cost - limit) by Adam."""

    lr: float = option(0.035, "learning rate of the multiplier", POSITIVE)
    init: float = option(0.001, "initial multiplier", NON_NEGATIVE)
    upper_bound: float = option(inf, "largest multiplier", POSITIVE)

    def start(self) -> AdamMultiplier:
        """Return the state before the first epoch."""
        return AdamMultiplier(self.init)

    def next(self, state: AdamMultiplier, mean_cost: float, limit: float) -> AdamMultiplier:
        """Return the state after one Adam step."""
        gradient = limit - mean_cost  # of the loss -multiplier * (mean_cost - limit)
        updates = state.updates + 1
        first = 0.9 * state.first + 0.1 * gradient
        second = 0.999 * state.second + 0.001 * gradient * gradient
        size = sqrt(second / (1.0 - 0.999**updates)) + 1e-8
        value = state.value - self.lr * first / (1.0 - 0.9**updates) / size
        return AdamMultiplier(min(max(value, 0.0), self.upper_bound), updates, first, second)


@dataclass(frozen=True)
class PIDConfig:
    """PID control of the violation (Stooke et al., 2020), smoothed, with a delayed derivative.

    As in the published code, the cost ``delay`` epochs ago counts as 0 until it exists.
    """

    kp: float = option(0.1, "proportional gain", NON_NEGATIVE)
    ki: float = option(0.01, "integral gain", NON_NEGATIVE)
    kd: float = option(0.01, "derivative gain", NON_NEGATIVE)
    delay: int = option(10, "epochs between the two costs of the derivative", POSITIVE)
    smoothing: float = option(0.95, "exponential smoothing of violation and cost", UNIT)
    init: float = option(0.001, "initial multiplier", NON_NEGATIVE)
    upper_bound: float = option(inf, "largest multiplier", POSITIVE)

    def start(self) -> PIDMultiplier:
        """Return the state before the first epoch."""
        return PIDMultiplier(self.init, self.init, 0.0, 0.0, np.zeros(1))

    def next(self, state: PIDMultiplier, mean_cost: float, limit: float) -> PIDMultiplier:
        """Return the state after one epoch."""
        old, new = self.smoothing, 1.0 - self.smoothing
        integral = max(0.0, state.integral + self.ki * (mean_cost - limit))
        violation = old * state.violation + new * (mean_cost - limit)
        cost = old * state.cost + new * mean_cost
        rise = max(0.0, cost - float(state.earlier_costs[0]))
        value = min(max(0.0, self.kp * violation + integral + self.kd * rise), self.upper_bound)
        earlier = append_window(state.earlier_costs, np.array([cost]), self.delay)
        return PIDMultiplier(value, integral, violation, cost, earlier)


class LagrangianState(NamedTuple):
    """Multiplier, recent episodes, and the optimizer of a minibatch update."""

    multiplier: AdamMultiplier | PIDMultiplier
    recent: RecentEpisodes = RecentEpisodes()
    optimizer: Any = ()


@dataclass(frozen=True)
class Lagrangian(ConstrainedAlgorithm):
    """Updates the multiplier in ``decide``. Abstract."""

    multiplier: Literal["adam", "pid"] = option("adam", "what updates the multiplier: Adam, or a PID controller")
    adam: AdamConfig = group(AdamConfig)
    pid: PIDConfig = group(PIDConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        idle = "pid" if self.multiplier == "adam" else "adam"
        defaults: dict[str, Any] = {item.name: item.default_factory for item in fields(self)}
        if getattr(self, idle) != defaults[idle]():
            raise InputError(f"{idle} has no effect with multiplier={self.multiplier}: set multiplier={idle}.")

    @property
    def multiplier_config(self) -> AdamConfig | PIDConfig:
        """Settings of the selected rule."""
        return self.adam if self.multiplier == "adam" else self.pid

    def init(self, context: RunContext, policy: Params) -> LagrangianState:
        return LagrangianState(self.multiplier_config.start(), optimizer=self.init_optimizer(policy))

    def decide(self, context: RunContext, state: LagrangianState, episodes: Episodes) -> Decision:
        """Move the multiplier by the violation of the mean cost; it stays until the first episode has finished."""
        recent = state.recent.extend(episodes, context.window)
        mean, multiplier = recent.mean_cost(context.cost_limit), state.multiplier
        if len(recent.costs):
            multiplier = self.multiplier_config.next(multiplier, mean, context.cost_limit)  # type: ignore[arg-type]
        value = multiplier.value
        output = gate_output(Mode.IMPROVE, episodes, multiplier=value, MeanCost=mean, LagrangeMultiplier=value)
        return state._replace(multiplier=multiplier, recent=recent), output


@dataclass(frozen=True)
class TRPOLag(Lagrangian, TrustRegionAlgorithm):
    """TRPO with a Lagrange multiplier on cost."""

    info = MethodInfo(
        "trpo-lag",
        "maximize reward minus a Lagrange multiplier times cost, by TRPO",
        "Benchmarking Safe Exploration (Ray et al., 2019); PID multipliers: Stooke et al., ICML 2020",
        "mixes a standardized reward advantage with a cost advantage that is only centered, so the multiplier that "
        "satisfies the limit grows as the policy's standard deviation shrinks",
        "nothing: both variants keep the mixture, on which published multipliers depend",
        constraint="mean cost, by a Lagrange multiplier", update="trust region", order=70, color="#7a9a3a",
    )  # fmt: skip
    line_search: LineSearchConfig = group(lambda: LineSearchConfig(backtrack_iters=15), flat=True)


@dataclass(frozen=True)
class PPOLag(Lagrangian, MinibatchAlgorithm):
    """PPO with a Lagrange multiplier on cost."""

    info = replace(
        TRPOLag.info, name="ppo-lag", summary="maximize reward minus a Lagrange multiplier times cost, by PPO",
        update="PPO", order=80, color="#4b6b1f",
    )  # fmt: skip


@dataclass(frozen=True)
class RCPO(Lagrangian, TrustRegionAlgorithm):
    """Reward-constrained policy optimization with natural gradients and without a line search."""

    info = MethodInfo(
        "rcpo",
        "maximize reward minus a Lagrange multiplier times cost, by full natural-gradient steps",
        "Reward Constrained Policy Optimization (Tessler et al., ICLR 2019)",
        "penalizes a standardized reward advantage; the paper penalizes the reward of an actor-critic",
        "penalizes cost in the units of the reward, as the paper does",
        constraint="mean cost, by a Lagrange multiplier", update="natural gradient", order=30, color="#9a5b73",
    )  # fmt: skip
    line_search: ClassVar[None] = None  # type: ignore[misc]  # no option, unlike in other trust-region methods

    def step_rule(self) -> Any:
        """Return a full step, with the multiplier in the units of the task unless published."""
        return super().step_rule()._replace(same_unit=not self.is_published)
