"""SteinGate (Chemingui et al., UAI 2026), Algorithm 1.

Each epoch evaluates the certificate U (``certificates.stein``, Section 3 of the paper) on the costs of the episodes
that the current policy completed, and makes one policy update:

    U <= budget    gate open      maximize  g.d   subject to  0.5 d.H.d <= max_kl
    U >  budget    gate closed    minimize  b.d   subject to  0.5 d.H.d <= max_kl

g and b are the gradients of the reward and cost surrogates, and H is the Fisher matrix. The solver and the line search
are CPO's (``common.trust_region``); ``steingate-ppo`` makes PPO's update for reward or cost instead. U is a test of the
episodes of an epoch, not a bound for the policy.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import nan
from typing import Any, Literal, NamedTuple

import numpy as np

from steingate.algorithms.base import (
    Array,
    ConstrainedAlgorithm,
    Decision,
    EnvParams,
    Episodes,
    MethodInfo,
    Metrics,
    Mode,
    Params,
    RunContext,
    TrustRegionAlgorithm,
)
from steingate.algorithms.common.episodes import RecentEpisodes, gate_output
from steingate.algorithms.config import PPOConfig
from steingate.algorithms.ppo import MinibatchAlgorithm
from steingate.certificates.stein import SteinCertificate
from steingate.certificates.text_forms import to_text
from steingate.certificates.violation import ViolationResult, certify, episodes_needed
from steingate.errors import InputError
from steingate.policies.safety_state import SafetyState
from steingate.settings import group, option

Preset = Literal["paper", "released", "corrected", "violation"]
PRESET = "certificate of the gate: that of the paper, of its code, with a valid factor, or the bound of certify"
MESSAGE_EPOCHS = 25  # a message is shown every time the gate has been closed for so many epochs


class SteinGateState(NamedTuple):
    """State between epochs."""

    recent: RecentEpisodes = RecentEpisodes()  # last ``window`` episodes; used when an epoch completes none
    epochs_closed: int = 0  # number of consecutive epochs in which the gate was closed
    optimizer: Any = ()  # of PPO's update


class GateResult(NamedTuple):
    """Result of one evaluation of the gate: whether it is open, what keeps it closed, the terms of the bound."""

    is_open: bool
    advice: str
    metrics: Metrics


@dataclass(frozen=True)
class _SteinGate(ConstrainedAlgorithm):
    """The method without its policy update. Abstract."""

    preset: Preset = option("released", PRESET)
    certificate: Mapping[str, Any] = option({}, "options of the certificate, such as budget=0.2")
    recovery: Literal["mean", "tail"] = option("mean", "what is minimized while the gate is closed")

    def __post_init__(self) -> None:
        """Validate the options of the certificate, and store them in their text form."""
        super().__post_init__()
        if self.preset == "violation":
            self.violation_bound(1.0)
            return
        self.stein(1.0)
        object.__setattr__(self, "certificate", {name: to_text(value) for name, value in self.certificate.items()})

    def stein(self, limit: float) -> SteinCertificate:
        """Return the Stein certificate of the preset, with the options."""
        return SteinCertificate.from_name(self.preset, limit, **self.certificate)

    def violation_bound(self, limit: float, costs: Any = (0.0,)) -> ViolationResult:
        """Return the result of ``certify``, for the preset ``violation``."""
        for name in self.certificate:
            if name not in ("risk", "confidence"):
                raise InputError(f"The preset violation has no option {name!r}; it has risk and confidence.")
        return certify(costs, limit, **self.certificate)

    def evaluate(self, limit: float, costs: Array) -> GateResult:
        """Evaluate the certificate on the costs of an epoch's episodes; negative costs count as 0."""
        costs = np.maximum(costs, 0.0)
        if self.preset == "violation":
            bound = self.violation_bound(limit, costs)
            metrics = {"Bound": bound.bound, "Budget": bound.risk, "DecisionValue": bound.bound}
            return GateResult(bound.certified, bound.advice, metrics | {"EmpiricalRisk": bound.violation_rate})
        result = self.stein(limit).evaluate(costs)
        metrics = {
            "Bound": result.bound, "Budget": result.budget, "DecisionValue": result.decision_value,
            "ReferenceRisk": result.reference_risk, "EmpiricalRisk": result.empirical_risk,
            "DiscreteTerm": result.discrete_term, "InteriorTerm": result.interior_term, "OneMass": result.one_mass,
            "Guarded": float(result.guarded),
        }  # fmt: skip
        return GateResult(result.is_open, result.advice, metrics)

    def init(self, context: RunContext, policy: Params) -> SteinGateState:
        return SteinGateState(optimizer=self.init_optimizer(policy))

    def decide(self, context: RunContext, state: SteinGateState, episodes: Episodes) -> Decision:
        """Open or close the gate: the first half of Algorithm 1.

        The slack is the limit minus the mean cost of the epoch's episodes (with ``recovery="tail"``, the budget minus
        their mean risk); the update compares it with the change of the cost surrogate. An epoch without a finished
        episode cannot be certified: as in the released code, the mean cost of the last ``window`` episodes is compared
        with the limit, and ``Gate/Fallback`` is 1.
        """
        limit, recent = context.cost_limit, state.recent.extend(episodes, context.window)
        known = len(episodes.cost) > 0
        gate = self.evaluate(limit, episodes.cost if known else np.zeros(1))
        budget = gate.metrics["Budget"]
        slack = limit - (float(np.mean(episodes.cost)) if known else recent.mean_cost(nan))
        if not known:
            gate = GateResult(slack >= 0.0, "no episode has finished", {"Bound": nan, "Budget": budget})
        if self.recovery == "tail":
            slack = budget - float(np.mean(self.tail_risk(limit)(episodes.cost))) if known else 0.0
        slack = slack if slack == slack else 0.0  # unknown: nothing to spend
        closed = 0 if gate.is_open else state.epochs_closed + 1
        messages: tuple[str, ...] = ()
        if closed and closed % MESSAGE_EPOCHS == 0:
            messages = (f"The gate has been closed for {closed} epochs in a row: {gate.advice}",)
        mode = Mode.IMPROVE if gate.is_open else Mode.RECOVER
        output = gate_output(
            mode, episodes, slack if self.is_published else recent.per_step(slack), messages=messages, **gate.metrics,
            EpochsClosed=float(closed),
        )  # fmt: skip
        return state._replace(recent=recent, epochs_closed=closed), output

    def tail_risk(self, limit: float) -> Callable[[Array], Array]:
        """Return the risk of an accumulated cost, which a recovery with ``recovery="tail"`` minimizes."""
        if self.preset == "violation":
            return lambda cost: np.asarray(cost > limit, np.float64)
        certificate = self.stein(limit)
        return lambda cost: np.asarray(certificate.risk_function(certificate.normalize(np.maximum(cost, 0.0))))

    def safety_state(self, context: RunContext, params: EnvParams) -> SafetyState | None:
        return SafetyState(0.0, -(context.cost_limit or 1.0)) if self.recovery == "tail" else None

    def cost_transform(self, context: RunContext, state: SteinGateState) -> Callable[[Array], Array] | None:
        return self.tail_risk(context.cost_limit) if self.recovery == "tail" else None

    def initial_messages(self, context: RunContext) -> tuple[str, ...]:
        rule = (
            "After every epoch the gate evaluates the costs of the finished episodes: open, the policy update "
            "maximizes reward; closed, it minimizes cost."
        )
        if self.preset == "violation":
            bound = self.violation_bound(context.cost_limit)
            needed = episodes_needed(bound.risk, bound.confidence)
            return rule, f"With fewer than {needed} episodes per epoch it stays closed: raise --steps-per-epoch."
        certificate = self.stein(context.cost_limit)
        if not certificate.guard and certificate.reference_risk > certificate.budget:
            return rule, "It never opens, because the reference's risk exceeds the budget: give a larger budget."
        return (rule,)


