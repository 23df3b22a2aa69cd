"""CUP (Yang et al., NeurIPS 2022): PPO's update for reward, then a projection towards lower cost.

    1.  maximize PPO's clipped surrogate of the reward advantage
    2.  minimize  lambda k mean(ratio A_c) + KL(pi || pi_1),   k = (1 - gamma_c lambda_c) / (1 - gamma_c)

pi_1 is the policy after the first phase; gamma_c and lambda_c are discount and GAE lambda of the costs. The multiplier
lambda follows the violation (``lagrangian``).
"""

from dataclasses import dataclass
from typing import Any

from steingate.algorithms.base import Batch, MethodInfo, Objective, Params
from steingate.algorithms.config import PPOConfig
from steingate.algorithms.lagrangian import AdamConfig, Lagrangian, PIDConfig
from steingate.algorithms.ppo import MinibatchAlgorithm
from steingate.errors import InputError
from steingate.settings import group


@dataclass(frozen=True)
class CUP(Lagrangian, MinibatchAlgorithm):
    """Constrained update projection."""

    info = MethodInfo(
        "cup",
        "maximize reward by PPO, then project towards lower cost with a Lagrange multiplier",
        "Constrained Update Projection (Yang et al., NeurIPS 2022)",
        constraint="mean cost, by a Lagrange multiplier", update="PPO, then projection", order=160, color="#c48fb0",
    )  # fmt: skip
    ppo: PPOConfig = group(lambda: PPOConfig(max_kl=0.01))
    adam: AdamConfig = group(lambda: AdamConfig(upper_bound=2.0))
    pid: PIDConfig = group(lambda: PIDConfig(upper_bound=2.0))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cost_advantages.cost_gamma >= 1.0:
            raise InputError(f"cup needs a cost_gamma below 1, got {self.cost_advantages.cost_gamma}.")

    def phases(self, batch: Batch, objective: Objective) -> tuple[Any, ...]:
        """Return PPO's loss for reward, and the projection."""
        from steingate.algorithms.common.ppo_update import Phase, clipped_loss

        gamma = self.cost_advantages.cost_gamma
        weight = (1.0 - gamma * self.cost_advantages.adv_lambda) / (1.0 - gamma)
        projection = Phase(projection_loss, batch.adv, (weight * objective.lagrange_multiplier,))
        return Phase(clipped_loss(self.ppo.clip), batch.adv), projection


def projection_loss(params: Params, rows: Any, numbers: Any) -> Any:
    """Return CUP's second loss; ``numbers[0]`` is lambda k."""
    import jax.numpy as jnp

    from steingate.algorithms.common.ppo_update import kl_from_old, likelihood_ratio

    cost = jnp.vdot(rows.weight, likelihood_ratio(params, rows) * rows.cost_adv)
    return numbers[0] * cost + jnp.vdot(rows.weight, kl_from_old(params, rows))
