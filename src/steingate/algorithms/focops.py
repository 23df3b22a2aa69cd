"""FOCOPS (Zhang et al., NeurIPS 2020): follow the best policy in a KL ball, state by state.

    minimize  mean over states with KL(pi || pi_old) <= radius of  KL(pi || pi_old) - ratio A / temperature

with A = (A_r - lambda A_c) / (1 + lambda), by minibatch Adam. lambda follows the violation (``lagrangian``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from steingate.algorithms.base import Batch, MethodInfo, Objective, Params
from steingate.algorithms.config import MinibatchConfig
from steingate.algorithms.lagrangian import AdamConfig, Lagrangian, PIDConfig
from steingate.algorithms.ppo import MinibatchAlgorithm
from steingate.settings import POSITIVE, group, option


@dataclass(frozen=True)
class FOCOPS(Lagrangian, MinibatchAlgorithm):
    """First-order constrained optimization in policy space."""

    info = MethodInfo(
        "focops",
        "maximize reward minus a Lagrange multiplier times cost, towards the best policy in a KL ball",
        "First Order Constrained Optimization in Policy Space (Zhang et al., NeurIPS 2020)",
        "multiplies a column by a row, so the mask of states inside the ball does not choose the states whose "
        "advantages count: it scales the mean over all of them",
        "counts the advantages of the states inside the ball",
        constraint="mean cost, by a Lagrange multiplier", update="minibatch, in a KL ball", order=150, color="#b5477d",
    )  # fmt: skip
    ppo: MinibatchConfig = group(MinibatchConfig)
    adam: AdamConfig = group(lambda: AdamConfig(upper_bound=2.0))
    pid: PIDConfig = group(lambda: PIDConfig(upper_bound=2.0))
    temperature: float = option(1.5, "weight of the KL relative to the advantage", POSITIVE)
    radius: float = option(0.02, "states with a larger KL from the old policy are ignored", POSITIVE)

    def phases(self, batch: Batch, objective: Objective) -> tuple[Any, ...]:
        """Return FOCOPS' loss."""
        from steingate.algorithms.common.ppo_update import Phase, objective_advantage

        loss = focops_loss(self.temperature, self.radius, not self.is_published)
        return (Phase(loss, objective_advantage(batch, objective)),)


@cache
def focops_loss(temperature: float, radius: float, per_state: bool) -> Callable[..., Any]:
    """Return FOCOPS' loss; without ``per_state`` the published one (see :class:`FOCOPS`)."""
    import jax
    import jax.numpy as jnp

    from steingate.algorithms.common.ppo_update import kl_from_old, likelihood_ratio

    def loss(params: Params, rows: Any, numbers: Any) -> Any:
        kl = kl_from_old(params, rows)
        inside = jax.lax.stop_gradient((kl <= radius).astype(kl.dtype))
        gain = likelihood_ratio(params, rows) * rows.adv / temperature
        if per_state:
            return jnp.vdot(rows.weight, inside * (kl - gain))
        fraction = jnp.vdot(rows.weight, inside)
        return jnp.vdot(rows.weight, inside * kl) - fraction * jnp.vdot(rows.weight, gain)

    return loss
