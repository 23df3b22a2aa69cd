"""P3O (Zhang et al., IJCAI 2022): PPO with an exact penalty on the predicted violation.

    minimize  L_PPO + penalty * max(0, mean(max(ratio A_c, clip(ratio, 1 - clip, 1 + clip) A_c)) + violation)

The violation is the mean cost of the last ``window`` episodes minus the limit, divided by their mean length: the
negative slack of CPO's gate.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from steingate.algorithms.base import Batch, MethodInfo, Mode, Objective, Params
from steingate.algorithms.config import PPOConfig
from steingate.algorithms.cpo import MeanCostConstraint
from steingate.algorithms.ppo import MinibatchAlgorithm
from steingate.settings import POSITIVE, group, option


@dataclass(frozen=True)
class P3O(MeanCostConstraint, MinibatchAlgorithm):
    """Penalized proximal policy optimization."""

    info = MethodInfo(
        "p3o",
        "maximize reward by PPO with a large penalty on the predicted violation of the mean cost",
        "Penalized Proximal Policy Optimization (Zhang et al., IJCAI 2022)",
        "uses the violation per episode and does not clip the cost surrogate, so the penalty is "
        "either off or twenty times the cost gradient",
        "uses the violation per step (the paper multiplies it by 1 - gamma) and clips both surrogates, as in the paper",
        constraint="mean cost, by a penalty", update="PPO", order=170, color="#5fae5f",
    )  # fmt: skip
    ppo: PPOConfig = group(lambda: PPOConfig(epochs=10))
    penalty: float = option(20.0, "weight of the predicted violation", POSITIVE)

    def phases(self, batch: Batch, objective: Objective) -> tuple[Any, ...]:
        """Return P3O's loss; before the first finished episode PPO's loss of the cost."""
        from steingate.algorithms.common.ppo_update import Phase

        if objective.mode == Mode.RECOVER:
            return super().phases(batch, objective)
        loss = p3o_loss(self.ppo.clip, self.penalty, not self.is_published)
        return (Phase(loss, batch.adv, (-objective.cost_slack,)),)


@cache
def p3o_loss(clip: float, penalty: float, clips_cost: bool) -> Callable[..., Any]:
    """Return P3O's loss; its first number is the violation before the update."""
    import jax
    import jax.numpy as jnp

    from steingate.algorithms.common.ppo_update import clipped_loss, likelihood_ratio

    reward_loss = clipped_loss(clip)

    def loss(params: Params, rows: Any, numbers: Any) -> Any:
        ratio = likelihood_ratio(params, rows)
        change = ratio * rows.cost_adv
        if clips_cost:
            change = jnp.maximum(change, jnp.clip(ratio, 1.0 - clip, 1.0 + clip) * rows.cost_adv)
        violation = jnp.vdot(rows.weight, change) + numbers[0]
        return reward_loss(params, rows, ()) + penalty * jax.nn.relu(violation)

    return loss
