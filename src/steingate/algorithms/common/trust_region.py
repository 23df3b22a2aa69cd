"""Trust-region policy update (TRPO, CPO): natural gradient, three directions, line search; one compiled call.

Notation of the CPO paper (Achiam et al., 2017): H is the damped Fisher matrix, g and b are the gradients of the
reward and cost surrogates, x = H^-1 g, p = H^-1 b, q = g.x, r = g.p, s = b.p, and c is the negative cost slack
(positive if the limit is violated). The direction d solves

    IMPROVE    maximize g.d   subject to  0.5 d.H.d <= max_kl
    BALANCE    maximize g.d   subject to  0.5 d.H.d <= max_kl  and  c + b.d <= 0
    RECOVER    minimize b.d   subject to  0.5 d.H.d <= max_kl
"""

from collections.abc import Callable
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from steingate.algorithms.base import Batch, Metrics, Mode, Objective, Params
from steingate.algorithms.common import fisher
from steingate.algorithms.config import LineSearchConfig, TrustRegionConfig, Variant

Measures = tuple[jax.Array, jax.Array, jax.Array]  # reward gain, cost change and KL of a fraction of the step
SMALL = 1e-8
NO_COST_GRADIENT = 1e-6  # squared norm below which the cost surrogate counts as constant


class Case(IntEnum):
    """Position of the cost limit relative to the trust region."""

    OUT_OF_REACH = 0  # violated, and no step in the trust region satisfies it
    REACHABLE = 1  # violated, and some steps in the trust region satisfy it
    CUTS = 2  # satisfied, and some steps in the trust region violate it
    FREE = 3  # satisfied in the whole trust region
    FLAT = 4  # satisfied, and the cost gradient vanishes


class Direction(NamedTuple):
    """A full step, before the line search, with its dual variables."""

    step: jax.Array
    lam: jax.Array  # of the trust region
    nu: jax.Array  # of the cost limit


Solution = tuple[Direction, jax.Array, jax.Array]  # direction, case, number of linear systems that were solved


class StepRule(NamedTuple):
    """Settings of the update; hashable, because each rule is compiled once."""

    trust_region: TrustRegionConfig
    line_search: LineSearchConfig | None  # None takes the full step as long as it is finite
    variant: Variant = "corrected"
    same_unit: bool = False  # of reward and cost, see ``Batch.penalized_advantage``
    solve: Callable[..., Solution] | None = None  # replaces ``solve_direction``


def conjugate_gradient(
    product: Callable[[jax.Array], jax.Array], target: jax.Array, iters: int
) -> tuple[jax.Array, jax.Array]:
    """Return x with product(x) ~ target, and x . product(x); stops at a residual norm below 1e-10."""

    def unfinished(state: Any) -> Any:
        count, _, _, _, rr = state
        return (count < iters) & ((count == 0) | (rr >= 1e-20))

    def iterate(state: Any) -> Any:
        count, x, residual, along, rr = state
        image = product(along)
        alpha = rr / (jnp.vdot(along, image) + 1e-6)  # here and below, 1e-6 bounds tiny residuals
        x = x + alpha * along
        residual = residual - alpha * image
        rr_next = jnp.vdot(residual, residual)
        along = residual + rr_next / (rr + 1e-6) * along
        return count + 1, x, residual, along, rr_next

    start = (0, jnp.zeros_like(target), target, target, jnp.vdot(target, target))
    _, x, residual, _, _ = jax.lax.while_loop(unfinished, iterate, start)
    return x, jnp.vdot(x, target - residual)


def improve(x: Any, q: Any, max_kl: float) -> Direction:
    """Return the step that maximizes reward in the trust region."""
    alpha = jnp.sqrt(2.0 * max_kl / (q + SMALL))
    return Direction(alpha * x, 1.0 / (alpha + SMALL), jnp.zeros_like(alpha))


def recover(p: Any, s: Any, max_kl: float) -> Direction:
    """Return the step that minimizes cost in the trust region."""
    nu = jnp.sqrt(2.0 * max_kl / (s + SMALL))
    return Direction(-nu * p, jnp.zeros_like(nu), nu)


