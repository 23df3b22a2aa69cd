"""The certificate as a gate: improve while the cost distribution is certified, recover while it is not."""

from math import isfinite, nan
from typing import Any

import numpy as np

from steingate.core.certificate import Certificate
from steingate.core.result import Result
from steingate.gates.base import Decision, Episodes, Gate, Log, Mode

_CAUSES = ("atoms", "interior", "reference", "samples")


def stein_gate(certificate: Certificate, window: int = 100) -> Gate:
    """Return the gate that improves while ``certificate`` opens on this epoch's episodes, else recovers.

    The slack is the limit less the mean cost of the same episodes. An epoch in which no episode finished
    cannot be certified: as in the released code, the mean cost of the last ``window`` episodes is compared
    with the limit instead (recover when there are none), and ``gate/fallback`` is 1 in the log.

    The state counts for how many epochs in a row the gate has been shut, and how many of those each cause
    explains; ``recovery_diagnosis`` puts that in words.
    """

    def init() -> dict[str, Any]:
        return {"window": np.zeros(0), "shut": _no_causes(), "shut_epochs": 0}

    def decide(state: dict[str, Any], episodes: Episodes) -> tuple[Decision, dict[str, Any], Log]:
        recent = np.concatenate([state["window"], episodes.cost])[-window:]
        if len(episodes.cost) == 0:
            slack = certificate.limit - float(recent.mean()) if len(recent) else nan
            opened, log = slack >= 0.0, _log(certificate, None)
            cause = "samples"
        else:
            result = certificate.evaluate(episodes.cost)
            slack = certificate.limit - float(np.mean(episodes.cost))
            opened, log = result.safe, _log(certificate, result)
            cause = result.shut_by or ""
        shut_epochs = 0 if opened else state["shut_epochs"] + 1
        shut = _no_causes() if opened else {**state["shut"], cause: state["shut"][cause] + 1}
        log |= {
            "gate/mode": float(Mode.IMPROVE if opened else Mode.RECOVER),
            "gate/shut_epochs": float(shut_epochs),
        }
        log |= {f"gate/shut_by_{name}": float(count) for name, count in shut.items()}
        # Without a single episode there is no slack to spend.
        decision = Decision(Mode.IMPROVE if opened else Mode.RECOVER, slack if isfinite(slack) else 0.0)
        return decision, {"window": recent, "shut": shut, "shut_epochs": shut_epochs}, log

    return Gate(init, decide)


def recovery_diagnosis(log: Log) -> str:
    """Return one sentence on how long the gate has been shut and what keeps it shut, from the gate's log."""
    epochs = int(log["gate/shut_epochs"])
    if epochs == 0:
        return "The gate is open."
    counts = {name: int(log[f"gate/shut_by_{name}"]) for name in _CAUSES}
    cause = max(counts, key=lambda name: counts[name])
    span = "1 epoch" if epochs == 1 else f"{epochs} epochs in a row"
    often = "" if counts[cause] == epochs else f" (in {counts[cause]} of them)"
    return f"The gate has been shut for {span}{often}: {_ADVICE[cause]}."


_ADVICE = {
    "atoms": "the atoms keep it shut, so episodes at the top of the cost scale must become rarer, "
    "or the reference's zero_mass and one_mass allow too little",
    "interior": "the interior keeps it shut, so the costs between the atoms must fall, "
    "or the reference between them is shaped unlike anything this task can reach",
    "reference": "the reference's own risk is above the budget, "
    "so only a safer reference or a larger budget can open it",
    "samples": "the episodes are too few to certify, "
    "so collect more of them per epoch or accept a larger budget",
}


def _no_causes() -> dict[str, int]:
    return dict.fromkeys(_CAUSES, 0)


def _log(certificate: Certificate, result: Result | None) -> Log:
    if result is None:
        return {
            "gate/bound": nan,
            "gate/budget": certificate.budget,
            "gate/decision_value": nan,
            "gate/reference_risk": certificate.reference_risk,
            "gate/empirical_risk": nan,
            "gate/discrete_term": nan,
            "gate/interior_term": nan,
            "gate/one_mass": nan,
            "gate/guarded": 0.0,
            "gate/samples": 0.0,
            "gate/fallback": 1.0,
        }
    return {
        "gate/bound": result.bound,
        "gate/budget": result.budget,
        "gate/decision_value": result.decision_value,
        "gate/reference_risk": result.reference_risk,
        "gate/empirical_risk": result.empirical_risk,
        "gate/discrete_term": result.discrete_term,
        "gate/interior_term": nan if result.interior_term is None else result.interior_term,
        "gate/one_mass": result.one_mass,
        "gate/guarded": float(result.guarded),
        "gate/samples": float(result.samples),
        "gate/fallback": 0.0,
    }
