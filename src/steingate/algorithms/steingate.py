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
from dataclasses import dataclass, replace
from functools import lru_cache
from math import nan
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from steingate.algorithms.base import (
    Array,
    EnvParams,
    Episodes,
    GateOutput,
    MethodInfo,
    Metrics,
    Mode,
    Objective,
    OnPolicyAlgorithm,
    Params,
    RunContext,
    TrustRegionAlgorithm,
)
from steingate.algorithms.common.episodes import RecentEpisodes, gate_metrics
from steingate.algorithms.config import EPISODE_FILTER, CostAdvantageConfig, EpisodeFilter, PPOConfig
from steingate.algorithms.ppo import MinibatchAlgorithm
from steingate.certificates.stein import SteinCertificate
from steingate.certificates.text_forms import from_text, to_text
from steingate.certificates.violation import certify, episodes_needed
from steingate.errors import is_real
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


def make_certificate(preset: Preset, options: Mapping[str, Any], limit: float) -> SteinCertificate:
    """Return the Stein certificate of a preset."""
    try:
        return _cached_certificate(preset, tuple(options.items()), limit)
    except TypeError:  # a value that has no hash is refused by name
        return SteinCertificate.from_name(preset, limit, **options)


@lru_cache(maxsize=16)  # a valid factor takes a second to compute
def _cached_certificate(preset: Preset, options: tuple[tuple[str, Any], ...], limit: float) -> SteinCertificate:
    return SteinCertificate.from_name(preset, limit, **dict(options))


def violation_options(options: Mapping[str, Any]) -> dict[str, float]:
    """Return ``risk`` and ``confidence`` of the preset ``violation``, validated."""
    given = {"risk": 0.1, "confidence": 0.95, **options}
    certify([0.0], 1.0, **given)
    return {name: float(value) for name, value in given.items()}


def evaluate_gate(preset: Preset, options: Mapping[str, Any], limit: float, costs: Array) -> GateResult:
    """Evaluate the certificate on the costs of an epoch's episodes; negative costs count as 0."""
    costs = np.maximum(costs, 0.0)
    if preset == "violation":
        bound = certify(costs, limit, **violation_options(options))
        metrics = {"Bound": bound.bound, "Budget": bound.risk, "DecisionValue": bound.bound}
        return GateResult(bound.certified, bound.advice, metrics | {"EmpiricalRisk": bound.violation_rate})
    result = make_certificate(preset, options, limit).evaluate(costs)
    metrics = {
        "Bound": result.bound, "Budget": result.budget, "DecisionValue": result.decision_value,
        "ReferenceRisk": result.reference_risk, "EmpiricalRisk": result.empirical_risk,
        "DiscreteTerm": result.discrete_term, "InteriorTerm": result.interior_term, "OneMass": result.one_mass,
        "Guarded": float(result.guarded),
    }  # fmt: skip
    return GateResult(result.is_open, result.advice, metrics)


