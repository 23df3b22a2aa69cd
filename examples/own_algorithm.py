"""An algorithm of your own: ``steingate train --algo own_algorithm:Patient`` in this folder.

With q the number of consecutive epochs without a violation:

    q >= patience    maximize reward inside the trust region
    q <  patience    minimize cost inside the trust region
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from steingate.algorithms.base import (
    Episodes,
    GateOutput,
    MethodInfo,
    Mode,
    Objective,
    Params,
    RunContext,
    TrustRegionAlgorithm,
)
from steingate.algorithms.config import CostAdvantageConfig
from steingate.settings import group, option


class PatientState(NamedTuple):
    """State between epochs."""

    safe_epochs: int = 0  # consecutive epochs without a violation


@dataclass(frozen=True)
class Patient(TrustRegionAlgorithm):
    """Maximize reward after violation-free epochs only.

    Its fields are its settings, such as ``--patience``; those of networks and trust region are inherited.
    """

    info = MethodInfo("patient", "maximize reward after violation-free epochs, minimize cost until then")
    episode_filter = "complete"
    patience: int = option(3, "violation-free epochs before the reward is maximized")
    cost_advantages: CostAdvantageConfig = group(CostAdvantageConfig, flat=True)

    def init(self, context: RunContext, policy: Params) -> PatientState:
        """Return the state before the first epoch."""
        return PatientState()

    def decide(self, context: RunContext, state: PatientState, episodes: Episodes) -> tuple[PatientState, GateOutput]:
        """Count violation-free epochs and choose the objective of the policy update."""
        violated = len(episodes.cost) == 0 or bool(np.any(episodes.cost > context.cost_limit))
        state = PatientState(0 if violated else state.safe_epochs + 1)
        mode = Mode.IMPROVE if state.safe_epochs >= self.patience else Mode.RECOVER
        metrics = {"Gate/SafeEpochs": float(state.safe_epochs)}
        return state, GateOutput(Objective(mode), metrics)