def balance(x: Any, p: Any, q: Any, r: Any, s: Any, c: Any, max_kl: float, variant: Variant = "corrected") -> Direction:
    """Return the constrained step if the limit's boundary runs through the trust region (CPO, Theorem 2).

    The dual has two branches, limit active (a) and inactive (b), each concave in lam on one side of the value
    ``turn`` where nu vanishes; the better branch is taken.

    ``variant="published"`` has OmniSafe's sign of r, which belongs to the gradient of the loss instead of the
    reward, and its order of clipping for an empty interval. Its step violates the limit if the limit is violated
    now, and opposes the reward gradient if the limit is satisfied and r > 0.
    """
    published = variant == "published"
    r = r if published else -r
    along = jnp.maximum(q - r * r / (s + SMALL), 1e-6 * q)  # 0 if g and b are parallel, up to rounding
    room = jnp.maximum(2.0 * max_kl - c * c / (s + SMALL), 1e-12)
    turn = r / (c + SMALL)

    def clip(value: Any, low: Any, high: Any) -> jax.Array:
        if published:
            return jnp.minimum(jnp.maximum(value, low), high)
        return jnp.maximum(low, jnp.minimum(high, value))

    satisfied = c < 0
    zero, unbounded = jnp.zeros_like(turn), jnp.full_like(turn, jnp.inf)
    lam_a = clip(jnp.sqrt(along / room), jnp.where(satisfied, zero, turn), jnp.where(satisfied, turn, unbounded))
    lam_b = clip(jnp.sqrt(q / (2.0 * max_kl)), jnp.where(satisfied, turn, zero), jnp.where(satisfied, unbounded, turn))
    dual_a = -0.5 * (along / (lam_a + SMALL) + room * lam_a) - r * c / (s + SMALL)
    dual_b = -0.5 * (q / (lam_b + SMALL) + 2.0 * max_kl * lam_b)
    if not published:  # a branch whose interval is empty has no dual value
        dual_a = jnp.where(satisfied & (turn < 0), -jnp.inf, dual_a)
        dual_b = jnp.where(~satisfied & (turn < 0), -jnp.inf, dual_b)
    lam = jnp.where(dual_a >= dual_b, lam_a, lam_b)
    nu = jnp.maximum(lam * c - r, 0.0) / (s + SMALL)
    return Direction((x - nu * p) / (lam + SMALL), lam, nu)


def find_case(c: Any, bb: Any, s: Any, max_kl: float) -> jax.Array:
    """Return the :class:`Case` of a limit with value ``c``, squared cost-gradient norm ``bb`` and s = b.p."""
    room = 2.0 * max_kl - c * c / (s + SMALL)
    satisfied = jnp.where(room < 0, Case.FREE, Case.CUTS)
    violated = jnp.where(room >= 0, Case.REACHABLE, Case.OUT_OF_REACH)
    return jnp.where(c < 0, jnp.where(bb <= NO_COST_GRADIENT, Case.FLAT, satisfied), violated)


def solve_direction(
    product: Callable[[jax.Array], jax.Array], g: jax.Array, b: jax.Array, mode: Any, c: Any, rule: StepRule
) -> Solution:
    """Return the full step for a mode. ``product`` multiplies by H; only the systems that the case needs are solved."""
    region, zero, bb = rule.trust_region, jnp.zeros_like(g), jnp.vdot(b, b)
    balanced = mode == Mode.BALANCE
    flat = (c < 0) & (bb <= NO_COST_GRADIENT)
    # Certainly outside the trust region, because H >= cg_damping I and so s <= b.b / cg_damping; 1.01 covers rounding.
    far = (c < 0) & (c * c * region.cg_damping > 2.0 * region.max_kl * 1.01 * bb)
    need_p = (mode == Mode.RECOVER) | (balanced & ~flat & ~far)
    p = jax.lax.cond(need_p, lambda: conjugate_gradient(product, b, region.cg_iters)[0], lambda: zero)
    s = jnp.vdot(b, p)
    unbalanced = jnp.where(mode == Mode.RECOVER, Case.OUT_OF_REACH, Case.FREE)
    found = jnp.where(flat | ~far, find_case(c, bb, s, region.max_kl), Case.FREE)
    case = jnp.where(balanced, found, unbalanced)
    need_x = case != Case.OUT_OF_REACH
    x, q = jax.lax.cond(
        need_x, lambda: conjugate_gradient(product, g, region.cg_iters), lambda: (zero, jnp.zeros_like(s))
    )
    branches = (
        lambda: recover(p, s, region.max_kl),
        lambda: balance(x, p, q, jnp.vdot(g, p), s, c, region.max_kl, rule.variant),
        lambda: improve(x, q, region.max_kl),
    )
    cuts = (case == Case.REACHABLE) | (case == Case.CUTS)
    direction = jax.lax.switch(jnp.where(cuts, 1, jnp.where(need_x, 2, 0)), branches)
    return direction, case, need_p.astype(jnp.int32) + need_x.astype(jnp.int32)


