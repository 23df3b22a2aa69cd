"""PPO (Schulman et al., 2017): maximize reward with a clipped surrogate; cost is ignored.

    maximize  mean(min(ratio A, clip(ratio, 1 - clip, 1 + clip) A)),   ratio = pi(a|s) / pi_old(a|s)

by epochs of minibatch Adam, until the KL from the old policy exceeds ``ppo.max_kl``.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from steingate.algorithms.base import (
    Episodes,
    GateOutput,
    MethodInfo,
    MinibatchAlgorithm,
    Params,
    RunContext,
)
from steingate.algorithms.common.episodes import maximize_reward
from steingate.algorithms.config import (
    VARIANT,
    AdvantageConfig,
    CriticConfig,
    NetworkConfig,
    PPOConfig,
    Variant,
    minibatch_critics,
)
from steingate.settings import group, option


class OptimizerState(NamedTuple):
    """State between epochs: the optimizer."""

    optimizer: Any


@dataclass(frozen=True)
class PPO(MinibatchAlgorithm):
    """Proximal policy optimization."""

    info = MethodInfo(
        "ppo",
        "maximize reward with a clipped surrogate; cost is ignored",
        "Proximal Policy Optimization (Schulman et al., 2017)",
        constraint="none",
        update="PPO",
        order=60,
        color="#a3adb5",
    )
    variant: Variant = option("corrected", VARIANT)
    networks: NetworkConfig = group(NetworkConfig, flat=True)
    advantages: AdvantageConfig = group(AdvantageConfig, flat=True)
    critics: CriticConfig = group(minibatch_critics, flat=True)
    ppo: PPOConfig = group(PPOConfig)

    def init(self, context: RunContext, policy: Params) -> OptimizerState:
        """Return the optimizer's state."""
        del context
        return OptimizerState(self.init_optimizer(policy))

    def decide(
        self, context: RunContext, state: OptimizerState, episodes: Episodes
    ) -> tuple[OptimizerState, GateOutput]:
        """Maximize reward."""
        del context
        return state, maximize_reward(episodes)
