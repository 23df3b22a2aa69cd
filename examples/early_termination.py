"""TRPO with early termination: ``steingate train --algo early_termination:EarlyTerminatedTRPO`` in this folder.

A training episode ends as soon as it has cost more than the limit (Sun et al., 2021: "Safe Exploration by Solving
Early Terminated MDP"). The critic takes the value after that step as 0, so a violation costs all later reward.
Certification and evaluation play whole episodes of the unmodified environment.
"""

from dataclasses import dataclass

import numpy as np

from steingate.algorithms.base import MethodInfo, RunContext
from steingate.algorithms.trpo import TRPO


@dataclass(frozen=True)
class EarlyTerminatedTRPO(TRPO):
    """TRPO whose training episodes end with a violation."""

    info = MethodInfo("early-terminated-trpo", "TRPO whose training episodes end with a violation")

    def ends_episode(self, context: RunContext, accumulated_cost: np.ndarray) -> np.ndarray:
        """Return which of the environments have exceeded the limit."""
        return accumulated_cost > context.cost_limit