def accepts(case: Any, gain: Any, cost_change: Any, kl: Any, c: Any, max_kl: float, recovers: Any = False) -> jax.Array:
    """Return whether the line search accepts a trial; a trial that is not finite is rejected.

    ``gain`` and ``cost_change`` are the changes of the surrogates. Reward must not fall if the limit was
    satisfied; cost may rise by the remaining slack, but not in a step that ``recovers``: a certificate may be
    violated while the mean cost is below the limit.
    """
    finite = jnp.isfinite(gain) & jnp.isfinite(cost_change) & jnp.isfinite(kl)
    ignores_reward = jnp.isin(jnp.asarray(case), jnp.array([Case.OUT_OF_REACH, Case.REACHABLE]))
    slack = jnp.where(recovers, 0.0, jnp.maximum(-c, 0.0))
    return jnp.asarray(finite & (ignores_reward | (gain >= 0)) & (cost_change <= slack) & (kl <= max_kl))


def line_search(
    measure: Callable[[Any], Measures], case: Any, c: Any, rule: StepRule, recovers: Any = False
) -> tuple[jax.Array, jax.Array, Measures]:
    """Return the accepted fraction of the step, a power of ``backtrack_coef`` or 0, the trials, and its measures."""
    search = rule.line_search
    trials, factor = (1, 1.0) if search is None else (search.backtrack_iters, search.backtrack_coef)

    def unfinished(state: Any) -> Any:
        _, count, accepted, _ = state
        return ~accepted & (count < trials)

    def trial(state: Any) -> Any:
        _, count, _, _ = state
        fraction = jnp.asarray(factor, jnp.float32) ** count
        measured = measure(fraction)
        if search is None:
            accepted = jnp.isfinite(sum(measured))
        else:
            accepted = accepts(case, *measured, c, rule.trust_region.max_kl, recovers)
        return fraction, count + 1, accepted, measured

    start = (jnp.float32(0), jnp.int32(0), jnp.array(False), (jnp.float32(0),) * 3)
    fraction, count, accepted, measured = jax.lax.while_loop(unfinished, trial, start)
    gain, change, kl = (jnp.where(accepted, value, 0.0) for value in measured)
    return jnp.where(accepted, fraction, 0.0), count, (gain, change, kl)


@lru_cache(maxsize=16)
def _compiled(rule: StepRule) -> Callable[..., tuple[Params, dict[str, jax.Array]]]:
    """Return the update as one jitted function of parameters, batch, mode, c and Lagrange multiplier."""
    solve = rule.solve or solve_direction

    def update(params: Params, batch: Batch, mode: Any, c: Any, multiplier: Any) -> tuple[Params, dict[str, jax.Array]]:
        penalized = batch.penalized_advantage(multiplier, rule.same_unit)
        blocks = fisher.split_blocks(batch._replace(adv=penalized))
        theta, unravel = ravel_pytree(fisher.to_theta(params))
        policy = fisher.linearize(unravel(theta), blocks)
        reward_old, cost_old, reward_gradient, cost_gradient = fisher.surrogate_gradients(policy, blocks)
        g, b = ravel_pytree(reward_gradient)[0], ravel_pytree(cost_gradient)[0]

        def product(v: jax.Array) -> jax.Array:
            curved = ravel_pytree(fisher.fisher_product(policy, blocks, unravel(v)))[0]
            return curved + rule.trust_region.cg_damping * v

        direction, case, solves = solve(product, g, b, mode, c, rule)

        def measure(fraction: Any) -> Measures:
            trial = unravel(theta + fraction * direction.step)
            reward, cost, kl = fisher.surrogates_and_kl(trial, policy, blocks)
            return reward - reward_old, cost - cost_old, kl

        recovers = (mode == Mode.RECOVER) & (rule.variant == "corrected")
        fraction, trials, (gain, change, kl) = line_search(measure, case, c, rule, recovers)
        # A rejected step must not touch the parameters, even if it contains a NaN.
        updated = jnp.where(fraction > 0, theta + fraction * direction.step, theta)
        norms = {"RewardGradNorm": g, "CostGradNorm": b, "StepNorm": direction.step}
        metrics = {
            "Case": case, "LinearSolves": solves, "LineSearchTrials": trials, "AcceptedFraction": fraction, "KL": kl,
            "RewardGain": gain, "CostChange": change, "Lambda": direction.lam, "Nu": direction.nu,
            **{name: jnp.linalg.norm(vector) for name, vector in norms.items()},
        }  # fmt: skip
        return fisher.to_params(unravel(updated)), metrics

    return jax.jit(update)


def trust_region_update(policy: Params, batch: Batch, objective: Objective, rule: StepRule) -> tuple[Params, Metrics]:
    """Return the policy after one step, and metrics, all finite unless batch or parameters are not.

    ``objective.cost_slack`` is compared with the change of a mean over steps, so its unit is cost per step; in
    published variants it is per episode.
    """
    mode, c = np.int32(objective.mode), np.float32(-objective.cost_slack)
    multiplier = np.float32(objective.lagrange_multiplier)
    updated, metrics = _compiled(rule)(policy, batch, mode, c, multiplier)
    return jax.tree.map(np.asarray, updated), {f"Loss/{name}": float(value) for name, value in metrics.items()}
