"""PPO (Schulman et al., 2017): maximize reward with a clipped surrogate; cost is ignored.

    maximize  mean(min(ratio A, clip(ratio, 1 - clip, 1 + clip) A)),   ratio = pi(a|s) / pi_old(a|s)

by epochs of minibatch Adam, until the KL from the old policy exceeds ``ppo.max_kl``.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from steingate.algorithms.base import (
    Batch,
    Episodes,
    GateOutput,
    MethodInfo,
    Metrics,
    Objective,
    OnPolicyAlgorithm,
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

if TYPE_CHECKING:
    from steingate.algorithms.common.ppo_update import PPOState


@dataclass(frozen=True)
class PPO(OnPolicyAlgorithm):
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

    @property
    def depends_on_total_steps(self) -> bool:
        """Whether the learning rate decays over the run."""
        return self.ppo.lr_decay

    def init(self, context: RunContext, policy: Params) -> "PPOState":
        """Return the optimizer's state."""
        from steingate.algorithms.common.ppo_update import init_ppo

        del context
        return init_ppo(policy)

    def decide(self, context: RunContext, state: "PPOState", episodes: Episodes) -> "tuple[PPOState, GateOutput]":
        """Maximize reward."""
        del context
        return state, maximize_reward(episodes)

    def update(
        self, context: RunContext, state: "PPOState", policy: Params, batch: Batch, objective: Objective
    ) -> "tuple[PPOState, Params, Metrics]":
        """Make PPO's update."""
        from steingate.algorithms.common.ppo_update import ppo_update

        return ppo_update(context, state, policy, batch, objective, self.ppo)

    def update_epochs(self, state: "PPOState") -> int:
        """Return the epochs of the last update."""
        return state.epochs
