"""What a configuration can promise before any episode is seen, and what it cannot."""

from typing import TYPE_CHECKING

import numpy as np

from steingate.certificates.kernels import Kernel
from steingate.certificates.old_factors import lemma_constants, required_discrete_weight
from steingate.certificates.plan import episodes_needed, noise_episodes
from steingate.certificates.reference import HybridReference
from steingate.certificates.result import Check

if TYPE_CHECKING:
    from steingate.certificates.certificate import Certificate

_NEGLIGIBLE = 1e-9


def attainability(certificate: "Certificate") -> tuple[Check, ...]:
    """Return the checks of a configuration: what it needs to be proven, and what its number then says."""
    if certificate.decision == "confident":  # needs neither reference nor factor
        return _sample_check(), _size_check(certificate), _risk_check(certificate)
    checks = [_reference_check(certificate), _factor_check(certificate), _form_check(certificate)]
    return (*checks, _lemma_check(certificate), _size_check(certificate), _risk_check(certificate))


def proven(certificate: "Certificate") -> bool:
    """Return whether a proof stands behind the number that is compared with the budget."""
    if certificate.decision == "confident":
        return True
    return _factor_check(certificate).holds and _form_check(certificate).holds


def _reference_check(certificate: "Certificate") -> Check:
    risk, budget = certificate.reference_risk, certificate.budget
    if risk < budget:
        text = f"The reference's risk {risk:.6g} is below the budget {budget:g} by {budget - risk:.4g}."
        return Check("reference", True, text)
    text = f"The reference's risk {risk:.6g} is not below the budget {budget:g}, so the Stein bound never is."
    if certificate.guard != "none":
        text += " Only the empirical guard can open the gate, and the guard carries no guarantee."
    return Check("reference", False, text)


def _factor_check(certificate: "Certificate") -> Check:
    factor, required = certificate.stein_factor, certificate.required_factor
    assert factor is not None  # only confident goes without
    if required is None:
        text = f"The Stein factor {factor:.4g} is not known to be valid: {certificate.factor_reason}."
        return Check("factor", False, text)
    holds = factor >= required * (1.0 - 1e-9)
    sign = "is at least" if holds else "is below"
    return Check(
        "factor", holds, f"The Stein factor {factor:.4g} {sign} the smallest valid one, {required:.4g}."
    )


def _form_check(certificate: "Certificate") -> Check:
    doubts = []
    if certificate.interior_statistic != "ksd":
        doubts.append("the squared discrepancy stands where the proof has the discrepancy itself")
    hybrid = HybridReference(certificate.interior, certificate.zero_mass, certificate.one_mass)
    needed = required_discrete_weight(hybrid, certificate.risk)
    if certificate.discrete_weight < needed:
        doubts.append(
            f"the atoms weigh {certificate.discrete_weight:g}, less than the {needed:.4g} they need"
        )
    hidden = hidden_risk(certificate)
    if hidden > _NEGLIGIBLE:
        doubts.append(
            f"zero_tol, one_tol and interior_clip may hide {hidden:.2g} of the risk: make them smaller"
        )
    if certificate.min_interior > 1:
        doubts.append(f"fewer than {certificate.min_interior} interior episodes count as no discrepancy")
    if certificate.guard != "none":
        doubts.append("the empirical guard replaces the bound by the mean risk of the episodes seen")
    if doubts:
        return Check(
            "form", False, f"The number compared with the budget is no proven bound: {'; '.join(doubts)}."
        )
    return Check("form", True, "The bound has the form that is proven.")


def hidden_risk(certificate: "Certificate") -> float:
    """Return the risk that treating costs as 0, or moving them down to the clip, may leave out of the bound.

    An episode of the zero atom has risk up to h(zero_tol). Put h(zero_tol) for h(0) in the proof of
    ``required_discrete_weight``: as long as it is at most H = E_int[h], only a0* (h(zero_tol) - h(0)) is
    missing. Above 1 - interior_clip, h is taken at the clip. All other moves raise the risk.
    """
    points = np.array([0.0, certificate.zero_tol, 1.0 - certificate.interior_clip, 1.0 - certificate.one_tol])
    at_zero, zero_top, at_clip, one_low = np.asarray(certificate.risk(points), dtype=np.float64).tolist()
    inner = HybridReference(certificate.interior).expectation(certificate.risk)
    share = certificate.zero_mass if zero_top <= inner else 1.0
    return float(share * (zero_top - at_zero) + max(one_low - at_clip, 0.0))


def _lemma_check(certificate: "Certificate") -> Check:
    constants = lemma_constants(certificate.interior)
    if constants.holds:
        text = (
            f"The reference satisfies the lemma: K_p = {constants.K_p:.4g}, M_p = {constants.M_p:.4g}, "
            f"B_int = {constants.B_int:.5g}."
        )
        return Check("lemma", True, text)
    return Check("lemma", False, constants.reason)


def _sample_check() -> Check:
    text = (
        "The guarantee is for independent episodes of one unchanged policy whose number was fixed before the "
        "first look; to look while episodes arrive, use a Monitor (steingate monitor)."
    )
    return Check("sample", True, text)


def _risk_check(certificate: "Certificate") -> Check:
    factor, budget, limit = certificate.violation_factor, certificate.budget, certificate.limit
    if factor <= 1.0 + 1e-9:
        share = _percent(budget)
        text = f"A risk of at most {budget:g} means at most {share} of episodes over the limit {limit:g}."
        return Check("risk", True, text)
    most = factor * budget
    if most >= 1.0:
        text = (
            f"A risk of at most {budget:g} says nothing about how many episodes are over the limit {limit:g}"
        )
    else:
        text = (
            f"The risk is soft: a risk of at most {budget:g} allows up to {factor:.3g} times as many "
            f"episodes, {_percent(most)}, over the limit {limit:g}"
        )
    return Check("risk", False, f"{text}; risk='exceedance' counts them.")


def _percent(share: float) -> str:
    return f"{100.0 * share:.4g} %"


def _size_check(certificate: "Certificate") -> Check:
    budget = certificate.budget
    if certificate.decision == "confident":
        needed = episodes_needed(budget, certificate.delta)
        text = (
            f"{needed} episodes without any risk certify the budget {budget:g} "
            f"with error probability {certificate.delta:g}; fewer cannot."
        )
        return Check("size", True, text)
    if not certificate.attainable:
        return Check("size", False, "No number of episodes brings the Stein bound within the budget.")
    if certificate.kernel_length is None:
        text = "How many episodes outweigh sampling noise is unknown: the kernel depends on the samples."
        return Check("size", False, text)
    enough = noise_episodes(
        certificate.interior,
        Kernel(certificate.kernel, certificate.kernel_length),
        certificate.operator,
        certificate.factor,
        certificate.reference_risk,
        budget,
        certificate.alpha,
        certificate.interior_clip,
    )
    text = (
        f"From {enough} interior episodes on, sampling noise fits into the "
        f"{budget - certificate.reference_risk:.4g} that the reference leaves of the budget"
    )
    text += "; below that the rule takes the noise off." if certificate.decision == "excess" else "."
    return Check("size", True, text)
