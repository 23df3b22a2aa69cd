"""One evaluation: costs in, result out; what does not depend on the costs is in the certificate."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from steingate.certificates.io import Costs
from steingate.certificates.kernels import Kernel, ksd, released_length
from steingate.certificates.null import null_quantile
from steingate.certificates.result import DecidedBy, Result

if TYPE_CHECKING:
    from steingate.certificates.certificate import Certificate

_NO_EXCESS = 1e-12  # the released code's tolerance for "no excess violation mass"
_HUGE = 1e300  # sums from here on might overflow


def evaluate(certificate: "Certificate", costs: Costs) -> Result:
    """Return the certificate of costs that have been checked."""
    n = costs.size
    x = np.minimum(costs, certificate.scale) / certificate.scale
    inside = (x > certificate.zero_tol) & (x < 1.0 - certificate.one_tol)
    m = int(np.count_nonzero(inside))
    ones = 0 if m == n else int(np.count_nonzero(x >= 1.0 - certificate.one_tol))
    zeros = n - m - ones
    zero_mass, one_mass, interior_mass = zeros / n, ones / n, m / n
    risks = np.asarray(certificate.risk(x), dtype=np.float64)
    empirical_risk = float(np.add.reduce(risks)) / n
    found_ksd = _ksd(certificate, x if m == n else x[inside])
    weight = interior_mass if certificate.interior_weighted else 1.0

    excess_mass = max(one_mass - certificate.one_mass, 0.0)
    discrete = max(certificate.zero_mass - zero_mass, 0.0) + excess_mass
    discrete_term = certificate.discrete_weight * discrete
    factor = certificate.stein_factor
    interior_term = None if factor is None else factor * weight * _used(certificate, found_ksd)
    stein_bound = (
        None if interior_term is None else certificate.reference_risk + discrete_term + interior_term
    )

    guarded = certificate.guard != "none" and _guard_holds(certificate, one_mass, excess_mass, empirical_risk)
    # Without a factor the rule is confident, which puts its own bound here.
    bound = empirical_risk if guarded or stein_bound is None else stein_bound
    decided_by: DecidedBy = "guard" if guarded else "stein_bound"
    value = bound
    extra: dict[str, Any] = {}
    if certificate.decision == "excess" and not guarded:
        quantile = _noise(certificate, m)
        excess = max(found_ksd - quantile, 0.0)
        value = (
            certificate.reference_risk
            + discrete_term
            + certificate.factor * weight * _used(certificate, excess)
        )
        decided_by = "excess"
        extra = {"null_quantile": quantile, "excess_discrepancy": _used(certificate, excess)}
        # Without noise the bound is never below the mean risk, so what noise is taken off must stop there.
        if value < empirical_risk:
            value, decided_by = empirical_risk, "mean_risk"
    elif certificate.confidence is not None:
        bound = value = certificate.confidence.upper(risks)
        guarded, decided_by = False, "direct_confidence"
        extra = {
            "delta": certificate.delta,
            "count_more": partial(certificate.confidence.more_episodes, risks),
        }
    worst = float(costs.max())
    return Result(
        bound=bound,
        safe=value <= certificate.budget,
        budget=certificate.budget,
        decided_by=decided_by,
        decision_value=value,
        preset=certificate.preset_name,
        limit=certificate.limit,
        scale=certificate.scale,
        samples=n,
        interior_samples=m,
        zero_mass=zero_mass,
        one_mass=one_mass,
        interior_mass=interior_mass,
        reference_risk=certificate.reference_risk,
        empirical_risk=empirical_risk,
        discrete_discrepancy=discrete,
        interior_discrepancy=_used(certificate, found_ksd),
        discrete_term=discrete_term,
        interior_term=interior_term,
        stein_bound=stein_bound,
        guarded=guarded,
        stein_factor=factor,
        violation_factor=certificate.violation_factor,
        attainable=certificate.attainable,
        valid=certificate.valid,
        over=int(np.count_nonzero(costs > certificate.limit)),
        mean_cost=_mean(costs, worst),
        worst_cost=worst,
        over_delta=certificate.delta,
        checks=certificate.checks,
        **extra,
    )


def _mean(costs: Costs, worst: float) -> float:
    n = costs.size
    return float(np.add.reduce(costs)) / n if worst < _HUGE / n else float(np.add.reduce(costs / n))


def _ksd(certificate: "Certificate", x: Costs) -> float:
    m = x.size
    if m < certificate.min_interior:
        return 0.0
    if certificate.zero_tol < certificate.interior_clip or certificate.one_tol < certificate.interior_clip:
        x = np.clip(x, certificate.interior_clip, 1.0 - certificate.interior_clip)
    kernel = certificate.base_kernel or Kernel(
        certificate.kernel, released_length(x, certificate.min_bandwidth)
    )
    return ksd(x, certificate.interior, kernel, certificate.operator)


def _used(certificate: "Certificate", value: float) -> float:
    return value if certificate.interior_statistic == "ksd" else value * value


def _guard_holds(
    certificate: "Certificate", one_mass: float, excess_mass: float, empirical_risk: float
) -> bool:
    watched = one_mass if certificate.guard == "paper" else excess_mass
    return watched <= _NO_EXCESS and empirical_risk <= certificate.reference_risk + certificate.guard_slack


def _noise(certificate: "Certificate", m: int) -> float:
    if m < certificate.min_interior:
        return 0.0
    if m not in certificate.noise_of:
        assert certificate.base_kernel is not None
        certificate.noise_of[m] = null_quantile(
            certificate.interior,
            certificate.base_kernel,
            certificate.operator,
            m,
            certificate.alpha,
            certificate.interior_clip,
        )
    return certificate.noise_of[m]
