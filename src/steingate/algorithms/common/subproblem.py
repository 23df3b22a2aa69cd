"""The three directions of a policy step: improve, balance, recover.

Letters as in the CPO paper (Achiam et al., 2017): H is the damped Fisher matrix, g the gradient of the reward
surrogate, b that of the cost surrogate, x = H⁻¹g, p = H⁻¹b, q = x·Hx, r = g·p, s = b·p, and c the constraint
value (positive = violated). ``max_kl`` bounds ½ step·H·step.

A step solves: maximize g·step subject to c + b·step <= 0 and ½ step·H·step <= max_kl.
"""

from enum import IntEnum
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

SMALL = 1e-8
NO_COST_GRADIENT = 1e-6  # squared norm below which the cost surrogate counts as flat


class Case(IntEnum):
    """Where the limit lies as seen from the current policy."""

    OUT_OF_REACH = 0  # violated, and no step inside the trust region meets it
    REACHABLE = 1  # violated, but some steps inside the trust region meet it
    CUTS = 2  # met, and some steps inside the trust region would violate it
    FREE = 3  # met by the whole trust region
    FLAT = 4  # met, and the cost does not depend on the policy


class Direction(NamedTuple):
    """A full step, before the line search, with its multipliers."""

    step: jax.Array
    lam: jax.Array  # multiplier of the trust region
    nu: jax.Array  # multiplier of the limit


def improve(x: Any, q: Any, max_kl: float) -> Direction:
    """Return the step that raises reward most; the trust region is its only constraint."""
    alpha = jnp.sqrt(2.0 * max_kl / (q + SMALL))
    return Direction(alpha * x, 1.0 / (alpha + SMALL), jnp.zeros_like(alpha))


def recover(p: Any, s: Any, max_kl: float) -> Direction:
    """Return the step that lowers cost most; reward does not count."""
    nu = jnp.sqrt(2.0 * max_kl / (s + SMALL))
    return Direction(-nu * p, jnp.zeros_like(nu), nu)


def limit_is_far(c: Any, bb: Any, max_kl: float, damping: float) -> jax.Array:
    """Return whether a met limit is certainly beyond the trust region, known before p is solved for.

    H is at least ``damping`` times the identity, hence s <= b·b / damping, and conjugate gradients approach s
    from below; so c^2 > 2 max_kl b·b / damping implies room < 0. The margin covers rounding.
    """
    return jnp.asarray((c < 0) & (c * c * damping > 2.0 * max_kl * 1.01 * bb))


def find_case(c: Any, bb: Any, s: Any, max_kl: float) -> jax.Array:
    """Return the :class:`Case` of a limit with value ``c``, squared cost-gradient norm ``bb`` and s = b·p."""
    room = 2.0 * max_kl - c * c / (s + SMALL)
    met = jnp.where(room < 0, Case.FREE, Case.CUTS)
    violated = jnp.where(room >= 0, Case.REACHABLE, Case.OUT_OF_REACH)
    return jnp.where(c < 0, jnp.where(bb <= NO_COST_GRADIENT, Case.FLAT, met), violated)


def balance(
    x: Any, p: Any, q: Any, r: Any, s: Any, c: Any, max_kl: float, variant: str = "corrected"
) -> Direction:
    """Return the best step when the limit's boundary runs through the trust region.

    The dual has two branches, limit active (a) and limit slack (b), each a concave function of lam on one
    side of the value where the limit's multiplier vanishes; the better branch wins.

    ``variant="published"`` takes r with the sign of OmniSafe's code, which belongs to a gradient of the loss,
    not of the reward, and its order of clipping for an empty interval. With it the step breaks the limit when
    it is violated, and goes against the reward gradient when it is met and r > 0.
    """
    published = variant == "published"
    r = r if published else -r
    along = jnp.maximum(q - r * r / (s + SMALL), 1e-6 * q)  # 0 when g and b are parallel, up to rounding
    room = jnp.maximum(2.0 * max_kl - c * c / (s + SMALL), 1e-12)
    turn = r / (c + SMALL)

    def clip(value: Any, low: Any, high: Any) -> jax.Array:
        if published:
            return jnp.minimum(jnp.maximum(value, low), high)
        return jnp.maximum(low, jnp.minimum(high, value))

    met = c < 0
    zero, endless = jnp.zeros_like(turn), jnp.full_like(turn, jnp.inf)
    lam_a = clip(jnp.sqrt(along / room), jnp.where(met, zero, turn), jnp.where(met, turn, endless))
    lam_b = clip(jnp.sqrt(q / (2.0 * max_kl)), jnp.where(met, turn, zero), jnp.where(met, endless, turn))
    dual_a = -0.5 * (along / (lam_a + SMALL) + room * lam_a) - r * c / (s + SMALL)
    dual_b = -0.5 * (q / (lam_b + SMALL) + 2.0 * max_kl * lam_b)
    if not published:  # a branch whose interval is empty has no dual value
        dual_a = jnp.where(met & (turn < 0), -jnp.inf, dual_a)
        dual_b = jnp.where(~met & (turn < 0), -jnp.inf, dual_b)
    lam = jnp.where(dual_a >= dual_b, lam_a, lam_b)
    nu = jnp.maximum(lam * c - r, 0.0) / (s + SMALL)
    return Direction((x - nu * p) / (lam + SMALL), lam, nu)
