"""CUP (Yang et al., NeurIPS 2022): PPO's update for reward, then a projection towards lower cost.

    1.  maximize PPO's clipped surrogate of the reward advantage
    2.  minimize  lambda k mean(ratio A_c) + KL(pi || pi_1),   k = (1 - gamma_c lambda_c) / (1 - gamma_c)

pi_1 is the policy after the first phase; gamma_c and lambda_c are discount and GAE lambda of the costs. The multiplier
lambda follows the violation (``lagrangian``).
"""

from dataclasses import dataclass
from typing import Any, Literal

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
from steingate.algorithms.common.lagrange import AdamConfig, PIDConfig
from steingate.algorithms.config import (
    EPISODE_FILTER,
    VARIANT,
    AdvantageConfig,
    CostAdvantageConfig,
    CriticConfig,
    EpisodeFilter,
    NetworkConfig,
    PPOConfig,
    Variant,
    minibatch_critics,
)
from steingate.algorithms.lagrangian import LagrangianState, check_multiplier, multiplier_config, update_multiplier
from steingate.errors import InputError
from steingate.settings import group, option


@dataclass(frozen=True)
class CUP(OnPolicyAlgorithm):
    """Constrained update projection."""

    info = MethodInfo(
        "cup",
        "maximize reward by PPO, then project towards lower cost with a Lagrange multiplier",
        "Constrained Update Projection (Yang et al., NeurIPS 2022)",
        constraint="mean cost, by a Lagrange multiplier",
        update="PPO, then projection",
        order=160,
        color="#c48fb0",
    )
    variant: Variant = option("corrected", VARIANT)
    episode_filter: EpisodeFilter = option(None, EPISODE_FILTER)
    networks: NetworkConfig = group(NetworkConfig, flat=True)
    advantages: AdvantageConfig = group(AdvantageConfig, flat=True)
    cost_advantages: CostAdvantageConfig = group(CostAdvantageConfig, flat=True)
    critics: CriticConfig = group(minibatch_critics, flat=True)
    ppo: PPOConfig = group(lambda: PPOConfig(max_kl=0.01))
    multiplier: Literal["adam", "pid"] = option("adam", "what updates the multiplier: Adam, or a PID controller")
    adam: AdamConfig = group(lambda: AdamConfig(upper_bound=2.0))
    pid: PIDConfig = group(lambda: PIDConfig(upper_bound=2.0))

    def __post_init__(self) -> None:
        super().__post_init__()
        check_multiplier(self)
        if self.cost_advantages.cost_gamma >= 1.0:
            raise InputError(f"cup needs a cost_gamma below 1, got {self.cost_advantages.cost_gamma}.")

    @property
    def depends_on_total_steps(self) -> bool:
        """Whether the learning rate decays over the run."""
        return self.ppo.lr_decay

    def init(self, context: RunContext, policy: Params) -> LagrangianState:
        """Return the state before the first epoch."""
        from steingate.algorithms.common.ppo_update import init_ppo

        del context
        return LagrangianState(multiplier_config(self).start(), optimizer=init_ppo(policy))

    def decide(
        self, context: RunContext, state: LagrangianState, episodes: Episodes
    ) -> tuple[LagrangianState, GateOutput]:
        """Update the Lagrange multiplier."""
        return update_multiplier(context, state, episodes, multiplier_config(self))

    def update(
        self, context: RunContext, state: LagrangianState, policy: Params, batch: Batch, objective: Objective
    ) -> tuple[LagrangianState, Params, Metrics]:
        """Make PPO's update for reward, then project."""
        from steingate.algorithms.common import ppo_update

        gamma = self.cost_advantages.cost_gamma
        weight = (1.0 - gamma * self.cost_advantages.adv_lambda) / (1.0 - gamma)
        phases = (
            ppo_update.Phase(ppo_update.clipped_loss(self.ppo.clip), batch.adv),
            ppo_update.Phase(projection_loss, batch.adv, (weight * objective.lagrange_multiplier,)),
        )
        optimizer, policy, metrics = ppo_update.minibatch_update(
            context, state.optimizer, policy, batch, self.ppo, *phases
        )
        return state._replace(optimizer=optimizer), policy, metrics

    def update_epochs(self, state: LagrangianState) -> int:
        """Return the epochs of the last policy update."""
        return int(state.optimizer.epochs)


def projection_loss(params: Params, rows: Any, numbers: Any) -> Any:
    """Return CUP's second loss; ``numbers[0]`` is lambda k."""
    import jax.numpy as jnp

    from steingate.algorithms.common.ppo_update import kl_from_old, likelihood_ratio

    cost = jnp.vdot(rows.weight, likelihood_ratio(params, rows) * rows.cost_adv)
    return numbers[0] * cost + jnp.vdot(rows.weight, kl_from_old(params, rows))
