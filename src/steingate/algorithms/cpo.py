"""CPO (Achiam et al., ICML 2017): maximize reward subject to a limit on the mean cost.

    maximize  g.d   subject to  0.5 d.H.d <= max_kl   and   b.d <= slack

g and b are the gradients of the reward and cost surrogates, H is the Fisher matrix, and the slack is the limit minus
the mean cost of the last ``window`` episodes, divided by their mean length. If no step satisfies the constraint, the
cost is minimized. ``common.trust_region`` solves the problem.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from steingate.algorithms.base import (
    ConstrainedAlgorithm,
    Decision,
    Episodes,
    MethodInfo,
    Mode,
    Params,
    RunContext,
    TrustRegionAlgorithm,
)
from steingate.algorithms.common.episodes import RecentEpisodes, gate_output


class MeanCostState(NamedTuple):
    """State between epochs."""

    recent: RecentEpisodes = RecentEpisodes()
    optimizer: Any = ()


@dataclass(frozen=True)
class MeanCostConstraint(ConstrainedAlgorithm):
    """The gate of CPO, PCPO and P3O. Abstract."""

    def init(self, context: RunContext, policy: Params) -> MeanCostState:
        return MeanCostState(optimizer=self.init_optimizer(policy))

    def decide(self, context: RunContext, state: MeanCostState, episodes: Episodes) -> Decision:
        """Constrain the mean cost of the last ``window`` episodes; before the first one minimize cost.

        The slack is in cost per step, in published variants in cost per episode.
        """
        recent = state.recent.extend(episodes, context.window)
        mean = recent.mean_cost(context.cost_limit)
        slack = context.cost_limit - mean if self.is_published else recent.per_step(context.cost_limit - mean)
        mode = Mode.BALANCE if len(recent.costs) else Mode.RECOVER
        return state._replace(recent=recent), gate_output(mode, episodes, slack, MeanCost=mean)


@dataclass(frozen=True)
class CPO(MeanCostConstraint, TrustRegionAlgorithm):
    """Constrained policy optimization."""

    info = MethodInfo(
        "cpo",
        "maximize reward subject to a limit on the mean cost of the last 100 episodes",
        "Constrained Policy Optimization (Achiam et al., ICML 2017)",
        "uses the violation per episode, and a wrong sign where the limit cuts the trust region; "
        "in effect it switches between maximizing reward and minimizing cost",
        "divides the violation by the mean episode length and solves the subproblem with the right signs; "
        "if costs are rare its predictions are mostly noise and the limit is not satisfied (docs/learning.md)",
        constraint="mean cost", update="trust region", order=10, color="#2f6f9f",
    )  # fmt: skip
