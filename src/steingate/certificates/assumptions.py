"""Assumptions of a Stein certificate, which can be checked before any episode is seen."""

from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from steingate.certificates.factors import required_discrete_weight
from steingate.certificates.formatting import number
from steingate.certificates.reference import HybridReference

if TYPE_CHECKING:
    from steingate.certificates.stein import SteinCertificate


class Assumption(NamedTuple):
    """An assumption: its name, whether it holds, and the numbers."""

    name: str
    holds: bool
    text: str


def check_assumptions(certificate: "SteinCertificate") -> tuple[Assumption, ...]:
    """Return whether U can be within the budget, lambda_int is valid, U is as proven, and violations are bounded."""
    budget, h_ref, factor = certificate.budget, certificate.reference_risk, certificate.factor
    reference = f"h_ref = {h_ref:.6g}, budget {budget:g}"
    if not certificate.attainable:
        reference += "; only the guard can open the gate" if certificate.guard else "; the gate never opens"
    smallest, reason = certificate.found_factor
    known = f"unknown: {reason}" if smallest is None else f"{smallest:.4g}"
    needed = required_discrete_weight(certificate.hybrid_reference, certificate.risk_function)
    hidden = hidden_risk(certificate)
    doubts = {
        f"discrete_weight is below {needed:.4g}": certificate.discrete_weight < needed,
        f"atom_tol and interior_clip may hide a risk of {hidden:.2g}": hidden > 1e-9,
        f"below {certificate.min_interior} interior episodes, SD_int is 0": certificate.min_interior > 1,
        "the guard replaces U by the mean risk of the episodes": certificate.guard,
    }
    form = "; ".join(text for text, applies in doubts.items() if applies)
    multiple = violation_factor(certificate)
    most = f"P(cost > {number(certificate.limit)}) <= {multiple * budget:.3g}"
    violations = f"risk {budget:g}: {most if multiple * budget < 1.0 else 'no bound on violations'}"
    is_valid = smallest is not None and factor >= smallest * (1.0 - 1e-9)
    return (
        Assumption("reference", certificate.attainable, reference),
        Assumption("factor", is_valid, f"lambda_int = {factor:.4g}; smallest valid factor: {known}"),
        Assumption("form", not form, form or "as proven"),
        Assumption("violations", multiple <= 1.0 + 1e-9, violations),
    )


def violation_factor(certificate: "SteinCertificate") -> float:
    """Return 1 / h(just above the limit): P(cost > limit) is at most this multiple of the risk."""
    just_over = min(float(np.nextafter(certificate.limit / certificate.scale, 2.0)), 1.0)
    least = float(np.asarray(certificate.risk_function(np.array([just_over])), dtype=np.float64)[0])
    return 1.0 / least if least > 0.0 else inf


def hidden_risk(certificate: "SteinCertificate") -> float:
    """Return the risk that U may miss because costs within atom_tol count as atoms and others are clipped.

    An episode of the lower atom has risk up to h(atom_tol). With h(atom_tol) for h(0) in the proof of
    ``required_discrete_weight``, only a0* (h(atom_tol) - h(0)) is missing while h(atom_tol) is at most E_p[h]. Above
    1 - interior_clip, h is taken at the clip. All other moves raise the risk.
    """
    x = np.array([0.0, certificate.atom_tol, 1.0 - certificate.interior_clip, 1.0 - certificate.atom_tol])
    at_zero, zero_top, at_clip, one_low = np.asarray(certificate.risk_function(x), dtype=np.float64).tolist()
    mean = HybridReference(certificate.interior).expectation(certificate.risk_function)
    share = certificate.zero_mass if zero_top <= mean else 1.0
    return float(share * (zero_top - at_zero) + max(one_low - at_clip, 0.0))
