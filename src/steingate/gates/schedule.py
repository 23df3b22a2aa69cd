"""A safety budget that follows the cost: the controller of Simmer, over the budget of Sauté."""

from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from steingate.errors import require_between, require_positive
from steingate.gates.base import Array, Decision, Episodes, Gate, Mode, Ruling, following, gate_log


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


class Budgeted(NamedTuple):
    """State of the gate: costs of the last episodes, the budget, and what the controller remembers."""

    costs: Array
    budget: float
    errors: Array
    asked: float
    given: float


def budget_gate(
    limit: float, discount: float, length: int, controller: Controller | None = None, window: int = 100
) -> Gate[Budgeted]:
    """Return the gate that always improves and moves the budget towards what the policy spends.

    The budget starts at its upper bound, ``limit`` discounted over ``length`` steps, and follows the mean
    cost of the last ``window`` episodes: it falls while the cost is above it. ``Decision.budget`` is its
    share of the upper bound. An epoch without a finished episode keeps the average of the epochs before;
    before the first finished episode the budget rests.
    """
    gains = controller or Controller()
    share = discounted_share(discount, length)
    upper = limit * share

    def init() -> Budgeted:
        return Budgeted(np.zeros(0), upper, np.zeros(0), 0.0, 0.0)

    def control(state: Budgeted, mean: float) -> Budgeted:
        before = float(state.errors[-1]) if len(state.errors) else 0.0
        error = gains.smoothing * before + (1.0 - gains.smoothing) * (state.budget - mean * share)
        errors = following(state.errors, np.array([error]), gains.memory)
        asked = (
            gains.proportional * error
            + gains.integral * float(errors.sum())
            + gains.derivative * (state.given - state.asked)
        )
        change = min(max(asked, -gains.largest), gains.largest)
        moved = min(max(state.budget + change, 1e-6), upper)
        return state._replace(budget=moved, errors=errors, asked=asked, given=moved - state.budget)

    def decide(state: Budgeted, episodes: Episodes) -> Ruling[Budgeted]:
        costs = following(state.costs, episodes.cost, window)
        mean = float(costs.mean()) if len(costs) else limit
        after = state._replace(costs=costs)
        if len(costs):
            after = control(after, mean)
        log = gate_log(Mode.IMPROVE, episodes, mean_cost=mean, cost_budget=after.budget / share)
        return Ruling(Decision(Mode.IMPROVE, inf, budget=after.budget / upper), after, log)

    return Gate(init, decide)
