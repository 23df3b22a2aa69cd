"""CPO and its relatives: a trust-region step under a limit on the mean cost, or on its tail."""

from dataclasses import dataclass
from math import inf

import numpy as np

from steingate.algorithms.common.base import Algorithm
from steingate.algorithms.common.recipe import About, Constrained, SecondOrder, Setup
from steingate.errors import require_between
from steingate.gates.account import Account, Running
from steingate.gates.base import Array, Decision
from steingate.gates.mean import crpo_gate
from steingate.gates.tail import cvar_gate
from steingate.settings import setting


@dataclass(frozen=True)
class CPO(SecondOrder, Constrained):
    """Constrained policy optimization: reward under a limit on the mean cost."""

    about = About(
        "cpo",
        "raise reward subject to a limit on the mean cost of the last 100 episodes",
        "Constrained Policy Optimization (Achiam et al., ICML 2017)",
        "takes the violation per episode and a wrong sign where the limit cuts the trust region; "
        "in effect a switch between raising reward and lowering cost",
        "divides the violation by the mean episode length and solves the subproblem with the right signs; "
        "where costs are rare its predictions are mostly noise and the limit is not held (docs/learning.md)",
        gate="mean cost",
        step="trust region",
        order=10,
        color="#2f6f9f",
    )

    def build(self, setup: Setup) -> Algorithm:
        """Return the mean-cost gate in front of the trust-region step."""
        return Algorithm(self.mean_cost_gate(setup), self.step(setup))


@dataclass(frozen=True)
class PCPO(SecondOrder, Constrained):
    """Projection-based CPO: a reward step, then the nearest step that meets the limit."""

    about = About(
        "pcpo",
        "a step for the reward, projected onto the limit on the mean cost",
        "Projection-Based Constrained Policy Optimization (Yang et al., ICLR 2020)",
        "multiplies the natural gradient by the Fisher matrix again, so its reward step is a plain "
        "gradient of another length; takes the violation per episode",
        "projects the natural-gradient step, with the violation per step; does not hold the limit where "
        "CPO's corrected step does not",
        gate="mean cost",
        step="trust region, projected",
        order=20,
        color="#4fa3d1",
    )
    search_steps: int = 200

    def build(self, setup: Setup) -> Algorithm:
        """Return the mean-cost gate in front of the projected step."""
        from steingate.algorithms.common.projection import projected_direction
        from steingate.algorithms.common.trust_region import trust_region_step

        return Algorithm(self.mean_cost_gate(setup), trust_region_step(self.region(), projected_direction))


@dataclass(frozen=True)
class CRPO(SecondOrder, Constrained):
    """Constraint-rectified policy optimization: a switch with a tolerance."""

    about = About(
        "crpo",
        "raise reward while the mean cost is at most the limit plus a tolerance, else lower cost",
        "CRPO (Xu et al., ICML 2021)",
        "logs its counters only when it lowers cost",
        "logs the mode in every epoch; the steps are the same",
        gate="mean cost, switch with tolerance",
        step="trust region",
        order=140,
        color="#3f5fa8",
    )
    search_steps: int = 15
    tolerance: float = setting(2.0, "cost above the limit that is still met with reward steps")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_between(self, 0.0, inf, "tolerance")

    def build(self, setup: Setup) -> Algorithm:
        """Return the switching gate in front of the trust-region step."""
        return Algorithm(crpo_gate(setup.limit, self.tolerance, setup.window), self.step(setup))


@dataclass(frozen=True)
class CVaRCPO(SecondOrder, Constrained):
    """CPO under a limit on the mean of the worst episodes; the policy sees its running cost.

    Where more than the share ``tail`` of the episodes have one and the same largest cost, CVaR is flat: it
    does not change until they are fewer, so the policy gets no direction.
    """

    about = About(
        "cvar-cpo",
        "CPO under a limit on the mean cost of the worst tenth of episodes; the policy sees its running cost",
        "CVaR-Constrained Policy Optimization (Zhang et al., TNNLS 2024), on CPO's step",
        "there is no published code for this form; takes CPO's published step",
        "takes CPO's corrected step, whose predictions are noisier still for a tail of few episodes",
        gate="CVaR",
        step="trust region",
        sees="running cost",
        order=130,
        color="#9a7b4f",
    )
    tail: float = setting(0.1, "share of worst episodes")

    def build(self, setup: Setup) -> Algorithm:
        """Return the CVaR gate in front of the trust-region step, learning from the cost beyond the level."""

        def beyond(running: Array, decision: Decision) -> Array:
            return np.maximum(running - decision.level, 0.0) / self.tail

        gate = self.in_step_units(cvar_gate(setup.limit, self.tail, setup.window), setup)
        return Algorithm(gate, self.step(setup), Account(Running(setup.limit or 1.0)), beyond)
