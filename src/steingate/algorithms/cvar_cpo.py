"""CVaR-CPO: CPO with a limit on the mean cost of the worst episodes (CVaR).

The constrained statistic is CVaR = t + E[(C - t)+] / tail over the last ``window`` episodes, where the worst fraction
``tail`` of the episodes costs t or more. The cost that the policy learns from is the increment of
max(C_t - t, 0) / tail with the accumulated cost C_t, which the policy observes.

If more than the fraction ``tail`` of the episodes have the same largest cost, CVaR is constant there, and the cost
gradient gives no direction.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from steingate.algorithms.base import (
    Array,
    ConstrainedAlgorithm,
    Decision,
    EnvParams,
    Episodes,
    MethodInfo,
    Mode,
    Params,
    RunContext,
    TrustRegionAlgorithm,
)
from steingate.algorithms.common.episodes import RecentEpisodes, cvar, gate_output
from steingate.policies.safety_state import SafetyState
from steingate.settings import FRACTION, option


class CVaRState(NamedTuple):
    """Recent episodes, and the cost at which the tail begins."""

    recent: RecentEpisodes = RecentEpisodes()
    tail_threshold: float = 0.0


@dataclass(frozen=True)
class CVaRCPO(ConstrainedAlgorithm, TrustRegionAlgorithm):
    """CPO with a limit on the CVaR of the episode cost."""

    info = MethodInfo(
        "cvar-cpo",
        "CPO with a limit on the mean cost of the worst tenth of episodes; the policy observes its accumulated cost",
        "CVaR-Constrained Policy Optimization (Zhang et al., TNNLS 2024), with CPO's update",
        "there is no published code for this form; takes CPO's published update",
        "takes CPO's corrected update, whose predictions are noisier still for a tail of few episodes",
        constraint="CVaR", update="trust region", inputs="accumulated cost", order=130, color="#9a7b4f",
    )  # fmt: skip
    tail: float = option(0.1, "fraction of worst episodes", FRACTION)

    def init(self, context: RunContext, policy: Params) -> CVaRState:
        return CVaRState()

    def safety_state(self, context: RunContext, params: EnvParams) -> SafetyState:
        return SafetyState(start=0.0, scale=-(context.cost_limit or 1.0))

    def decide(self, context: RunContext, state: CVaRState, episodes: Episodes) -> Decision:
        """Constrain the CVaR of the last ``window`` episodes; before the first one minimize cost."""
        recent = state.recent.extend(episodes, context.window)
        known = len(recent.costs) > 0
        value, threshold = cvar(recent.costs, self.tail) if known else (context.cost_limit, 0.0)
        slack = context.cost_limit - value if self.is_published else recent.per_step(context.cost_limit - value)
        mode = Mode.BALANCE if known else Mode.RECOVER
        return CVaRState(recent, threshold), gate_output(mode, episodes, slack, CVaR=value, TailThreshold=threshold)

    def cost_transform(self, context: RunContext, state: CVaRState) -> Callable[[Array], Array]:
        """Return the excess over the tail's threshold, divided by ``tail``."""
        return lambda accumulated: np.maximum(accumulated - state.tail_threshold, 0.0) / self.tail
