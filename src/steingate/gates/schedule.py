"""A safety budget that follows the cost: the controller of Simmer, over the budget of Sauté."""

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from steingate.errors import require_between, require_positive
from steingate.gates.base import Decision, Episodes, Gate, Log, Mode


def discounted_share(discount: float, length: int) -> float:
    """Return the mean of 1, discount, discount^2, ... over ``length`` steps.

    A cost limit times this is the budget that a cost spread evenly over an episode uses up, discounted.
    """
    if discount == 1.0:
        return 1.0
    return float((1.0 - discount**length) / ((1.0 - discount) * length))


@dataclass(frozen=True)
class Controller:
    """Gains of Simmer's controller; the error is smoothed before it is used."""

    proportional: float = 5e-4
    integral: float = 1e-5
    derivative: float = 0.0
    smoothing: float = 0.995
    memory: int = 10  # smoothed errors in the integral
    largest: float = 1.0  # change of the budget in one epoch

    def __post_init__(self) -> None:
        require_between(self, 0.0, inf, "proportional", "integral", "derivative")
        require_between(self, 0.0, 1.0, "smoothing")
        require_positive(self, "memory", "largest")


def budget_gate(
    limit: float, discount: float, length: int, controller: Controller | None = None, window: int = 100
) -> Gate:
    """Return the gate that always improves and moves the budget towards what the policy spends.

    The budget starts at its upper bound, ``limit`` discounted over ``length`` steps, and follows the mean
    cost of the last ``window`` episodes: it falls while the cost is above it. ``Decision.budget`` is its
    share of the upper bound. An epoch without a finished episode keeps the average of the epochs before;
    before the first finished episode the budget rests.
    """
    gains = controller or Controller()
    share = discounted_share(discount, length)
    upper = limit * share

    def init() -> dict[str, Any]:
        errors = np.zeros(0)
        return {"costs": np.zeros(0), "budget": upper, "errors": errors, "asked": 0.0, "given": 0.0}

    def control(state: dict[str, Any], mean: float) -> dict[str, Any]:
        budget, errors = state["budget"], state["errors"]
        before = float(errors[-1]) if len(errors) else 0.0
        error = gains.smoothing * before + (1.0 - gains.smoothing) * (budget - mean * share)
        errors = np.append(errors, error)[-gains.memory :]
        asked = (
            gains.proportional * error
            + gains.integral * float(errors.sum())
            + gains.derivative * (state["given"] - state["asked"])
        )
        change = min(max(asked, -gains.largest), gains.largest)
        moved = min(max(budget + change, 1e-6), upper)
        return {"budget": moved, "errors": errors, "asked": asked, "given": moved - budget}

    def decide(state: dict[str, Any], episodes: Episodes) -> tuple[Decision, dict[str, Any], Log]:
        costs = np.concatenate([state["costs"], episodes.cost])[-window:]
        mean = float(costs.mean()) if len(costs) else limit
        after = {**state, "costs": costs}
        if len(costs):
            after |= control(state, mean)
        log = {
            "gate/mode": float(Mode.IMPROVE),
            "gate/mean_cost": mean,
            "gate/cost_budget": after["budget"] / share,
            "gate/samples": float(len(episodes.cost)),
            "gate/fallback": float(len(episodes.cost) == 0),
        }
        return Decision(Mode.IMPROVE, inf, budget=after["budget"] / upper), after, log

    return Gate(init, decide)
