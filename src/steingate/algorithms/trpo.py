"""TRPO (Schulman et al., ICML 2015): maximize reward in a trust region; cost is ignored.

maximize  g.d   subject to  0.5 d.H.d <= max_kl,   then backtrack until the surrogate does not fall
"""

from dataclasses import dataclass

from steingate.algorithms.base import Decision, Episodes, MethodInfo, Mode, Params, RunContext, TrustRegionAlgorithm
from steingate.algorithms.common.episodes import gate_output
from steingate.algorithms.config import LineSearchConfig
from steingate.settings import group


@dataclass(frozen=True)
class TRPO(TrustRegionAlgorithm):
    """Trust-region policy optimization."""

    info = MethodInfo(
        "trpo",
        "maximize reward in a trust region; cost is ignored",
        "Trust Region Policy Optimization (Schulman et al., ICML 2015)",
        constraint="none", update="trust region", order=50, color="#6d7a86",
    )  # fmt: skip
    line_search: LineSearchConfig = group(lambda: LineSearchConfig(backtrack_iters=15), flat=True)

    def init(self, context: RunContext, policy: Params) -> tuple[()]:
        return ()

    def decide(self, context: RunContext, state: tuple[()], episodes: Episodes) -> Decision:
        return state, gate_output(Mode.IMPROVE, episodes, Fallback=0.0)
