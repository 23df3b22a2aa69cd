"""The shared policy step: conjugate gradients, one of three directions, a line search; one compiled call."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from steingate.algorithms.common import fisher, subproblem
from steingate.algorithms.common.base import Batch, Params, Step, priced
from steingate.algorithms.common.sizes import TrustRegion
from steingate.algorithms.common.subproblem import Case, Direction
from steingate.gates.base import Decision, Log, Mode


def conjugate_gradient(
    product: Callable[[jax.Array], jax.Array], target: jax.Array, iters: int
) -> tuple[jax.Array, jax.Array]:
    """Return x with product(x) ~ target, and x · product(x).

    The second value comes from the residual that the iteration carries along, target - product(x), so it
    costs no further product. Stops early once the residual's norm is below 1e-10. The 1e-6 in both
    denominators keeps tiny residuals from blowing up.
    """

    def go_on(state: Any) -> Any:
        count, _, _, _, rr = state
        return (count < iters) & ((count == 0) | (rr >= 1e-20))

    def iterate(state: Any) -> Any:
        count, x, residual, along, rr = state
        image = product(along)
        alpha = rr / (jnp.vdot(along, image) + 1e-6)
        x = x + alpha * along
        residual = residual - alpha * image
        rr_next = jnp.vdot(residual, residual)
        along = residual + rr_next / (rr + 1e-6) * along
        return count + 1, x, residual, along, rr_next

    start = (0, jnp.zeros_like(target), target, target, jnp.vdot(target, target))
    _, x, residual, _, _ = jax.lax.while_loop(go_on, iterate, start)
    return x, jnp.vdot(x, target - residual)


def find_direction(
    product: Callable[[jax.Array], jax.Array], g: jax.Array, b: jax.Array, mode: Any, c: Any, cfg: TrustRegion
) -> tuple[Direction, jax.Array, jax.Array]:
    """Return the full step a decision asks for, its :class:`Case`, and how many systems were solved.

    Only what the case needs is solved for: p for a violated limit or one that might be near, x unless the
    limit is out of reach. So IMPROVE and RECOVER take one solve, and BALANCE mostly one.
    """
    zero = jnp.zeros_like(g)
    bb = jnp.vdot(b, b)
    balanced = mode == Mode.BALANCE
    flat = (c < 0) & (bb <= subproblem.NO_COST_GRADIENT)
    far = subproblem.limit_is_far(c, bb, cfg.max_kl, cfg.damping)
    need_p = (mode == Mode.RECOVER) | (balanced & ~flat & ~far)
    p = jax.lax.cond(need_p, lambda: conjugate_gradient(product, b, cfg.cg_iters)[0], lambda: zero)
    s = jnp.vdot(b, p)
    chosen = jnp.where(mode == Mode.RECOVER, Case.OUT_OF_REACH, Case.FREE)
    found = jnp.where(flat | ~far, subproblem.find_case(c, bb, s, cfg.max_kl), Case.FREE)
    case = jnp.where(balanced, found, chosen)
    need_x = case != Case.OUT_OF_REACH
    x, q = jax.lax.cond(
        need_x, lambda: conjugate_gradient(product, g, cfg.cg_iters), lambda: (zero, jnp.zeros_like(s))
    )
    branches = (
        lambda: subproblem.recover(p, s, cfg.max_kl),
        lambda: subproblem.balance(x, p, q, jnp.vdot(g, p), s, c, cfg.max_kl, cfg.variant),
        lambda: subproblem.improve(x, q, cfg.max_kl),
    )
    cuts = (case == Case.REACHABLE) | (case == Case.CUTS)
    direction = jax.lax.switch(jnp.where(cuts, 1, jnp.where(need_x, 2, 0)), branches)
    return direction, case, need_p.astype(jnp.int32) + need_x.astype(jnp.int32)


def accepts(
    case: Any, gain: Any, rise: Any, kl: Any, c: Any, max_kl: float, recovers: Any = False
) -> jax.Array:
    """Return whether the line search takes a trial; one with a NaN or an infinity is never taken.

    ``gain`` and ``rise`` are the changes of the reward and the cost surrogate. Reward must not fall where the
    limit was met to begin with; cost may rise by the slack that is left, never when the limit is violated,
    and never in a step that ``recovers``: a certificate may be shut while the mean cost is below the limit.
    """
    finite = jnp.isfinite(gain) & jnp.isfinite(rise) & jnp.isfinite(kl)
    reward_is_free = jnp.isin(jnp.asarray(case), jnp.array([Case.OUT_OF_REACH, Case.REACHABLE]))
    room = jnp.where(recovers, 0.0, jnp.maximum(-c, 0.0))
    allowed = (reward_is_free | (gain >= 0)) & (rise <= room) & (kl <= max_kl)
    return jnp.asarray(finite & allowed)


def search(
    measure: Callable[[Any], tuple[jax.Array, jax.Array, jax.Array]],
    case: Any,
    c: Any,
    cfg: TrustRegion,
    recovers: Any = False,
) -> tuple[jax.Array, jax.Array, tuple[jax.Array, jax.Array, jax.Array]]:
    """Return the accepted fraction of the step (0 if none), the number of trials, and its measures.

    ``measure(fraction)`` gives gain, rise and KL of a trial; fractions are 1, shrink, shrink^2, ... Without
    ``checked`` the full step is taken as long as its measures are finite.
    """
    trials = cfg.search_steps if cfg.checked else 1

    def go_on(state: Any) -> Any:
        _, count, accepted, _ = state
        return ~accepted & (count < trials)

    def trial(state: Any) -> Any:
        _, count, _, _ = state
        fraction = jnp.asarray(cfg.shrink, jnp.float32) ** count
        measured = measure(fraction)
        taken = (
            accepts(case, *measured, c, cfg.max_kl, recovers) if cfg.checked else jnp.isfinite(sum(measured))
        )
        return fraction, count + 1, taken, measured

    nothing = (jnp.float32(0),) * 3
    fraction, count, accepted, measured = jax.lax.while_loop(
        go_on, trial, (jnp.float32(0), jnp.int32(0), jnp.array(False), nothing)
    )
    kept = tuple(jnp.where(accepted, value, 0.0) for value in measured)
    return jnp.where(accepted, fraction, 0.0), count, kept  # type: ignore[return-value]


FindDirection = Callable[..., tuple[Direction, jax.Array, jax.Array]]  # like :func:`find_direction`


@lru_cache(maxsize=16)
def _compiled(cfg: TrustRegion, find: FindDirection) -> Callable[..., tuple[Params, dict[str, jax.Array]]]:
    """Return the whole move as one jitted function of parameters, batch, mode, constraint value and price."""

    def move(
        params: Params, batch: Batch, mode: Any, c: Any, price: Any
    ) -> tuple[Params, dict[str, jax.Array]]:
        blocks = fisher.cut(batch._replace(adv=priced(batch, price, cfg.same_unit)))
        theta, unravel = ravel_pytree(fisher.to_theta(params))
        policy = fisher.linearize(unravel(theta), blocks)
        reward_old, cost_old, gradient, cost_gradient = fisher.surrogate_gradients(policy, blocks)
        g, b = ravel_pytree(gradient)[0], ravel_pytree(cost_gradient)[0]

        def product(v: jax.Array) -> jax.Array:
            return ravel_pytree(fisher.fisher_product(policy, blocks, unravel(v)))[0] + cfg.damping * v

        direction, case, solves = find(product, g, b, mode, c, cfg)

        def measure(fraction: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
            reward, cost, kl = fisher.evaluate(unravel(theta + fraction * direction.step), policy, blocks)
            return reward - reward_old, cost - cost_old, kl

        recovers = (mode == Mode.RECOVER) & (cfg.variant == "corrected")
        fraction, trials, (gain, rise, kl) = search(measure, case, c, cfg, recovers)
        # A rejected step must not touch the parameters, even if it holds a NaN.
        moved = jnp.where(fraction > 0, theta + fraction * direction.step, theta)
        log = {
            "case": case,
            "solves": solves,
            "trials": trials,
            "fraction": fraction,
            "kl": kl,
            "reward_gain": gain,
            "cost_rise": rise,
            "lambda": direction.lam,
            "nu": direction.nu,
            "gradient_norm": jnp.linalg.norm(g),
            "cost_gradient_norm": jnp.linalg.norm(b),
            "direction_norm": jnp.linalg.norm(direction.step),
        }
        return fisher.to_params(unravel(moved)), log

    return jax.jit(move)


def trust_region_step(cfg: TrustRegion, find: FindDirection = find_direction) -> Step[tuple[()]]:
    """Return the step shared by the second-order methods: one move inside a trust region, as decided.

    ``Decision.slack`` is compared with the change of a per-step mean, so it belongs in cost per step; a gate
    that gives it in cost per episode reproduces the published codes. Every logged number is finite unless the
    batch or the parameters hold a NaN or an infinity. The step has no state.
    """

    def move(
        state: tuple[()], params: Params, batch: Batch, decision: Decision
    ) -> tuple[Params, tuple[()], Log]:
        mode, c, price = np.int32(decision.mode), np.float32(-decision.slack), np.float32(decision.price)
        moved, numbers = _compiled(cfg, find)(params, batch, mode, c, price)
        log = {f"step/{name}": float(number) for name, number in numbers.items()}
        return jax.tree.map(np.asarray, moved), state, log

    return Step(init=lambda params: (), move=move)
