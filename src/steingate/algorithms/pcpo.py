"""PCPO (Yang et al., ICLR 2020): a trust-region step for reward, projected onto the cost limit.

    d = a x - max(0, (a r + c) / s) p,   a = sqrt(2 max_kl / q)

in the notation of ``common.trust_region``: the step in the metric of H nearest to the reward step a x that satisfies
c + b.d <= 0. A recovery minimizes the cost. The gate is CPO's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from steingate.algorithms.base import MethodInfo, Mode, TrustRegionAlgorithm
from steingate.algorithms.config import LineSearchConfig
from steingate.algorithms.cpo import MeanCostConstraint
from steingate.settings import group


@dataclass(frozen=True)
class PCPO(MeanCostConstraint, TrustRegionAlgorithm):
    """Projection-based constrained policy optimization."""

    info = MethodInfo(
        "pcpo",
        "a trust-region step for reward, projected onto the limit on the mean cost",
        "Projection-Based Constrained Policy Optimization (Yang et al., ICLR 2020)",
        "multiplies the natural gradient by the Fisher matrix again, so its reward step is a plain "
        "gradient of another length; uses the violation per episode",
        "projects the natural-gradient step, with the violation per step; violates the limit where "
        "CPO's corrected update does",
        constraint="mean cost", update="trust region, projected", order=20, color="#4fa3d1",
    )  # fmt: skip
    line_search: LineSearchConfig = group(lambda: LineSearchConfig(backtrack_iters=200), flat=True)

    def step_rule(self) -> Any:
        """Return the step with :func:`projected_direction`."""
        return super().step_rule()._replace(solve=projected_direction)


def projected_direction(product: Callable[[Any], Any], g: Any, b: Any, mode: Any, c: Any, rule: Any) -> Any:
    """Return PCPO's full step, its case and 2; it replaces ``common.trust_region.solve_direction``.

    ``variant="published"`` uses H x in place of x in the reward step.
    """
    import jax
    import jax.numpy as jnp

    from steingate.algorithms.common.trust_region import Case, conjugate_gradient, recover

    region = rule.trust_region
    x, q = conjugate_gradient(product, g, region.cg_iters)
    p, s = conjugate_gradient(product, b, region.cg_iters)
    first = product(x) if rule.variant == "published" else x
    steps = recover(p, s, region.max_kl), project(first, p, q, jnp.vdot(g, p), s, c, region.max_kl)
    recovers = mode == Mode.RECOVER
    direction = jax.tree.map(lambda down, onto: jnp.where(recovers, down, onto), *steps)
    # Cases in which the line search ignores the reward.
    case = jnp.where(recovers, int(Case.OUT_OF_REACH), int(Case.REACHABLE)).astype(jnp.int32)
    return direction, case, jnp.asarray(2, jnp.int32)


def project(first: Any, p: Any, q: Any, r: Any, s: Any, c: Any, max_kl: float) -> Any:
    """Return the step of trust-region length along ``first``, projected onto c + b.d <= 0 in the metric of H."""
    import jax.numpy as jnp

    from steingate.algorithms.common.trust_region import SMALL, Direction

    size = jnp.sqrt(2.0 * max_kl / (q + SMALL))
    back = jnp.maximum((size * r + c) / (s + SMALL), 0.0)
    return Direction(size * first - back * p, 1.0 / (size + SMALL), back)
