"""Stein factors: how much risk one unit of interior discrepancy can hide.

Two norms of the solution f of the Stein equation T f = h - E_p[h] are offered. The lemma's B_int belongs to
the discrepancy over all bounded f with bounded w f'; the RKHS factor belongs to the kernel Stein discrepancy,
and only it makes ``E_q[h] <= E_p[h] + factor * KSD(q)`` hold for the KSD.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import inf, isfinite, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from steingate.certificates.checks import hashable
from steingate.certificates.kernels import Kernel, Operator, stein_kernel
from steingate.certificates.reference import HybridReference, Interior
from steingate.certificates.risk import Risk
from steingate.certificates.solution import matern_norm, partial_integrals

Array = npt.NDArray[np.float64]

PANELS = (12, 24, 48, 96, 192, 384, 768)
GRIDS = (100, 200, 400)
CUTS = (1e-7, 1e-9, 1e-11, 1e-13)


@dataclass(frozen=True)
class LemmaConstants:
    """The constants of the lemma on the interior Stein factor, and whether its assumption holds.

    ``K_p`` = sup min(F, 1 - F) / p, ``M_p`` = sup ``|w s|``, ``B_int`` = K_p + 1/4 + M_p K_p. The published
    bound doubles B_int for ``||h - E_p[h]||`` <= 2; h in [0, 1] gives ``||h - E_p[h]||`` <= 1, so it is not
    doubled here.
    """

    K_p: float
    M_p: float
    B_int: float
    holds: bool
    reason: str


@dataclass(frozen=True)
class FactorResult:
    """A valid Stein factor for the KSD, or ``value=None`` with the reason why there is none.

    ``sizes`` and ``values`` are the resolutions tried and the factor each gave.
    """

    value: float | None
    converged: bool
    reason: str
    sizes: tuple[int, ...] = ()
    values: tuple[float, ...] = ()


def lemma_constants(interior: Interior) -> LemmaConstants:
    """Return K_p, M_p and B_int of a density, with ``holds=False`` and the reason where one is infinite."""
    cached: Any = interior
    return _cached_constants(cached) if hashable(interior) else _constants(interior)


def _constants(interior: Interior) -> LemmaConstants:
    reach = (8.0, 14.0, 20.0)
    coarse = np.linspace(-reach[-1], reach[-1], 4001)

    def mills(t: Array) -> Array:
        below, above = partial_integrals(interior, np.ones_like, t)
        log_density = interior.logit_log_pdf(t)
        ratio = np.minimum(below, above) * np.exp(-np.maximum(log_density, -600.0)) * expit(t) * expit(-t)
        return np.where(log_density > -600.0, ratio, 0.0)  # thinner tails underflow, and F / p is small there

    def weighted_score(t: Array) -> Array:
        return np.abs(interior.logit_score(expit(t)) + np.tanh(0.5 * t))

    found = []
    for function in (mills, weighted_score):
        curve = function(coarse)
        tops = [float(curve[np.abs(coarse) <= edge].max()) for edge in reach]
        settled = isfinite(tops[-1]) and tops[-1] <= tops[-2] * 1.001
        top = int(np.argmax(curve))
        # min(F, 1 - F) has a kink at the median, where K_p usually is: look closely around the maximum.
        fine = np.linspace(coarse[max(top - 1, 0)], coarse[min(top + 1, coarse.size - 1)], 8001)
        found.append(max(tops[-1], float(function(fine).max())) if settled else inf)
    K_p, M_p = found
    bad = [
        f"{name} is infinite ({what})"
        for name, value, what in (
            ("K_p", K_p, "the tails of the density are too thin for min(F, 1 - F) / p to stay bounded"),
            ("M_p", M_p, "x (1 - x) times the score grows without bound towards 0 or 1"),
        )
        if not isfinite(value)
    ]
    if bad:
        return LemmaConstants(
            K_p, M_p, inf, False, "The lemma's assumption fails: " + " and ".join(bad) + "."
        )
    return LemmaConstants(K_p, M_p, K_p + 0.25 + M_p * K_p, True, "K_p and M_p are finite.")


def grid_factors(
    interior: Interior,
    risk: Risk,
    kernel: Kernel,
    operator: Operator,
    size: int,
    cuts: tuple[float, ...] = CUTS,
) -> tuple[float, ...]:
    """Return sqrt(g' K^-1 g) on a grid of ``size`` points, once per relative eigenvalue below which K is cut.

    g = h - E_p[h] and K is the Stein kernel matrix, scaled to unit diagonal. Each is a lower bound of the
    factor: more points and a smaller cut can only add.
    """
    x = 0.5 - 0.5 * np.cos(np.pi * (np.arange(size) + 0.5) / size)
    matrix = stein_kernel(x, x, interior, kernel, operator)
    scale = 1.0 / np.sqrt(np.diag(matrix))
    g = (np.asarray(risk(x), dtype=np.float64) - HybridReference(interior).expectation(risk)) * scale
    eigenvalues, vectors = np.linalg.eigh(matrix * scale[:, None] * scale)
    parts = (vectors.T @ g) ** 2
    kept = [eigenvalues > cut * eigenvalues[-1] for cut in cuts]
    return tuple(sqrt(float((parts[keep] / eigenvalues[keep]).sum())) for keep in kept)


def rkhs_factor(
    reference: HybridReference | Interior, risk: Risk, kernel: Kernel, operator: Operator
) -> FactorResult:
    """Return the RKHS norm of the Stein solution of a risk: the smallest factor that is valid for the KSD.

    Only the interior of the reference matters. For Matern-5/2 the norm is an integral over the solution and
    three derivatives, taken on ever more panels until it settles; the last change is added, so that the
    factor is not too small. For ``imq`` it is the limit of sqrt(g' K^-1 g) over grids and eigenvalue cuts:
    taken as settled when both change it by less than 0.1 % and by less with every cut, with 20 times the last
    change added for what lies below double precision. A solution outside the RKHS makes these grow without
    end: then ``value`` is None (for the sigmoid, from imq lengths of 2 pi times its width). ``rbf`` is always
    refused: functions in its RKHS are entire and decay, which neither sigmoids nor polynomials do.
    """
    interior = reference.interior if isinstance(reference, HybridReference) else reference
    parts: tuple[Any, ...] = (interior, risk, kernel, operator)
    return _cached_factor(*parts) if hashable(parts) else _factor(interior, risk, kernel, operator)


def _factor(interior: Interior, risk: Risk, kernel: Kernel, operator: Operator) -> FactorResult:
    low, high = np.asarray(risk(np.array([0.0, 1.0])), dtype=np.float64)
    if low == high:
        return FactorResult(0.0, True, "The risk is constant, so no discrepancy can change it.")
    if kernel.name == "matern52":
        return _settled_norm(lambda panels: matern_norm(interior, risk, kernel, operator, panels))
    if kernel.name == "rbf":
        reason = (
            "The Stein solution is not in the Gaussian RKHS, so no factor is valid: "
            "use matern52, or take the bound as a heuristic."
        )
        return FactorResult(None, False, reason)
    rows = [grid_factors(interior, risk, kernel, operator, size) for size in GRIDS]
    values = tuple(row[-1] for row in rows)
    last = rows[-1]
    steps = np.abs(np.diff(last))
    change = max(float(steps[-1]), abs(values[-1] - values[-2]))
    if not (change <= 1e-3 * values[-1] and np.all(steps[1:] <= 0.95 * steps[:-1])):
        reason = (
            f"The factor of {kernel.name} with length {kernel.length:g} still changes by "
            f"{change / values[-1]:.2%} on the finest grid, so none is known to be valid: "
            "use matern52 or a shorter length."
        )
        return FactorResult(None, False, reason, GRIDS, values)
    reason = "The factor has settled on the grid as far as double precision can tell."
    return FactorResult(values[-1] + 20.0 * change, True, reason, GRIDS, values)


@lru_cache(maxsize=64)
def _cached_constants(interior: Any) -> LemmaConstants:
    return _constants(interior)


@lru_cache(maxsize=256)
def _cached_factor(interior: Any, risk: Any, kernel: Kernel, operator: Operator) -> FactorResult:
    return _factor(interior, risk, kernel, operator)


def _settled_norm(norm: Callable[[int], float]) -> FactorResult:
    values: list[float] = []
    change = inf
    for panels in PANELS:
        values.append(norm(panels))
        if not isfinite(values[-1]):
            reason = (
                "The density of the reference underflows near 0 or 1, too thin for double precision: "
                "use one that is spread more widely."
            )
            return FactorResult(None, False, reason, PANELS[: len(values)], tuple(values))
        before, change = change, abs(values[-1] - values[-2]) if len(values) > 1 else inf
        # Below 1e-7 the change is rounding, which third derivatives on narrow panels would only magnify.
        if change <= 1e-7 * values[-1] or (
            isfinite(before) and change <= min(1e-5 * values[-1], 0.5 * before)
        ):
            reason = "The norm of the Stein solution has settled."
            return FactorResult(values[-1] + change, True, reason, PANELS[: len(values)], tuple(values))
    reason = (
        "The Matern-5/2 norm of the Stein solution does not settle (its third derivative seems not to be "
        "square integrable), so no factor is known to be valid: use a smoother risk or reference."
    )
    return FactorResult(None, False, reason, PANELS, tuple(values))


def required_discrete_weight(reference: HybridReference, risk: Risk) -> float:
    """Return the smallest lambda_disc for which the hybrid bound holds for every distribution of costs.

    With H = E_int[h], the atoms a0, a1 and the interior q_int of q, and a factor that is valid for q_int,

        E_q[h] - h_ref <= (H - h(0)) (a0* - a0) + (h(1) - H) (a1 - a1*) + factor w KSD(q_int),

    because the interior masses differ by (a0* - a0) + (a1* - a1). Both brackets are nonnegative for
    nondecreasing h, so SD_disc = (a0* - a0)_+ + (a1 - a1*)_+ suffices with the larger of h(1) - H and
    H - h(0), the latter only if a0* > 0. For q_int = p_int and one atom moved the inequality is an equality,
    so nothing smaller will do. h in [0, 1] makes lambda_disc = 1 always enough, with or without atoms in the
    reference.
    """
    at_zero, at_one = np.asarray(risk(np.array([0.0, 1.0])), dtype=np.float64)
    inner = HybridReference(reference.interior).expectation(risk)
    needed = float(at_one) - inner if reference.one_mass < 1.0 else 0.0
    return max(needed, inner - float(at_zero)) if reference.zero_mass > 0.0 else needed
