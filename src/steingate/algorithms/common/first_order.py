"""First-order steps other than PPO's that know about cost: FOCOPS, P3O and CUP."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp

from steingate.algorithms.common.base import Batch, Params, Step
from steingate.algorithms.common.clipped import clipped_loss, followed, likelihood_ratio
from steingate.algorithms.common.descent import Descent, Minibatch, Phase, descent_step
from steingate.algorithms.common.heads import kl, law
from steingate.algorithms.common.sizes import Clipped, Passes
from steingate.gates.base import Decision, Mode

NO_VIOLATION = -1e9  # switches the penalty off

Loss = Callable[[Params, Minibatch, Any], jax.Array]


def kl_to_start(params: Params, part: Minibatch) -> jax.Array:
    """Return KL(policy || policy at the start of the phase) of each row, summed over action dimensions."""
    return jnp.sum(kl(law(params, part.obs), part.start), axis=1)


@cache
def focops_loss(temperature: float, radius: float, per_state: bool) -> Loss:
    """Return FOCOPS' loss: a step towards the best policy in a KL ball, on states that are still inside it.

    Without ``per_state`` the mask does not choose the states whose advantages count: the share of states that
    are inside scales the mean over all of them.
    """

    def loss(params: Params, part: Minibatch, numbers: Any) -> jax.Array:
        del numbers
        far = kl_to_start(params, part)
        inside = jax.lax.stop_gradient((far <= radius).astype(far.dtype))
        gain = likelihood_ratio(params, part) * part.adv / temperature
        if per_state:
            return jnp.vdot(part.weight, inside * (far - gain))
        share = jnp.vdot(part.weight, inside)
        return jnp.vdot(part.weight, inside * far) - share * jnp.vdot(part.weight, gain)

    return loss


def focops_step(
    cfg: Passes, temperature: float, radius: float, per_state: bool, seed: int = 0, epochs: int = 0
) -> Step[Descent]:
    """Return FOCOPS' step (Zhang et al., 2020) on reward minus cost at the decision's price."""
    phase = Phase(
        focops_loss(temperature, radius, per_state),
        lambda batch, decision: (followed(batch, decision), ()),
    )
    return descent_step(cfg, (phase,), seed, epochs)


@cache
def penalized_loss(clip: float, penalty: float, clips_cost: bool) -> Loss:
    """Return P3O's loss: PPO's, and ``penalty`` times the predicted violation where there is one.

    The first number is the violation before the step, to which the surrogate of the cost adds its change;
    with ``clips_cost`` that surrogate is clipped as the reward's is.
    """
    reward_loss = clipped_loss(clip)

    def loss(params: Params, part: Minibatch, numbers: Any) -> jax.Array:
        ratio = likelihood_ratio(params, part)
        change = ratio * part.cost_adv
        if clips_cost:
            change = jnp.maximum(change, jnp.clip(ratio, 1.0 - clip, 1.0 + clip) * part.cost_adv)
        violation = jnp.vdot(part.weight, change) + numbers[0]
        return reward_loss(params, part, ()) + penalty * jax.nn.relu(violation)

    return loss


def penalized_step(
    cfg: Clipped, penalty: float, clips_cost: bool, seed: int = 0, epochs: int = 0
) -> Step[Descent]:
    """Return P3O's step (Zhang et al., 2022): reward, with an exact penalty on the decision's slack."""

    def aim(batch: Batch, decision: Decision) -> tuple[Any, tuple[float, ...]]:
        if decision.mode == Mode.RECOVER:
            return -batch.cost_adv, (NO_VIOLATION,)
        return batch.adv, (-decision.slack,)

    phase = Phase(penalized_loss(cfg.clip, penalty, clips_cost), aim)
    return descent_step(cfg, (phase,), seed, epochs)


def projection_loss(params: Params, part: Minibatch, numbers: Any) -> jax.Array:
    """Return CUP's second loss: cost at a price, and the KL from the policy after the first phase."""
    cost = jnp.vdot(part.weight, likelihood_ratio(params, part) * part.cost_adv)
    return numbers[0] * cost + jnp.vdot(part.weight, kl_to_start(params, part))


def update_and_project_step(
    cfg: Clipped, cost_weight: float, seed: int = 0, epochs: int = 0
) -> Step[Descent]:
    """Return CUP's step (Yang et al., 2022): PPO on the reward alone, then back towards lower cost.

    ``cost_weight`` times the decision's price is what the surrogate of the cost weighs against the KL.
    """
    return descent_step(
        cfg,
        (
            Phase(clipped_loss(cfg.clip), lambda batch, decision: (batch.adv, ())),
            Phase(projection_loss, lambda batch, decision: (batch.adv, (cost_weight * decision.price,))),
        ),
        seed,
        epochs,
    )
