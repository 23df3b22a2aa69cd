"""PPO's step (Schulman et al., 2017): a clipped surrogate of the advantage that the gate asks to follow."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from steingate.algorithms.common.base import Batch, Params, Step, priced
from steingate.algorithms.common.descent import Descent, Minibatch, Phase, descent_step
from steingate.algorithms.common.heads import log_prob
from steingate.algorithms.common.sizes import Clipped
from steingate.gates.base import Decision, Mode


def likelihood_ratio(params: Params, part: Minibatch) -> jax.Array:
    """Return how much likelier the policy makes each action than the policy that took it."""
    return jnp.exp(log_prob(params, part.obs, part.act) - part.logp)


@cache
def clipped_loss(clip: float) -> Callable[[Params, Minibatch, Any], jax.Array]:
    """Return PPO's loss: the negative of advantage times likelihood ratio, clipped where that is worse."""

    def loss(params: Params, part: Minibatch, numbers: Any) -> jax.Array:
        del numbers
        ratio = likelihood_ratio(params, part)
        capped = jnp.clip(ratio, 1.0 - clip, 1.0 + clip)
        return -jnp.vdot(part.weight, jnp.minimum(ratio * part.adv, capped * part.adv))

    return loss


def followed(batch: Batch, decision: Decision) -> Any:
    """Return the advantage that the decision asks to follow: reward minus priced cost, or minus cost.

    A balanced step has no place in a first-order method; it raises reward while the limit is met and lowers
    cost while it is not.
    """
    recovers = decision.mode == Mode.RECOVER or (decision.mode == Mode.BALANCE and decision.slack < 0.0)
    return -batch.cost_adv if recovers else priced(batch, np.float32(decision.price))


def clipped_step(cfg: Clipped, seed: int = 0, epochs: int = 0) -> Step[Descent]:
    """Return PPO's step: minibatch Adam on the clipped surrogate of the advantage that is asked for."""
    phase = Phase(clipped_loss(cfg.clip), lambda batch, decision: (followed(batch, decision), ()))
    return descent_step(cfg, (phase,), seed, epochs)
