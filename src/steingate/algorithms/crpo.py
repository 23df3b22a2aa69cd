"""CRPO (Xu et al., ICML 2021): switch between reward and cost steps, with a tolerance.

mean cost <= limit + tolerance    maximize  g.d   subject to  0.5 d.H.d <= max_kl
mean cost >  limit + tolerance    minimize  b.d   subject to  0.5 d.H.d <= max_kl
"""

from dataclasses import dataclass
from math import inf

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
from steingate.algorithms.config import LineSearchConfig
from steingate.settings import NON_NEGATIVE, group, option


@dataclass(frozen=True)
class CRPO(ConstrainedAlgorithm, TrustRegionAlgorithm):
    """Constraint-rectified policy optimization."""

    info = MethodInfo(
        "crpo",
        "maximize reward while the mean cost is at most the limit plus a tolerance, else minimize cost",
        "CRPO (Xu et al., ICML 2021)",
        "logs its counters only when it minimizes cost",
        "logs the mode in every epoch; the updates are the same",
        constraint="mean cost, switch with tolerance", update="trust region", order=140, color="#3f5fa8",
    )  # fmt: skip
    line_search: LineSearchConfig = group(lambda: LineSearchConfig(backtrack_iters=15), flat=True)
    tolerance: float = option(2.0, "mean cost above the limit at which the reward is still maximized", NON_NEGATIVE)

    def init(self, context: RunContext, policy: Params) -> RecentEpisodes:
        return RecentEpisodes()

    def decide(self, context: RunContext, state: RecentEpisodes, episodes: Episodes) -> Decision:
        """Compare the mean cost of the last ``window`` episodes with limit + tolerance.

        The slack is infinite for reward steps and 0 for cost steps: neither has a cost constraint. Before the
        first finished episode the cost is minimized.
        """
        recent = state.extend(episodes, context.window)
        mean = recent.mean_cost(context.cost_limit)
        improves = len(recent.costs) > 0 and context.cost_limit - mean >= -self.tolerance
        mode, slack = (Mode.IMPROVE, inf) if improves else (Mode.RECOVER, 0.0)
        return recent, gate_output(mode, episodes, slack, MeanCost=mean)
