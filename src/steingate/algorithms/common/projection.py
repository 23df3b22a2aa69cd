"""PCPO's direction (Yang et al., 2020): a step for the reward, projected onto the limit."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from steingate.algorithms.common.subproblem import SMALL, Case, Direction, recover
from steingate.algorithms.common.trust_region import TrustRegion, conjugate_gradient
from steingate.gates.base import Mode


def project(first: Any, p: Any, q: Any, r: Any, s: Any, c: Any, max_kl: float) -> Direction:
    """Return the trust region's step along ``first``, projected onto c + b·step <= 0 in the KL's metric.

    Letters as in :mod:`steingate.algorithms.common.subproblem`. With ``first`` = x this is the nearest step,
    in ½ (step - full)·H·(step - full), to the full step for the reward that meets the linearized limit.
    """
    size = jnp.sqrt(2.0 * max_kl / (q + SMALL))
    back = jnp.maximum((size * r + c) / (s + SMALL), 0.0)
    return Direction(size * first - back * p, 1.0 / (size + SMALL), back)


def projected_direction(
    product: Callable[[jax.Array], jax.Array], g: jax.Array, b: jax.Array, mode: Any, c: Any, cfg: TrustRegion
) -> tuple[Direction, jax.Array, jax.Array]:
    """Return PCPO's full step; one formula unless the gate recovers, and no condition on the reward.

    ``variant="published"`` takes the Fisher product of x where x is meant, so its first half is a plain
    gradient step of another length.
    """
    x, q = conjugate_gradient(product, g, cfg.cg_iters)
    p, s = conjugate_gradient(product, b, cfg.cg_iters)
    first = product(x) if cfg.variant == "published" else x
    projected = project(first, p, q, jnp.vdot(g, p), s, c, cfg.max_kl)
    recovers = mode == Mode.RECOVER
    direction = jax.tree.map(
        lambda down, balanced: jnp.where(recovers, down, balanced), recover(p, s, cfg.max_kl), projected
    )
    # Cases whose line search asks nothing of the reward.
    case = jnp.where(recovers, int(Case.OUT_OF_REACH), int(Case.REACHABLE)).astype(jnp.int32)
    return direction, case, jnp.asarray(2, jnp.int32)
