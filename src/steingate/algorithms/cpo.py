"""CPO (Achiam et al., ICML 2017): maximize reward subject to a limit on the mean cost.

    maximize  g.d   subject to  0.5 d.H.d <= max_kl   and   b.d <= slack

g and b are the gradients of the reward and cost surrogates, H is the Fisher matrix, and the slack is the limit minus
the mean cost of the last ``window`` episodes, divided by their mean length. If no step satisfies the constraint, the
cost is minimized. ``common.trust_region`` solves the problem.
"""

from dataclasses import dataclass

from steingate.algorithms.base import Episodes, GateOutput, MethodInfo, Params, RunContext, TrustRegionAlgorithm
from steingate.algorithms.common.episodes import RecentEpisodes, constrain_mean_cost
from steingate.algorithms.config import EPISODE_FILTER, CostAdvantageConfig, EpisodeFilter
from steingate.settings import group, option


@dataclass(frozen=True)
class CPO(TrustRegionAlgorithm):
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
    episode_filter: EpisodeFilter = option(None, EPISODE_FILTER)
    cost_advantages: CostAdvantageConfig = group(CostAdvantageConfig, flat=True)

    def init(self, context: RunContext, policy: Params) -> RecentEpisodes:
        """Return the state before the first episode."""
        return RecentEpisodes()

    def decide(
        self, context: RunContext, state: RecentEpisodes, episodes: Episodes
    ) -> tuple[RecentEpisodes, GateOutput]:
        """Constrain the mean cost of the last ``window`` episodes."""
        return constrain_mean_cost(context, state, episodes, self.is_published)
