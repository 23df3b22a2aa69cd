"""An algorithm of your own: ``steingate train --algo own_algorithm:Patient`` in this folder.

With q the number of consecutive epochs without a violation:

    q >= patience    maximize reward inside the trust region
    q <  patience    minimize cost inside the trust region
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from steingate.algorithms.base import (
    Batch,
    CostGAEConfig,
    CriticConfig,
    EpisodeFilter,
    Episodes,
    GAEConfig,
    GateOutput,
    LineSearchConfig,
    MethodInfo,
    Metrics,
    Mode,
    NetworkConfig,
    Objective,
    OnPolicyAlgorithm,
    Params,
    RunContext,
    TrustRegionConfig,
    Variant,
)

from steingate.settings import group, option


class PatientState(NamedTuple):
    """State between epochs."""

    safe_epochs: int = 0  # consecutive epochs without a violation


@dataclass(frozen=True)
class Patient(OnPolicyAlgorithm):
    """Maximize reward after violation-free epochs only."""

    info = MethodInfo("patient", "maximize reward after violation-free epochs, minimize cost until then")
    variant: Variant = "corrected"
    episode_filter: EpisodeFilter = None
    patience: int = option(3, "violation-free epochs before the reward is maximized")
    networks: NetworkConfig = group(NetworkConfig, flat=True)
    gae: GAEConfig = group(GAEConfig, flat=True)
    cost_gae: CostGAEConfig = group(CostGAEConfig, flat=True)
    critics: CriticConfig = group(CriticConfig, flat=True)
    trust_region: TrustRegionConfig = group(TrustRegionConfig, flat=True)
    line_search: LineSearchConfig = group(LineSearchConfig, flat=True)

    def init(self, context: RunContext, policy: Params) -> PatientState:
        """Return the state before the first epoch."""
        del context, policy
        return PatientState()

    def decide(
        self, context: RunContext, state: PatientState, episodes: Episodes
    ) -> tuple[PatientState, GateOutput]:
        """Count violation-free epochs and choose the objective of the policy update."""
        violated = len(episodes.cost) == 0 or bool(np.any(episodes.cost > context.cost_limit))
        state = PatientState(0 if violated else state.safe_epochs + 1)
        mode = Mode.IMPROVE if state.safe_epochs >= self.patience else Mode.RECOVER
        metrics = {"Gate/Mode": float(mode), "Gate/SafeEpochs": float(state.safe_epochs)}
        return state, GateOutput(Objective(mode), metrics=metrics)

    def update(
        self, context: RunContext, state: PatientState, policy: Params, batch: Batch, objective: Objective
    ) -> tuple[PatientState, Params, Metrics]:
        """Take one trust-region step for reward or cost."""
        from steingate.algorithms.common.trust_region import StepRule, trust_region_update

        del context
        rule = StepRule(self.trust_region, self.line_search, self.variant)
        return state, *trust_region_update(policy, batch, objective, rule)
