"""TRPO and PPO: reward alone."""

from dataclasses import dataclass

from steingate.algorithms.common.base import Algorithm
from steingate.algorithms.common.recipe import About, FirstOrder, SecondOrder, Setup
from steingate.gates.mean import open_gate


@dataclass(frozen=True)
class TRPO(SecondOrder):
    """Trust-region policy optimization."""

    about = About(
        "trpo",
        "raise reward inside a trust region; cost is ignored",
        "Trust Region Policy Optimization (Schulman et al., ICML 2015)",
        gate="open",
        step="trust region",
        order=50,
        color="#6d7a86",
    )
    search_steps: int = 15

    def build(self, setup: Setup) -> Algorithm:
        """Return the open gate in front of the trust-region step."""
        return Algorithm(open_gate(), self.step(setup), uses_cost=False)


@dataclass(frozen=True)
class PPO(FirstOrder):
    """Proximal policy optimization."""

    about = About(
        "ppo",
        "raise reward with a clipped surrogate; cost is ignored",
        "Proximal Policy Optimization (Schulman et al., 2017)",
        gate="open",
        step="clipped",
        order=60,
        color="#a3adb5",
    )

    def build(self, setup: Setup) -> Algorithm:
        """Return the open gate in front of PPO's step."""
        return Algorithm(open_gate(), self.step(setup), uses_cost=False)
