"""First-order steps: passes of minibatches down a loss by Adam, stopped by the KL (PPO, FOCOPS, P3O, CUP)."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from steingate.algorithms.common.base import Batch, Params, Step
from steingate.algorithms.common.heads import Law, kl, law
from steingate.algorithms.common.minibatches import (
    Adam,
    adam_move,
    adam_sizes,
    init_adam,
    minibatch_order,
    minibatches,
)
from steingate.algorithms.common.sizes import Passes
from steingate.gates.base import Decision, Log


class Descent(NamedTuple):
    """State of a first-order step: its optimizer, how many moves it made, and the passes of the last."""

    adam: Adam
    epoch: int = 0
    passes: int = 0


class Minibatch(NamedTuple):
    """What a loss looks at: some rows of the batch, their weights, which sum to 1, and where it started."""

    obs: Any
    act: Any
    logp: Any
    adv: Any
    cost_adv: Any
    weight: Any  # 0 for rows that only fill up the last minibatch
    start: Law  # of these rows, by the policy that the phase starts from


class Phase(NamedTuple):
    """Passes down one loss; the KL that stops them is from the policy that the phase starts from.

    ``loss`` maps the policy's parameters, a minibatch and some numbers to what is descended. It is compiled
    once for each function, so it must be the same object for the same loss.
    """

    loss: Callable[[Params, Minibatch, Any], jax.Array]
    aim: Callable[[Batch, Decision], tuple[Any, tuple[float, ...]]]
    """From the batch and the decision: the advantage to follow, and the numbers that the loss takes."""


@lru_cache(maxsize=16)
def _compiled(cfg: Passes, loss: Callable[..., jax.Array]) -> Callable[..., tuple[Any, ...]]:
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
        numbers: Any,
    ) -> tuple[Any, Any, jax.Array, jax.Array, jax.Array]:
        theta, unravel = ravel_pytree(params)
        start = law(params, batch.obs)

        def objective(theta: jax.Array, row: Any, weight: Any) -> jax.Array:
            obs, act, logp = batch.obs[row], batch.act[row], batch.logp[row]
            then = Law(start.out[row], start.log_std)
            part = Minibatch(obs, act, logp, batch.adv[row], batch.cost_adv[row], weight, then)
            return loss(unravel(theta), part, numbers)

        def minibatch(state: Any, part: Any) -> tuple[Any, jax.Array]:
            row, weight, step, eps = part
            value, g = jax.value_and_grad(objective)(state[0], row, weight)
            return adam_move(state, g, step, eps, cfg.max_grad_norm), value

        def summed_kl(theta: jax.Array) -> jax.Array:
            return jnp.mean(jnp.sum(kl(start, law(unravel(theta), batch.obs)), axis=1))

        def go_on(state: Any) -> Any:
            count, _, moved, _ = state
            return (count < rows.shape[0]) & (moved <= cfg.max_kl)

        def one_pass(state: Any) -> Any:
            count, inner, _, _ = state
            parts = (rows[count], share[count], rate[count], floor[count])
            inner, losses = jax.lax.scan(minibatch, inner, parts)
            return count + 1, inner, summed_kl(inner[0]), jnp.mean(losses)

        flat = (theta, ravel_pytree(first)[0], ravel_pytree(second)[0])
        count, (theta, m, v), moved, last = jax.lax.while_loop(
            go_on, one_pass, (jnp.int32(0), flat, jnp.float32(0), jnp.float32(0))
        )
        return unravel(theta), (unravel(m), unravel(v)), count, moved, last

    return jax.jit(fit)


def descent_step(cfg: Passes, phases: tuple[Phase, ...], seed: int = 0, epochs: int = 0) -> Step[Descent]:
    """Return the step that goes through its phases one after the other, all with one optimizer.

    After each pass the KL from where the phase started is measured over all samples; the pass that exceeds
    ``max_kl`` is kept and is the phase's last. The number of moves so far decides the learning rate, which
    falls over ``epochs``, and, with ``seed``, the order of samples. The critics repeat as many passes as the
    first phase of the last move made. The log is the first phase's; others have their number.
    """

    def init(params: Params) -> Descent:
        return Descent(init_adam(params))

    def descend(
        phase: Phase, index: int, adam: Adam, epoch: int, params: Params, batch: Batch, decision: Decision
    ) -> tuple[Params, Adam, tuple[float, ...]]:
        key = (epoch, 1000 + index)
        rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=key)))
        order = minibatch_order(rng, len(batch.obs), cfg.passes)
        rows, share = minibatches(order, cfg.batch_size, batch.weight)
        shape = rows.shape[:2]
        rate, floor = adam_sizes(adam.steps, shape[0] * shape[1], cfg.rate(epoch, epochs))
        sizes = (rate.reshape(shape), floor.reshape(shape))
        adv, numbers = phase.aim(batch, decision)
        data = batch._replace(adv=np.asarray(adv), weight=None)
        moved, moments, count, divergence, loss = _compiled(cfg, phase.loss)(
            params, adam.first, adam.second, data, rows, share, *sizes, np.asarray(numbers, np.float32)
        )
        first, second = jax.tree.map(np.asarray, moments)
        after = Adam(adam.steps + int(count) * shape[1], first, second)
        return jax.tree.map(np.asarray, moved), after, (float(count), float(divergence), float(loss))

    def move(state: Descent, params: Params, batch: Batch, decision: Decision) -> tuple[Params, Descent, Log]:
        adam, epoch, _ = state
        log, passes = {"step/learning_rate": cfg.rate(epoch, epochs)}, 0
        for index, phase in enumerate(phases):
            params, adam, found = descend(phase, index, adam, epoch, params, batch, decision)
            passes = passes or int(found[0])
            suffix = f"_{index + 1}" if index else ""
            log |= dict(
                zip((f"step/{name}{suffix}" for name in ("passes", "kl", "loss")), found, strict=True)
            )
        return params, Descent(adam, epoch + 1, passes), log

    return Step(init, move, passes=lambda state: state.passes)
