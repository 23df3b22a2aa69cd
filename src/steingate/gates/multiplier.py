"""Dual ascent on the cost: a price that rises while the mean cost is above the limit (Lagrangian methods)."""

from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np

from steingate.errors import InputError, require_between, require_positive
from steingate.gates.base import Decision, Episodes, Gate, Log, Mode


@dataclass(frozen=True)
class Ascent:
    """The price follows the violation by Adam, whose first step is ``rate`` whatever the violation."""

    rate: float = 0.035
    start: float = 0.001
    ceiling: float = inf

    def __post_init__(self) -> None:
        require_positive(self, "rate", "ceiling")
        require_between(self, 0.0, self.ceiling, "start")

    def first(self) -> dict[str, Any]:
        """Return the state before the first epoch."""
        return {"price": self.start, "steps": 0, "first": 0.0, "second": 0.0}

    def move(self, state: dict[str, Any], mean_cost: float, limit: float) -> dict[str, Any]:
        """Return the state after one Adam step up the violation; moments go on while the price rests at 0."""
        slope = limit - mean_cost  # of the loss -price * (mean_cost - limit)
        steps = state["steps"] + 1
        first = 0.9 * state["first"] + 0.1 * slope
        second = 0.999 * state["second"] + 0.001 * slope * slope
        size = sqrt(second / (1.0 - 0.999**steps)) + 1e-8
        price = state["price"] - self.rate * first / (1.0 - 0.9**steps) / size
        price = min(max(price, 0.0), self.ceiling)
        return {"price": price, "steps": steps, "first": first, "second": second}


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

    def first(self) -> dict[str, Any]:
        """Return the state before the first epoch."""
        return {"price": self.start, "sum": self.start, "gap": 0.0, "cost": 0.0, "past": np.zeros(1)}

    def move(self, state: dict[str, Any], mean_cost: float, limit: float) -> dict[str, Any]:
        """Return the state after one epoch."""
        keep, new = self.smoothing, 1.0 - self.smoothing
        total = max(0.0, state["sum"] + self.integral * (mean_cost - limit))
        gap = keep * state["gap"] + new * (mean_cost - limit)
        cost = keep * state["cost"] + new * mean_cost
        rise = max(0.0, cost - float(state["past"][0]))
        price = min(max(0.0, self.proportional * gap + total + self.derivative * rise), self.ceiling)
        past = np.append(state["past"], cost)[-self.delay :]
        return {"price": price, "sum": total, "gap": gap, "cost": cost, "past": past}


Law = Ascent | PID
LAWS: dict[str, Law] = {"adam": Ascent(), "pid": PID()}


def multiplier_gate(limit: float, law: Law | str = "adam", window: int = 100) -> Gate:
    """Return the gate that always improves at a price on cost, moved once per epoch by ``law``.

    The violation is the mean cost of the last ``window`` episodes less ``limit``. An epoch without a finished
    episode keeps the average of the epochs before; before the first finished episode the price rests. Both
    set ``gate/fallback`` to 1 in the log.
    """
    if isinstance(law, str) and law not in LAWS:
        raise InputError(f"The multiplier {law!r} is not known: use one of {', '.join(LAWS)}.")
    rule: Law = LAWS[law] if isinstance(law, str) else law

    def init() -> dict[str, Any]:
        return {"costs": np.zeros(0), "law": rule.first()}

    def decide(state: dict[str, Any], episodes: Episodes) -> tuple[Decision, dict[str, Any], Log]:
        costs = np.concatenate([state["costs"], episodes.cost])[-window:]
        mean = float(costs.mean()) if len(costs) else limit
        moved = rule.move(state["law"], mean, limit) if len(costs) else state["law"]
        log = {
            "gate/mode": float(Mode.IMPROVE),
            "gate/mean_cost": mean,
            "gate/price": moved["price"],
            "gate/samples": float(len(episodes.cost)),
            "gate/fallback": float(len(episodes.cost) == 0),
        }
        return Decision(Mode.IMPROVE, inf, moved["price"]), {"costs": costs, "law": moved}, log

    return Gate(init, decide)
