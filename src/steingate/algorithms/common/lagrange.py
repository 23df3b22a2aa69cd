"""Lagrange multipliers of the cost constraint: dual ascent by Adam, or a PID controller."""

from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from steingate.algorithms.base import Array, Batch
from steingate.algorithms.common.episodes import append_window
from steingate.errors import require_between, require_positive
from steingate.settings import option


def penalized_advantage(batch: Batch, multiplier: Any, same_unit: bool = False) -> Any:
    """Return (reward advantage - multiplier * cost advantage) / (1 + multiplier).

    With ``same_unit`` both are in the units of the task, so the result is the advantage of a penalized reward.
    Otherwise the reward advantage is standardized and the cost advantage only centered, as in published code.
    """
    reward = batch.adv * batch.adv_std if same_unit else batch.adv
    return (reward - multiplier * batch.cost_adv) / (1.0 + multiplier)


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

    lr: float = option(0.035, "learning rate of the multiplier")
    init: float = option(0.001, "initial multiplier")
    upper_bound: float = option(inf, "largest multiplier")

    def __post_init__(self) -> None:
        require_positive(self, "lr", "upper_bound")
        require_between(self, 0.0, self.upper_bound, "init")

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

    kp: float = option(0.1, "proportional gain")
    ki: float = option(0.01, "integral gain")
    kd: float = option(0.01, "derivative gain")
    delay: int = option(10, "epochs between the two costs of the derivative")
    smoothing: float = option(0.95, "exponential smoothing of violation and cost")
    init: float = option(0.001, "initial multiplier")
    upper_bound: float = option(inf, "largest multiplier")

    def __post_init__(self) -> None:
        require_between(self, 0.0, inf, "kp", "ki", "kd")
        require_between(self, 0.0, 1.0, "smoothing")
        require_positive(self, "delay", "upper_bound")
        require_between(self, 0.0, self.upper_bound, "init")

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
