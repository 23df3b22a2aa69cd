"""SteinGate: either step behind a certificate on the whole cost distribution."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from steingate.algorithms.common.base import Algorithm, Step
from steingate.algorithms.common.recipe import About, Constrained, FirstOrder, SecondOrder, Setup
from steingate.algorithms.common.sizes import Clipped, Passes
from steingate.certificates.certificate import Certificate
from steingate.certificates.presets import OVER_LIMIT
from steingate.certificates.text_forms import from_plain, to_plain
from steingate.gates.account import Account, Running
from steingate.gates.base import Array, Decision
from steingate.gates.stein import first_words, stein_gate
from steingate.gates.tail import risk_slack
from steingate.settings import part, setting


@dataclass(frozen=True)
class Certified(Constrained):
    """The certificate, and what a recovery lowers.

    ``recovery="mean"`` lowers the mean cost, as released; ``"tail"`` the certificate's risk of the episode
    cost itself, for which the policy sees its running cost.
    """

    preset: Literal["paper", "released", "certified", "confident"] = setting(
        "released", "certificate of the gate"
    )
    certificate: Mapping[str, Any] = part(dict, "settings of the certificate, such as budget=0.2")
    recovery: Literal["mean", "tail"] = setting("mean", "what a recovery lowers")

    def __post_init__(self) -> None:
        super().__post_init__()
        scale = from_plain(self.certificate.get("cost_scale"))
        some = scale / 2.0 if isinstance(scale, int | float) and scale > 0 else 1.0
        known = self.certificate_for(some).to_dict()  # refuses what cannot be used, or has no text form
        # One form for each value, so that equal certificates make equal runs and config.json can hold them.
        plain = {
            name: value if value == OVER_LIMIT else known.get(name, to_plain(value))
            for name, value in self.certificate.items()
        }
        object.__setattr__(self, "certificate", plain)

    def certificate_for(self, limit: float) -> Certificate:
        """Return the certificate of the gate."""
        return Certificate.preset(self.preset, limit=limit, **self.certificate)

    def behind_gate(self, setup: Setup, step: Step[Any]) -> Algorithm:
        """Return the certificate's gate in front of ``step``."""
        certificate = self.certificate_for(setup.limit)
        gate = stein_gate(certificate, setup.window)
        notes = first_words(certificate)
        if self.recovery == "mean":
            return Algorithm(self.in_step_units(gate, setup), step, notes=notes)

        def risk(running: Array, decision: Decision) -> Array:
            del decision
            return np.asarray(certificate.risk(np.clip(running / certificate.scale, 0.0, 1.0)))

        gate = risk_slack(gate, certificate.risk, certificate.scale, certificate.budget)
        account = Account(Running(setup.limit or 1.0))
        return Algorithm(self.in_step_units(gate, setup), step, account, risk, notes=notes)


@dataclass(frozen=True)
class SteinGate(SecondOrder, Certified):
    """The paper's method, on the trust-region step."""

    about = About(
        "steingate",
        "raise reward while a certificate on this epoch's episode costs holds, lower cost while it does not",
        "SteinGate (UAI 2026)",
        "the line search compares a change per step with a slack per episode, so its cost condition is idle "
        "while the mean cost is below the limit",
        "divides the slack by the mean episode length, and a recovery may not raise the predicted cost; "
        "--preset chooses the certificate",
        gate="certificate",
        step="trust region",
        sees="(running cost with recovery=tail)",
        order=200,
        color="#1f8a7d",
    )

    def build(self, setup: Setup) -> Algorithm:
        """Return the certificate's gate in front of the trust-region step."""
        return self.behind_gate(setup, self.step(setup))


@dataclass(frozen=True)
class SteinGatePPO(FirstOrder, Certified):
    """The same gate on PPO's step, with fewer passes: 40 earn no more and cost more (docs/learning.md)."""

    about = About(
        "steingate-ppo",
        "the same gate in front of PPO's step, which follows reward or cost as the gate says",
        "SteinGate (UAI 2026), Algorithm 1 with PPO",
        "there is no published code",
        "logs the slack per step, not per episode; the steps are the same",
        gate="certificate",
        step="clipped",
        sees="(running cost with recovery=tail)",
        order=190,
        color="#6fc4b8",
    )
    clipped: Passes = part(lambda: Clipped(passes=10))

    def build(self, setup: Setup) -> Algorithm:
        """Return the certificate's gate in front of PPO's step."""
        return self.behind_gate(setup, self.step(setup))
