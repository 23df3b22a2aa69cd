"""The method we recommend: reward within an allowance of cost that the certificate sets."""

from dataclasses import dataclass
from math import inf
from typing import Any

from steingate.algorithms.common.base import Algorithm, Step
from steingate.algorithms.common.recipe import NO_DIFFERENCE, About, FirstOrder, SecondOrder, Setup, Watchful
from steingate.algorithms.common.sizes import Clipped, Passes
from steingate.certificates.certificate import Certificate
from steingate.errors import require_between, require_positive
from steingate.gates.account import Account, Spent, priced_beyond, require_budget
from steingate.gates.allowance import Pace, allowance_gate
from steingate.settings import part, setting

_PAPER = "none yet: docs/allowance.md"


@dataclass(frozen=True)
class Allowing(Watchful):
    """Cost is cheap while some of the episode's allowance is left, and dear once it is spent.

    The allowance is a share m of the limit. Beyond it a unit of cost takes q / m^2 off the part ``kept`` of
    the reward, q being ``price``, or if that is more what makes a limit of cost the part ``least`` of recent
    returns; within it the part ``early`` of that. The certificate on the share of episodes over the limit
    moves m.
    """

    first_std: float = setting(2.0, "standard deviation of actions at first, where they are not choices")
    lam: float = setting(0.98, "lambda of the reward advantages")
    near: tuple[float, ...] = setting(
        (4.0, 12.0, 36.0), "also show observations between 0 and 1 (lidar) to these powers"
    )
    places: bool = setting(True, "also show where the things are that a lidar sees")
    trim: float | None = setting(
        3.0, "cut reward advantages at this many times the size that one in ten exceeds"
    )
    inward: float = setting(
        0.05, "pull on policies that try nothing else: mean actions too far out of range, choices too certain"
    )
    price: float = setting(0.1, "of a unit of cost beyond an allowance of the whole limit")
    least: float = setting(0.05, "part of an episode's return that a limit of such cost takes at least")
    early: float = setting(0.25, "part of the price that cost has while some allowance is left")
    kept: float = setting(1.0, "part of the reward that still counts once the allowance is spent")
    beyond: float | None = setting(
        0.5, "how far beyond the limit the cost so far is shown, in limits; none means without end"
    )
    budget: float = setting(0.015, "share of episodes over the limit that the certificate is to hold")
    pace: Pace = part(Pace)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "price")
        require_between(self, 0.0, 1.0, "early", "kept", "budget")
        require_between(self, 0.0, inf, "least")
        if self.beyond is not None:
            require_between(self, 0.0, inf, "beyond")

    def within_allowance(self, setup: Setup, step: Step[Any]) -> Algorithm:
        """Return the allowance's gate in front of ``step``, and the allowance."""
        require_budget(self.name, setup.limit)
        certificate = Certificate.preset("confident", setup.limit, budget=self.budget)
        spent = Spent(setup.limit, lowest=-inf if self.beyond is None else -1.0 - self.beyond)
        rule = priced_beyond(self.price, self.early, self.kept, self.least / setup.limit)
        account = Account(spent, rule)
        gate = allowance_gate(certificate, self.pace, self.first_std)
        return Algorithm(gate, step, account, uses_cost=False, first_budget=self.pace.start)


@dataclass(frozen=True)
class Allowance(Allowing, SecondOrder):
    """The allowance on the trust-region step."""

    about = About(
        "allowance",
        "raise reward while some of the episode's allowance of cost is left, lower cost once it is spent; a "
        "certificate on the episodes over the limit sets the allowance",
        _PAPER,
        "there is no published code",
        NO_DIFFERENCE,
        gate="certificate, sets the allowance",
        step="trust region",
        sees="cost so far, nearness and places of what the lidar sees",
        order=210,
        color="#c2187a",
    )

    def build(self, setup: Setup) -> Algorithm:
        """Return the allowance around the trust-region step."""
        return self.within_allowance(setup, self.step(setup))


@dataclass(frozen=True)
class AllowancePPO(Allowing, FirstOrder):
    """The allowance on PPO's step."""

    about = About(
        "allowance-ppo",
        "the same allowance around PPO's step",
        _PAPER,
        "there is no published code",
        NO_DIFFERENCE,
        gate="certificate, sets the allowance",
        step="clipped",
        sees="cost so far, nearness and places of what the lidar sees",
        order=205,
        color="#e58fc0",
    )
    clipped: Passes = part(lambda: Clipped(passes=10, batch_size=256, learning_rate=5e-4))

    def build(self, setup: Setup) -> Algorithm:
        """Return the allowance around PPO's step."""
        return self.within_allowance(setup, self.step(setup))
