"""P3O (Zhang et al., IJCAI 2022): PPO with an exact penalty on the predicted violation.

    minimize  L_PPO + penalty * max(0, mean(max(ratio A_c, clip(ratio, 1 - clip, 1 + clip) A_c)) + violation)

The violation is the mean cost of the last ``window`` episodes minus the limit, divided by their mean length.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from steingate.algorithms.base import Batch, Episodes, GateOutput, MethodInfo, Mode, Objective, Params, RunContext
from steingate.algorithms.common.episodes import RecentEpisodes, constrain_mean_cost
from steingate.algorithms.config import EPISODE_FILTER, CostAdvantageConfig, EpisodeFilter, PPOConfig
from steingate.algorithms.ppo import MinibatchAlgorithm
from steingate.errors import require_positive
from steingate.settings import group, option

NO_VIOLATION = -1e9  # switches the penalty off


class P3OState(NamedTuple):
    """Recent episodes and the optimizer."""

    recent: RecentEpisodes
    optimizer: Any


@dataclass(frozen=True)
class P3O(MinibatchAlgorithm):
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
    episode_filter: EpisodeFilter = option(None, EPISODE_FILTER)
    cost_advantages: CostAdvantageConfig = group(CostAdvantageConfig, flat=True)
    ppo: PPOConfig = group(lambda: PPOConfig(epochs=10))
    penalty: float = option(20.0, "weight of the predicted violation")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "penalty")

    def init(self, context: RunContext, policy: Params) -> P3OState:
        """Return the state before the first epoch."""
        return P3OState(RecentEpisodes(), self.init_optimizer(policy))

    def decide(self, context: RunContext, state: P3OState, episodes: Episodes) -> tuple[P3OState, GateOutput]:
        """Measure the violation of the mean cost."""
        recent, output = constrain_mean_cost(context, state.recent, episodes, self.is_published)
        return state._replace(recent=recent), output

    def phases(self, batch: Batch, objective: Objective) -> tuple[Any, ...]:
        """Return P3O's loss; before the first finished episode only the cost is minimized."""
        from steingate.algorithms.common.ppo_update import Phase

        loss = p3o_loss(self.ppo.clip, self.penalty, not self.is_published)
        if objective.mode == Mode.RECOVER:
            return (Phase(loss, -batch.cost_adv, (NO_VIOLATION,)),)
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
