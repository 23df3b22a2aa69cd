"""PPO's step (Schulman et al., 2017): passes of minibatches up a clipped surrogate, stopped by the KL."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from steingate.algos.base import Batch, Params, Step, priced
from steingate.algos.minibatches import (
    BETA_1,
    BETA_2,
    Adam,
    adam_sizes,
    init_adam,
    minibatch_order,
    minibatches,
)
from steingate.algos.networks import gaussian_kl, log_prob, mean
from steingate.errors import InputError
from steingate.gates.base import Decision, Log, Mode, State


@dataclass(frozen=True)
class Clipped:
    """Sizes of the step; ``max_kl`` bounds the KL summed over action dimensions, not averaged."""

    clip: float = 0.2
    passes: int = 40
    batch_size: int = 64
    learning_rate: float = 3e-4
    max_kl: float = 0.02  # no further pass once it is exceeded
    max_grad_norm: float = 40.0
    epochs: int = 0  # the learning rate falls linearly to 0 over so many moves; 0 keeps it

    def __post_init__(self) -> None:
        for name in ("clip", "passes", "batch_size", "learning_rate", "max_kl", "max_grad_norm"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} must be positive, got {getattr(self, name)}.")
        if self.epochs < 0:
            raise InputError(f"epochs must not be negative, got {self.epochs}.")

    def rate(self, epoch: int) -> float:
        """Return the learning rate of a move."""
        return self.learning_rate * (max(1.0 - epoch / self.epochs, 0.0) if self.epochs else 1.0)


def followed(batch: Batch, decision: Decision) -> Any:
    """Return the advantage that the decision asks to follow: reward at its price, or less cost.

    A balanced step has no place in a first-order method; it raises reward while the limit is met and lowers
    cost while it is not.
    """
    recovers = decision.mode == Mode.RECOVER or (decision.mode == Mode.BALANCE and decision.slack < 0.0)
    return -batch.cost_adv if recovers else priced(batch, np.float32(decision.price))


@lru_cache(maxsize=16)
def _compiled(cfg: Clipped) -> Callable[..., tuple[Any, Any, jax.Array, jax.Array, jax.Array]]:
    """Return all passes as one jitted function; after each the KL decides about the next."""

    def fit(
        params: Params,
        first: Params,
        second: Params,
        batch: Batch,
        rows: Any,
        share: Any,
        rate: Any,
        floor: Any,
    ) -> tuple[Any, Any, jax.Array, jax.Array, jax.Array]:
        theta, unravel = ravel_pytree(params)
        mu_old = mean(params, batch.obs)

        def objective(theta: jax.Array, row: Any, weight: Any) -> jax.Array:
            ratio = jnp.exp(log_prob(unravel(theta), batch.obs[row], batch.act[row]) - batch.logp[row])
            adv = batch.adv[row]
            capped = jnp.clip(ratio, 1.0 - cfg.clip, 1.0 + cfg.clip)
            return -jnp.vdot(weight, jnp.minimum(ratio * adv, capped * adv))

        def minibatch(state: Any, part: Any) -> tuple[Any, jax.Array]:
            theta, m, v = state
            row, weight, step, eps = part
            loss, g = jax.value_and_grad(objective)(theta, row, weight)
            g = g * jnp.minimum(1.0, cfg.max_grad_norm / (jnp.linalg.norm(g) + 1e-6))
            m = BETA_1 * m + (1.0 - BETA_1) * g
            v = BETA_2 * v + (1.0 - BETA_2) * g * g
            return (theta - step * m / (jnp.sqrt(v) + eps), m, v), loss

        def summed_kl(theta: jax.Array) -> jax.Array:
            new = unravel(theta)
            kl = gaussian_kl(mu_old, params["log_std"], mean(new, batch.obs), new["log_std"])
            return jnp.mean(jnp.sum(kl, axis=1))

        def go_on(state: Any) -> Any:
            count, _, kl, _ = state
            return (count < rows.shape[0]) & (kl <= cfg.max_kl)

        def one_pass(state: Any) -> Any:
            count, inner, _, _ = state
            parts = (rows[count], share[count], rate[count], floor[count])
            inner, losses = jax.lax.scan(minibatch, inner, parts)
            return count + 1, inner, summed_kl(inner[0]), jnp.mean(losses)

        start = (theta, ravel_pytree(first)[0], ravel_pytree(second)[0])
        count, (theta, m, v), kl, loss = jax.lax.while_loop(
            go_on, one_pass, (jnp.int32(0), start, jnp.float32(0), jnp.float32(0))
        )
        return unravel(theta), (unravel(m), unravel(v)), count, kl, loss

    return jax.jit(fit)


def clipped_step(cfg: Clipped, seed: int = 0) -> Step:
    """Return PPO's step: minibatch Adam on the clipped surrogate of the advantage that is asked for.

    After each pass the KL from the old policy is measured over all samples; the pass that exceeds ``max_kl``
    is kept and is the last. The state holds the optimiser, the number of moves (which decides the learning
    rate and, with ``seed``, the order of samples) and how many passes the last move made.
    """

    def init(params: Params) -> State:
        return {"adam": init_adam(params), "epoch": 0, "passes": 0}

    def move(state: State, params: Params, batch: Batch, decision: Decision) -> tuple[Params, State, Log]:
        adam, epoch = state["adam"], state["epoch"]
        rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=(epoch, 1000))))
        order = minibatch_order(rng, len(batch.obs), cfg.passes)
        rows, share = minibatches(order, cfg.batch_size, batch.weight)
        rate, floor = adam_sizes(adam.steps, rows.shape[0] * rows.shape[1], cfg.rate(epoch))
        shape = rows.shape[:2]
        data = batch._replace(adv=np.asarray(followed(batch, decision)), weight=None)
        fit = _compiled(cfg)
        moved, moments, count, kl, loss = fit(
            params, adam.first, adam.second, data, rows, share, rate.reshape(shape), floor.reshape(shape)
        )
        passes = int(count)
        first, second = jax.tree.map(np.asarray, moments)
        after = {
            "adam": Adam(adam.steps + passes * shape[1], first, second),
            "epoch": epoch + 1,
            "passes": passes,
        }
        log = {
            "step/passes": float(passes),
            "step/kl": float(kl),
            "step/loss": float(loss),
            "step/learning_rate": cfg.rate(epoch),
        }
        return jax.tree.map(np.asarray, moved), after, log

    return Step(init, move, passes=lambda state: int(state["passes"]))
