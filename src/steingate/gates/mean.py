"""Gates on the mean cost: always open, and the limit on a moving average that CPO watches."""

from math import inf
from typing import Any

import numpy as np

from steingate.gates.base import Decision, Episodes, Gate, Log, Mode


def open_gate() -> Gate:
    """Return the gate that always improves and knows no limit."""

    def decide(state: tuple[()], episodes: Episodes) -> tuple[Decision, tuple[()], Log]:
        samples = float(len(episodes.cost))
        log = {"gate/mode": float(Mode.IMPROVE), "gate/samples": samples, "gate/fallback": 0.0}
        return Decision(Mode.IMPROVE, inf), state, log

    return Gate(tuple, decide)


def mean_gate(limit: float, window: int = 100, per_step: bool = True) -> Gate:
    """Return the gate that always balances: slack = ``limit`` less the mean cost of ``window`` episodes.

    The slack is in cost per step, or in cost per episode when ``per_step`` is false (see
    :func:`slack_per_step`). The average reaches over several epochs, so it lags behind the policy. An epoch
    without a finished episode keeps the average of the epochs before; before the first finished episode
    nothing is known, so the gate recovers. Both set ``gate/fallback`` to 1 in the log.
    """

    def init() -> dict[str, Any]:
        return {"costs": np.zeros(0)}

    def decide(state: dict[str, Any], episodes: Episodes) -> tuple[Decision, dict[str, Any], Log]:
        costs = np.concatenate([state["costs"], episodes.cost])[-window:]
        known = len(costs) > 0
        mean = float(costs.mean()) if known else limit
        mode = Mode.BALANCE if known else Mode.RECOVER
        log = {
            "gate/mode": float(mode),
            "gate/mean_cost": mean,
            "gate/samples": float(len(episodes.cost)),
            "gate/fallback": float(len(episodes.cost) == 0),
        }
        return Decision(mode, limit - mean), {"costs": costs}, log

    gate = Gate(init, decide)
    return slack_per_step(gate, window) if per_step else gate


def slack_per_step(gate: Gate, window: int = 100) -> Gate:
    """Return ``gate`` with its slack divided by the mean length of the last ``window`` episodes.

    A step compares the slack with the change of a mean over steps, so this is the unit that fits; published
    codes leave the slack in cost per episode. Before the first finished episode a positive slack becomes 0.
    """

    def init() -> dict[str, Any]:
        return {"gate": gate.init(), "lengths": np.zeros(0)}

    def decide(state: dict[str, Any], episodes: Episodes) -> tuple[Decision, dict[str, Any], Log]:
        decision, inner, log = gate.decide(state["gate"], episodes)
        lengths = np.concatenate([state["lengths"], episodes.length])[-window:]
        known = len(lengths) > 0
        slack = decision.slack / float(lengths.mean()) if known else min(decision.slack, 0.0)
        scaled = decision._replace(slack=slack)
        return scaled, {"gate": inner, "lengths": lengths}, log

    return Gate(init, decide)


def crpo_gate(limit: float, tolerance: float = 2.0, window: int = 100) -> Gate:
    """Return the gate that improves up to ``limit + tolerance`` and recovers above (Xu et al., 2021).

    Neither step looks at the limit, so there is no slack to spend: infinite when improving, none when
    recovering. The average and what happens without episodes are those of :func:`mean_gate`.
    """
    watch = mean_gate(limit, window, per_step=False)

    def decide(state: dict[str, Any], episodes: Episodes) -> tuple[Decision, dict[str, Any], Log]:
        found, state, log = watch.decide(state, episodes)
        improves = found.mode == Mode.BALANCE and found.slack >= -tolerance
        mode = Mode.IMPROVE if improves else Mode.RECOVER
        log = {**log, "gate/mode": float(mode)}
        return Decision(mode, inf if improves else 0.0), state, log

    return Gate(watch.init, decide)
