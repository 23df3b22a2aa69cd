"""The recipes: every algorithm as a frozen dataclass whose fields are its configuration."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, NamedTuple, Protocol

from steingate.algos.base import Algorithm
from steingate.algos.trust_region import TrustRegion, trust_region_step
from steingate.core.certificate import Certificate
from steingate.errors import InputError
from steingate.gates.mean import mean_gate, slack_per_step
from steingate.gates.stein import stein_gate


class Recipe(Protocol):
    """Anything that can be built into an algorithm."""

    def build(self) -> Algorithm:
        """Return the algorithm."""
        ...


@dataclass(frozen=True)
class CPO:
    """Constrained policy optimisation (Achiam et al., 2017): reward under a limit on the mean cost."""

    limit: float = 25.0
    variant: str = "corrected"
    window: int = 100  # episodes in the moving average of the cost
    region: TrustRegion = field(default_factory=TrustRegion)

    def build(self) -> Algorithm:
        """Return the mean-cost gate in front of the trust-region step."""
        region = replace(self.region, variant=self.variant)
        gate = mean_gate(self.limit, self.window, per_step=self.variant == "corrected")
        return Algorithm(gate, trust_region_step(region))


@dataclass(frozen=True)
class SteinGate:
    """CPO's step behind a certificate on the whole cost distribution."""

    limit: float = 25.0
    variant: str = "corrected"
    window: int = 100  # episodes in the moving average used when an epoch finishes none
    region: TrustRegion = field(default_factory=TrustRegion)
    preset: str = "released"
    certificate: Mapping[str, Any] = field(default_factory=dict)  # fields that differ from the preset

    def build(self) -> Algorithm:
        """Return the certificate's gate in front of the trust-region step."""
        region = replace(self.region, variant=self.variant)
        certificate = Certificate.preset(self.preset, limit=self.limit, **self.certificate)
        gate = stein_gate(certificate, self.window)
        return Algorithm(
            slack_per_step(gate, self.window) if self.variant == "corrected" else gate,
            trust_region_step(region),
        )


class Entry(NamedTuple):
    """A recipe with what a user should know about it, one sentence each."""

    recipe: type[Any]
    summary: str
    paper: str
    published: str  # what the published code does
    corrected: str  # what the corrected variant changes


ALGOS: dict[str, Entry] = {
    "steingate": Entry(
        SteinGate,
        "raise reward while a certificate on this epoch's episode costs holds, lower cost while it does not",
        "SteinGate (UAI 2026)",
        "the line search compares a change per step with a slack per episode, so its cost condition is idle",
        "divides the slack by the mean episode length",
    ),
    "cpo": Entry(
        CPO,
        "raise reward subject to a limit on the mean cost of the last 100 episodes",
        "Constrained Policy Optimization (Achiam et al., ICML 2017)",
        "takes the violation per episode and a wrong sign where the limit cuts the trust region; "
        "in effect a switch between raising reward and lowering cost",
        "divides the violation by the mean episode length and solves the subproblem with the right signs",
    ),
}


def make_recipe(name: str, **settings: Any) -> Recipe:
    """Return the recipe called ``name``; settings that it has no field for are left out.

    Raises
    ------
    InputError
        If there is no such recipe; the message names the nearest.
    """
    if name not in ALGOS:
        close = get_close_matches(name, ALGOS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"choose one of {', '.join(sorted(ALGOS))}."
        raise InputError(f"algorithm {name!r} is not known: {hint}")
    recipe = ALGOS[name].recipe
    known = {entry.name for entry in fields(recipe)}
    built: Recipe = recipe(**{key: setting for key, setting in settings.items() if key in known})
    return built