@dataclass(frozen=True)
class SteinGate(_SteinGate, TrustRegionAlgorithm):
    """SteinGate with the trust-region update; the defaults are those of the paper's appendix.

    ``recovery="mean"`` minimizes the mean cost while the gate is closed, as released; ``"tail"`` minimizes the
    certificate's risk of the episode cost, for which the policy observes its accumulated cost.
    """

    info = MethodInfo(
        "steingate",
        "maximize reward while a certificate on the epoch's episode costs holds, else minimize cost",
        "SteinGate (Chemingui et al., UAI 2026)",
        "the line search compares a change per step with a slack per episode, so its cost condition has no effect "
        "while the mean cost is below the limit",
        "divides the slack by the mean episode length, and a recovery may not raise the predicted cost; "
        "--preset selects the certificate",
        constraint="certificate", update="trust region", inputs="(accumulated cost with recovery=tail)", order=200,
        color="#1f8a7d",
    )  # fmt: skip


@dataclass(frozen=True)
class SteinGatePPO(_SteinGate, MinibatchAlgorithm):
    """SteinGate with PPO's update, with 10 epochs: 40 earn no more and cost more (docs/learning.md)."""

    info = MethodInfo(
        "steingate-ppo",
        "the gate of steingate with PPO's update, which maximizes reward or minimizes cost",
        "SteinGate (Chemingui et al., UAI 2026), Algorithm 1 with PPO",
        "there is no published code",
        "logs the slack per step, not per episode; the updates are the same",
        constraint="certificate", update="PPO", inputs="(accumulated cost with recovery=tail)", order=190,
        color="#6fc4b8",
    )  # fmt: skip
    ppo: PPOConfig = group(lambda: PPOConfig(epochs=10))
