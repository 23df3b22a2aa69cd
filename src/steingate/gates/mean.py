"""Gates on the mean cost: always open, and the limit on a moving average that CPO watches."""

from math import inf
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from steingate.gates.base import (
    Array,
    Decision,
    Episodes,
    Gate,
    Mode,
    Recent,
    Ruling,
    following,
    gate_log,
    no_costs,
)

S = TypeVar("S")


def open_gate() -> Gate[tuple[()]]:
    """Return the gate that always improves and knows no limit."""

    def decide(state: tuple[()], episodes: Episodes) -> Ruling[tuple[()]]:
        log = {**gate_log(Mode.IMPROVE, episodes), "gate/fallback": 0.0}
        return Ruling(Decision(Mode.IMPROVE, inf), state, log)

    return Gate(lambda: (), decide)


def mean_gate(limit: float, window: int = 100) -> Gate[Recent]:
    """Return the gate that always balances: slack = ``limit`` - the mean cost of ``window`` episodes.

    The slack is in cost per episode; :func:`slack_per_step` changes that. The average reaches over several
    epochs, so it lags behind the policy. An epoch without a finished episode keeps the average of the epochs
    before; before the first finished episode nothing is known, so the gate recovers. Both set
    ``gate/fallback`` to 1 in the log.
    """

    def decide(state: Recent, episodes: Episodes) -> Ruling[Recent]:
        costs = following(state.costs, episodes.cost, window)
        known = len(costs) > 0
        mean = float(costs.mean()) if known else limit
        mode = Mode.BALANCE if known else Mode.RECOVER
        log = gate_log(mode, episodes, mean_cost=mean)
        return Ruling(Decision(mode, limit - mean), Recent(costs), log)

    return Gate(no_costs, decide)


class PerStep(NamedTuple, Generic[S]):
    """State of :func:`slack_per_step`: that of the gate inside, and the lengths of the last episodes."""

    gate: S
    lengths: Array


def slack_per_step(gate: Gate[S], window: int = 100) -> Gate[PerStep[S]]:
    """Return ``gate`` with its slack divided by the mean length of the last ``window`` episodes.

    A step compares the slack with the change of a mean over steps, so this is the unit that fits; published
    codes leave the slack in cost per episode. Before the first finished episode a positive slack becomes 0.
    """

    def init() -> PerStep[S]:
        return PerStep(gate.init(), np.zeros(0))

    def decide(state: PerStep[S], episodes: Episodes) -> Ruling[PerStep[S]]:
        found = gate.decide(state.gate, episodes)
        lengths = following(state.lengths, episodes.length, window)
        slack = found.decision.slack
        slack = slack / float(lengths.mean()) if len(lengths) else min(slack, 0.0)
        decision = found.decision._replace(slack=slack)
        return Ruling(decision, PerStep(found.state, lengths), found.log, found.notes)

    return Gate(init, decide)


def crpo_gate(limit: float, tolerance: float = 2.0, window: int = 100) -> Gate[Recent]:
    """Return the gate that improves up to ``limit + tolerance`` and recovers above (Xu et al., 2021).

    Neither step looks at the limit, so there is no slack to spend: infinite when improving, none when
    recovering. The average and what happens without episodes are those of :func:`mean_gate`.
    """
    watch = mean_gate(limit, window)

    def decide(state: Recent, episodes: Episodes) -> Ruling[Recent]:
        found = watch.decide(state, episodes)
        improves = found.decision.mode == Mode.BALANCE and found.decision.slack >= -tolerance
        mode = Mode.IMPROVE if improves else Mode.RECOVER
        log = {**found.log, "gate/mode": float(mode)}
        return Ruling(Decision(mode, inf if improves else 0.0), found.state, log)

    return Gate(watch.init, decide)
