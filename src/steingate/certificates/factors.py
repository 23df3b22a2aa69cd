"""Stein factors: how much risk one unit of the interior discrepancy can hide.

The smallest factor with E_q[h] <= E_p[h] + factor KSD(q) for every q is the norm of the Stein solution f in the
RKHS of the kernel; f solves T f = h - E_p[h].

Everything is computed in t = logit(x), where the density is p_t = p(x) w(x), w(x) = x (1 - x). The function
phi = (1 / p_t) * integral of (h - E_p[h]) p_t up to t solves the equation of the weighted operator, f = w phi
that of the Langevin operator.
"""

from collections.abc import Callable
from functools import lru_cache
from math import inf, isfinite, sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import expit, logit

from steingate.certificates.kernels import Kernel, Operator
from steingate.certificates.reference import Beta, HybridReference, Interior
from steingate.certificates.risk import Risk
from steingate.errors import InputError

Array = npt.NDArray[np.float64]

ORDER = 14  # Gauss nodes per panel
PANELS = (12, 24, 48, 96, 192, 384, 768)  # panels of (0, 1), until the norm converges
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(ORDER)


class SteinFactor(NamedTuple):
    """A valid Stein factor for the KSD, or ``None`` and the reason why none is known."""

    value: float | None
    reason: str = ""


@lru_cache(maxsize=128)
def valid_stein_factor(interior: Interior, risk: Risk, kernel: Kernel, operator: Operator) -> SteinFactor:
    """Return the smallest factor that is valid for the KSD: the RKHS norm of the Stein solution of a risk.

    It is computed for Matern-5/2: an integral over the solution and three derivatives, on more and more
    panels until it converges; the last change is added, so that the factor is not too small. The solution of
    a sigmoid or polynomial is not in the RKHS of the RBF kernel, whose functions are entire and decay.
    """
    low, high = np.asarray(risk(np.array([0.0, 1.0])), dtype=np.float64)
    if low == high:
        return SteinFactor(0.0)
    if kernel.name != "matern52":
        return SteinFactor(None, f"none is known for the kernel {kernel.name}, use matern52")
    values: list[float] = []
    change = inf
    for panels in PANELS:
        values.append(matern_norm(interior, risk, kernel, operator, panels))
        if not isfinite(values[-1]):
            return SteinFactor(None, "the density of the reference underflows near 0 or 1, use a wider one")
        before, change = change, abs(values[-1] - values[-2]) if len(values) > 1 else inf
        # Below 1e-7 the change is rounding, which third derivatives on narrow panels only magnify.
        if change <= 1e-7 * values[-1] or (isfinite(before) and change <= min(1e-5 * values[-1], 0.5 * before)):
            return SteinFactor(values[-1] + change)
    return SteinFactor(None, "the norm of the Stein solution diverges, use a smoother risk or reference")


def required_discrete_weight(reference: HybridReference, risk: Risk) -> float:
    """Return the smallest lambda_disc for which U bounds the risk of every distribution of costs.

    With H = E_int[h], the atoms a0, a1 and the interior q_int of q, and a factor that is valid for q_int,

        E_q[h] - h_ref <= (H - h(0)) (a0* - a0) + (h(1) - H) (a1 - a1*) + factor w KSD(q_int),

    because the interior masses differ by (a0* - a0) + (a1* - a1). Both brackets are nonnegative for
    nondecreasing h, so the larger of h(1) - H and H - h(0) suffices, the latter only if a0* > 0. If q_int is
    p_int and one atom is moved, the inequality is an equality.
    """
    at_zero, at_one = np.asarray(risk(np.array([0.0, 1.0])), dtype=np.float64)
    inner = HybridReference(reference.interior).expectation(risk)
    needed = float(at_one) - inner if reference.one_mass < 1.0 else 0.0
    return max(needed, inner - float(at_zero)) if reference.zero_mass > 0.0 else needed


@lru_cache(maxsize=128)
def half_budget_reference(budget: float, risk: Risk, zero_mass: float, one_mass: float) -> Beta:
    """Return the Beta(2, b) whose mean risk, together with the atoms, is ``budget / 2``."""

    def gap(shape: float) -> float:
        return HybridReference(Beta(2.0, shape), zero_mass, one_mass).expectation(risk) - budget / 2.0

    low, high = 1.05, 2000.0
    if not gap(low) >= 0.0 >= gap(high):
        raise InputError(
            f"No Beta(2, b) reference has half of the budget {budget:g} as its risk with this risk function "
            f"and atoms of {zero_mass:g} and {one_mass:g}; give reference=Beta(a, b)."
        )
    return Beta(2.0, float(brentq(gap, low, high, xtol=1e-12, rtol=1e-14)))