@dataclass(frozen=True)
class _SteinGate(OnPolicyAlgorithm):
    """The method without its policy update. Abstract."""

    preset: Preset = option("released", PRESET)
    certificate: Mapping[str, Any] = option({}, "options of the certificate, such as budget=0.2")
    recovery: Literal["mean", "tail"] = option("mean", "what is minimized while the gate is closed")
    episode_filter: EpisodeFilter = option(None, EPISODE_FILTER)
    cost_advantages: CostAdvantageConfig = group(CostAdvantageConfig, flat=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.resolve(1)

    def resolve(self, episode_length: int) -> Self:
        """Return the algorithm with the certificate's options validated and in their text form."""
        if self.preset == "violation":
            options: dict[str, Any] = violation_options(self.certificate) if self.certificate else {}
        else:
            scale = from_text(self.certificate.get("cost_scale"))
            limit = scale / 2.0 if is_real(scale) and scale > 0.0 else 1.0
            make_certificate(self.preset, self.certificate, limit)
            # "exceedance" without a threshold is that of the limit, which is not known here.
            options = {
                name: value if value == "exceedance" else to_text(value) for name, value in self.certificate.items()
            }
        return self if options == self.certificate else replace(self, certificate=options)  # type: ignore[type-var]

    def init(self, context: RunContext, policy: Params) -> SteinGateState:
        """Return the state before the first epoch."""
        return SteinGateState(optimizer=self.init_optimizer(policy))

    def decide(
        self, context: RunContext, state: SteinGateState, episodes: Episodes
    ) -> tuple[SteinGateState, GateOutput]:
        """Open or close the gate: the first half of Algorithm 1.

        The slack is the limit minus the mean cost of the epoch's episodes (with ``recovery="tail"``, the budget minus
        their mean risk); the update compares it with the change of the cost surrogate. An epoch without a finished
        episode cannot be certified: as in the released code, the mean cost of the last ``window`` episodes is compared
        with the limit, and ``Gate/Fallback`` is 1.
        """
        limit, recent = context.cost_limit, state.recent.extend(episodes, context.window)
        if len(episodes.cost):
            gate = evaluate_gate(self.preset, self.certificate, limit, episodes.cost)
            slack = limit - float(np.mean(episodes.cost))
        else:
            slack = limit - float(recent.costs.mean()) if len(recent.costs) else nan
            gate = GateResult(slack >= 0.0, "no episode has finished", {"Bound": nan, "Budget": self.budget(limit)})
        if self.recovery == "tail":
            risk = self.tail_risk(limit)
            slack = gate.metrics["Budget"] - float(np.mean(risk(episodes.cost))) if len(episodes.cost) else 0.0
        slack = slack if slack == slack else 0.0  # unknown: nothing to spend
        mode = Mode.IMPROVE if gate.is_open else Mode.RECOVER
        closed = 0 if gate.is_open else state.epochs_closed + 1
        metrics = gate_metrics(mode, episodes, **gate.metrics, EpochsClosed=float(closed))
        messages: tuple[str, ...] = ()
        if closed and closed % MESSAGE_EPOCHS == 0:
            messages = (f"The gate has been closed for {closed} epochs in a row: {gate.advice}",)
        objective = Objective(mode, slack if self.is_published else recent.per_step(slack))
        return state._replace(recent=recent, epochs_closed=closed), GateOutput(objective, metrics, messages)

    def budget(self, limit: float) -> float:
        """Return the largest value of the bound at which the gate is open."""
        if self.preset == "violation":
            return violation_options(self.certificate)["risk"]
        return float(make_certificate(self.preset, self.certificate, limit).budget)

    def tail_risk(self, limit: float) -> Callable[[Array], Array]:
        """Return the risk of an accumulated cost, which a recovery with ``recovery="tail"`` minimizes."""
        if self.preset == "violation":
            return lambda cost: np.asarray(cost > limit, np.float64)
        certificate = make_certificate(self.preset, self.certificate, limit)
        return lambda cost: np.asarray(certificate.risk_function(certificate.normalize(np.maximum(cost, 0.0))))

    def safety_state(self, context: RunContext, params: EnvParams) -> SafetyState | None:
        """Return the accumulated cost in limits with ``recovery="tail"``, otherwise None."""
        return SafetyState(0.0, -(context.cost_limit or 1.0)) if self.recovery == "tail" else None

    def cost_transform(self, context: RunContext, state: SteinGateState) -> Callable[[Array], Array] | None:
        """Return the risk function with ``recovery="tail"``."""
        return self.tail_risk(context.cost_limit) if self.recovery == "tail" else None

    def initial_messages(self, context: RunContext) -> tuple[str, ...]:
        """Return what the gate does and what it promises."""
        rule = (
            "After every epoch the gate evaluates the costs of the finished episodes: open, the policy update "
            "maximizes reward; closed, it minimizes cost."
        )
        if self.preset == "violation":
            options = violation_options(self.certificate)
            needed = episodes_needed(options["risk"], options["confidence"])
            return rule, f"With fewer than {needed} episodes per epoch it stays closed: raise --steps-per-epoch."
        certificate = make_certificate(self.preset, self.certificate, context.cost_limit)
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
