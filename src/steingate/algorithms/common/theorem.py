"""What the safety theorem says about a step that was made: its quantities measured on the epoch's data."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from steingate.algorithms.common.base import Batch, Log, Params
from steingate.algorithms.common.heads import log_prob
from steingate.certificates.certificate import Certificate
from steingate.certificates.concentration import (
    concentration_radii,
    discrepancy_lower_bound,
    stein_kernel_bound,
    step_condition,
)
from steingate.certificates.kernels import Kernel, released_length
from steingate.gates.base import Episodes


@jax.jit
def _mean_total_variation(params: Params, obs: Any, act: Any, logp: Any) -> jax.Array:
    return 0.5 * jnp.mean(jnp.abs(1.0 - jnp.exp(log_prob(params, obs, act) - logp)))


def mean_total_variation(new: Params, batch: Batch) -> float:
    """Return the total variation between old and new policy, averaged over the states of the batch.

    TV = ½ E|1 - ratio| under the old policy, estimated on the actions it took.
    """
    return float(_mean_total_variation(new, batch.obs, batch.act, batch.logp))


def step_audit(
    certificate: Certificate, advantage_bound: float = 1.0
) -> Callable[[Episodes, Batch, Params], Log]:
    """Return a function that logs margin, penalty and required factor of the theorem for the step made.

    H is the longest episode of the epoch. epsilon_h, ``advantage_bound``, must hold for every state. The risk
    of an episode lies in [0, 1], so 1 always does; the advantages of a batch do not show it: they are
    centered, discounted and of visited states only. Without a finished episode only the total variation is
    known.
    """

    def audit(episodes: Episodes, batch: Batch, new: Params) -> Log:
        variation = mean_total_variation(new, batch)
        if len(episodes.cost) == 0:
            return {"theorem/total_variation": variation}
        result = certificate.evaluate(episodes.cost)
        radii = concentration_radii(
            result.samples,
            result.interior_samples,
            certificate.delta,
            stein_kernel_bound(
                certificate.interior,
                _kernel(certificate, episodes.cost),
                certificate.operator,
                certificate.interior_clip,
            ),
            form="ksd" if certificate.interior_statistic == "ksd" else "squared",
            stein_factor=result.stein_factor,
            kernel_from_data=certificate.base_kernel is None,
        )
        lower = discrepancy_lower_bound(
            result.discrete_discrepancy, result.interior_discrepancy, result.interior_mass, radii
        )
        condition = step_condition(
            lower,
            result.stein_factor,
            advantage_bound=advantage_bound,
            horizon=int(episodes.length.max()),
            mean_total_variation=variation,
            budget=certificate.budget,
        )
        return {
            "theorem/total_variation": variation,
            "theorem/advantage_bound": advantage_bound,
            "theorem/horizon": float(episodes.length.max()),
            "theorem/discrepancy": lower.value,
            "theorem/margin": condition.margin,
            "theorem/penalty": condition.penalty,
            "theorem/required_factor": condition.required_factor,
            "theorem/holds": float(condition.holds),
        }

    return audit


def _kernel(certificate: Certificate, costs: Any) -> Kernel:
    """Return the kernel of the discrepancy; the released rule takes its length from the samples."""
    if certificate.base_kernel is not None:
        return certificate.base_kernel
    x = np.minimum(costs, certificate.scale) / certificate.scale
    inside = x[(x > certificate.zero_tol) & (x < 1.0 - certificate.one_tol)]
    clipped = np.clip(inside, certificate.interior_clip, 1.0 - certificate.interior_clip)
    return Kernel(certificate.kernel, released_length(clipped, certificate.min_bandwidth))