def partial_integrals(interior: Interior, function: Callable[[Array], Any], t: Array) -> tuple[Array, Array]:
    """Return the integrals of function(x) p_t from -inf to each t and from each t to inf; t ascending."""
    low, high = interior.logit_range
    low, high = min(low, float(t[0])) - 40.0, max(high, float(t[-1])) + 40.0
    breaks = logit(np.asarray(getattr(function, "breaks", ()), dtype=np.float64))
    edges = np.unique(np.concatenate([np.arange(low, high, 0.25), [high], t, breaks]))
    half = 0.5 * np.diff(edges)[:, None]
    nodes = edges[:-1, None] + half * (1.0 + _NODES)
    values = np.asarray(function(expit(nodes)), dtype=np.float64)
    cells = (values * np.exp(interior.logit_log_pdf(nodes)) * half * _WEIGHTS).sum(axis=1)
    at = np.searchsorted(edges, t)
    below = np.concatenate([[0.0], np.cumsum(cells)])[at]
    above = np.concatenate([np.cumsum(cells[::-1])[::-1], [0.0]])[at]
    return below, above


def stein_solution(interior: Interior, risk: Risk, x: npt.ArrayLike) -> Array:
    """Return phi at ascending points x in (0, 1): the solution of w phi' + (w s + w') phi = h - E_p[h].

    ``w phi`` solves the Langevin equation f' + s f = h - E_p[h]. NaN where the density underflows.
    """
    t = logit(np.asarray(x, dtype=np.float64))
    low_mass, high_mass = partial_integrals(interior, np.ones_like, t)
    low_risk, high_risk = partial_integrals(interior, risk, t)
    mean = (low_risk + high_risk) / (low_mass + high_mass)
    # The integral over the lighter side keeps its relative accuracy far into that tail.
    integral = np.where(low_mass < high_mass, low_risk - mean * low_mass, mean * high_mass - high_risk)
    log_density = interior.logit_log_pdf(t)
    return np.where(log_density > -600.0, integral * np.exp(-np.maximum(log_density, -600.0)), np.nan)


def matern_norm(interior: Interior, risk: Risk, kernel: Kernel, operator: Operator, panels: int) -> float:
    """Return the Matern-5/2 RKHS norm on (0, 1) of the Stein solution, from polynomials on equal panels.

    With rate r = sqrt(5) / length the squared norm is that of the process (d/dx + r)^3 f = white noise of
    variance 16 r^5 / 3 with stationary start: the integral of the squared left side over that variance plus
    the quadratic form of (f, f', f'')(0) in the inverse of their covariance. Jumps between panels are charged
    as if bridged within one panel, so a solution with a jump or a kink grows with the number of panels.
    """
    width = 1.0 / panels
    nodes = (np.arange(panels)[:, None] + 0.5 * (1.0 + _NODES)) * width
    values = stein_solution(interior, risk, nodes.ravel()).reshape(nodes.shape)
    if operator == "langevin":
        values = values * nodes * (1.0 - nodes)
    steps = [(2.0 / width) ** order for order in range(4)]
    f0, f1, f2, f3 = ((values @ _INNER[order].T) * steps[order] for order in range(4))
    rate = sqrt(5.0) / kernel.length
    inside = float(((f3 + 3 * rate * f2 + 3 * rate**2 * f1 + rate**3 * f0) ** 2 @ _WEIGHTS).sum()) * width / 2
    jumps = 0.0
    for order in range(3):
        gap = (values[1:] @ _LEFT[order] - values[:-1] @ _RIGHT[order]) * steps[order]
        jumps += float(gap @ gap) / width ** (5 - 2 * order)
    z0, z1, z2 = (float(values[0] @ _LEFT[order]) * steps[order] for order in range(3))
    start = 1.125 * (z0**2 + 2 * z0 * z2 / (3 * rate**2) + z2**2 / rate**4) + 3 * z1**2 / rate**2
    return sqrt(start + 3.0 / (16.0 * rate**5) * (inside + jumps))


def _panel_operators() -> tuple[list[Array], list[Array], list[Array]]:
    """Return, for derivatives 0 to 3 on [-1, 1], the maps from node values to nodes, left and right end."""
    legendre = np.polynomial.legendre
    fit = np.linalg.inv(legendre.legvander(_NODES, ORDER - 1))
    inner, left, right = [], [], []
    for order in range(4):
        coefficients = legendre.legder(fit, order, axis=0) if order else fit
        values = [legendre.legval(np.array(at), coefficients) for at in (_NODES, -1.0, 1.0)]
        inner.append(values[0].T)
        left.append(values[1])
        right.append(values[2])
    return inner, left, right


_INNER, _LEFT, _RIGHT = _panel_operators()
