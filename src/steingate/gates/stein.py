"""The certificate as a gate: improve while the cost distribution is certified, recover while it is not."""

from math import isfinite, nan
from typing import NamedTuple

import numpy as np

from steingate.certificates.certificate import Certificate
from steingate.certificates.plan import episodes_needed
from steingate.certificates.result import Result
from steingate.gates.base import Array, Decision, Episodes, Gate, Log, Mode, Ruling, following

LONG_SHUT = 25  # epochs in a row after which a shut gate is worth a sentence


class Causes(NamedTuple):
    """How many of the epochs in which the gate has been shut each cause explains."""

    atoms: int = 0
    interior: int = 0
    reference: int = 0
    samples: int = 0


class Watched(NamedTuple):
    """State of the gate: costs of the last episodes, and for how long and by what it has been shut."""

    costs: Array
    shut_epochs: int = 0
    causes: Causes = Causes()


def stein_gate(certificate: Certificate, window: int = 100) -> Gate[Watched]:
    """Return the gate that improves while ``certificate`` opens on this epoch's episodes, else recovers.

    The slack is the limit - the mean cost of the same episodes. An epoch in which no episode finished
    cannot be certified: as in the released code, the mean cost of the last ``window`` episodes is compared
    with the limit instead (recover when there are none), and ``gate/fallback`` is 1 in the log.

    Every so many epochs that the gate stays shut, a note says what keeps it so.
    """

    def init() -> Watched:
        return Watched(np.zeros(0))

    def decide(state: Watched, episodes: Episodes) -> Ruling[Watched]:
        recent = following(state.costs, episodes.cost, window)
        if len(episodes.cost) == 0:
            slack = certificate.limit - float(recent.mean()) if len(recent) else nan
            opened, log = slack >= 0.0, _log(certificate, None)
            cause = "samples"
        else:
            result = certificate.evaluate(np.maximum(episodes.cost, 0.0))  # training tells of negative ones
            slack = certificate.limit - float(np.mean(episodes.cost))
            opened, log = result.safe, _log(certificate, result)
            cause = result.shut_by or "samples"
        if opened:
            after = Watched(recent)
        else:
            causes = state.causes._replace(**{cause: getattr(state.causes, cause) + 1})
            after = Watched(recent, state.shut_epochs + 1, causes)
        mode = Mode.IMPROVE if opened else Mode.RECOVER
        log |= {"gate/mode": float(mode), "gate/shut_epochs": float(after.shut_epochs)}
        log |= {f"gate/shut_by_{name}": float(count) for name, count in after.causes._asdict().items()}
        notes = (why_shut(after),) if after.shut_epochs and after.shut_epochs % LONG_SHUT == 0 else ()
        # Without a single episode there is no slack to spend.
        return Ruling(Decision(mode, slack if isfinite(slack) else 0.0), after, log, notes)

    return Gate(init, decide)


def first_words(certificate: Certificate) -> tuple[str, ...]:
    """Return what the gate will do, what it promises, and what to do for more, one sentence each."""
    budget = f"{100.0 * certificate.budget:g} %"
    test = "a test" if certificate.violation_factor <= 1.0 + 1e-9 else "a soft test"
    does = (
        "After every epoch the gate reads the costs of the episodes: open, the policy step raises reward; "
        "shut, it lowers cost."
    )
    if certificate.decision == "confident":
        sure = f"{100.0 * (1.0 - certificate.delta):g} %"
        needed = episodes_needed(certificate.budget, certificate.delta)
        return (
            does,
            f"It opens when the risk is at most {budget} with {sure} confidence, which takes {needed} "
            "episodes or more in one epoch; that holds for the policy that made them, not for later ones.",
            f"With fewer than {needed} episodes per epoch it stays shut: raise --steps-per-epoch if need be.",
        )
    if certificate.attainable:
        opens = f"the mean risk, and a distance to acceptable costs less sampling noise, are at most {budget}"
        if certificate.decision != "excess":
            opens = f"the bound on the risk is at most {budget}"
    elif certificate.guard == "none":
        opens = "never, because the reference alone exceeds the budget"
    else:
        room = min(certificate.budget, certificate.reference_risk + certificate.guard_slack)
        opens = f"no episode costs {certificate.scale:g} or more and their mean risk is at most {room:.3g}"
    if opens.startswith("never"):
        return does, f"As configured it opens {opens}.", "Give a larger budget or a safer reference."
    return (
        does,
        f"It opens when {opens}: {test} of the episodes seen, which promises nothing about the policy that "
        "training ends with.",
        "The promise is made at the end: fresh episodes decide which policy is delivered as certified.",
    )


def why_shut(state: Watched) -> str:
    """Return one sentence on how long the gate has been shut and what keeps it shut."""
    epochs = state.shut_epochs
    if epochs == 0:
        return "The gate is open."
    counts = state.causes._asdict()
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
