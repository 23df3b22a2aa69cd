"""Dual ascent on the cost: a price that rises while the mean cost is above the limit (Lagrangian methods)."""

from dataclasses import dataclass
from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from steingate.errors import require_between, require_positive
from steingate.gates.base import Array, Decision, Episodes, Gate, Mode, Ruling, following, gate_log


class AdamPrice(NamedTuple):
    """A price and Adam's moments of its slope."""

    price: float
    steps: int = 0
    first: float = 0.0
    second: float = 0.0


class PIDPrice(NamedTuple):
    """A price and what the controller remembers: integral, smoothed violation and cost, past costs."""

    price: float
    total: float
    gap: float
    cost: float
    past: Array


@dataclass(frozen=True)
class Ascent:
    """The price follows the violation by Adam, whose first step is ``rate`` whatever the violation."""

    rate: float = 0.035
    start: float = 0.001
    ceiling: float = inf

    def __post_init__(self) -> None:
        require_positive(self, "rate", "ceiling")
        require_between(self, 0.0, self.ceiling, "start")

    def begin(self) -> AdamPrice:
        """Return the state before the first epoch."""
        return AdamPrice(self.start)

    def move(self, state: AdamPrice, mean_cost: float, limit: float) -> AdamPrice:
        """Return the state after one Adam step up the violation; moments go on while the price rests at 0."""
        slope = limit - mean_cost  # of the loss -price * (mean_cost - limit)
        steps = state.steps + 1
        first = 0.9 * state.first + 0.1 * slope
        second = 0.999 * state.second + 0.001 * slope * slope
        size = sqrt(second / (1.0 - 0.999**steps)) + 1e-8
        price = state.price - self.rate * first / (1.0 - 0.9**steps) / size
        return AdamPrice(min(max(price, 0.0), self.ceiling), steps, first, second)


@dataclass(frozen=True)
class PID:
    """The price is a controller of the violation (Stooke et al., 2020), smoothed, with a delayed derivative.

    As published, the cost ``delay`` epochs ago counts as 0 until there is one.
    """

    proportional: float = 0.1
    integral: float = 0.01
    derivative: float = 0.01
    delay: int = 10
    smoothing: float = 0.95
    start: float = 0.001
    ceiling: float = inf

    def __post_init__(self) -> None:
        require_between(self, 0.0, inf, "proportional", "integral", "derivative")
        require_between(self, 0.0, 1.0, "smoothing")
        require_positive(self, "delay", "ceiling")
        require_between(self, 0.0, self.ceiling, "start")

    def begin(self) -> PIDPrice:
        """Return the state before the first epoch."""
        return PIDPrice(self.start, self.start, 0.0, 0.0, np.zeros(1))

    def move(self, state: PIDPrice, mean_cost: float, limit: float) -> PIDPrice:
        """Return the state after one epoch."""
        keep, new = self.smoothing, 1.0 - self.smoothing
        total = max(0.0, state.total + self.integral * (mean_cost - limit))
        gap = keep * state.gap + new * (mean_cost - limit)
        cost = keep * state.cost + new * mean_cost
        rise = max(0.0, cost - float(state.past[0]))
        price = min(max(0.0, self.proportional * gap + total + self.derivative * rise), self.ceiling)
        return PIDPrice(price, total, gap, cost, following(state.past, np.array([cost]), self.delay))


class Priced(NamedTuple):
    """State of the gate: the costs of the last episodes, and the law's own."""

    costs: Array
    law: AdamPrice | PIDPrice


def multiplier_gate(limit: float, law: Ascent | PID, window: int = 100) -> Gate[Priced]:
    """Return the gate that always improves at a price on cost, moved once per epoch by ``law``.

    The violation is the mean cost of the last ``window`` episodes - ``limit``. An epoch without a finished
    episode keeps the average of the epochs before; before the first finished episode the price rests. Both
    set ``gate/fallback`` to 1 in the log.
    """

    def init() -> Priced:
        return Priced(np.zeros(0), law.begin())

    def decide(state: Priced, episodes: Episodes) -> Ruling[Priced]:
        costs = following(state.costs, episodes.cost, window)
        mean = float(costs.mean()) if len(costs) else limit
        moved = law.move(state.law, mean, limit) if len(costs) else state.law  # type: ignore[arg-type]
        log = gate_log(Mode.IMPROVE, episodes, mean_cost=mean, price=moved.price)
        return Ruling(Decision(Mode.IMPROVE, inf, moved.price), Priced(costs, moved), log)

    return Gate(init, decide)
