"""The solution of the Stein equation on (0, 1) and its norm in the Matern-5/2 RKHS.

Everything is computed in t = logit(x), where the density is p_t = p(x) w(x), w(x) = x (1 - x). The function
phi = (1 / p_t) * integral of (h - E_p[h]) p_t up to t solves w phi' + (w s + w') phi = h - E_p[h]: it is the
solution for the weighted operator, and f = w phi is the one for the Langevin operator.
"""

from collections.abc import Callable
from math import sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from steingate.certificates.kernels import Kernel, Operator
from steingate.certificates.reference import Interior
from steingate.certificates.risk import Risk

Array = npt.NDArray[np.float64]

ORDER = 14
NODES, WEIGHTS = np.polynomial.legendre.leggauss(ORDER)


def partial_integrals(
    interior: Interior, function: Callable[[Array], Array], t: Array
) -> tuple[Array, Array]:
    """Return the integrals of function(x) p_t from -inf to each t and from each t to inf; t ascending."""
    low, high = interior.logit_range
    low, high = min(low, float(t[0])) - 40.0, max(high, float(t[-1])) + 40.0
    breaks = logit(np.asarray(getattr(function, "breaks", ()), dtype=np.float64))
    edges = np.unique(np.concatenate([np.arange(low, high, 0.25), [high], t, breaks]))
    half = 0.5 * np.diff(edges)[:, None]
    nodes = edges[:-1, None] + half * (1.0 + NODES)
    cells = (function(expit(nodes)) * np.exp(interior.logit_log_pdf(nodes)) * half * WEIGHTS).sum(axis=1)
    at = np.searchsorted(edges, t)
    below = np.concatenate([[0.0], np.cumsum(cells)])[at]
    above = np.concatenate([np.cumsum(cells[::-1])[::-1], [0.0]])[at]
    return below, above


def stein_solution(interior: Interior, risk: Risk, x: npt.ArrayLike) -> Array:
    """Return phi at ascending points of (0, 1): the solution of w phi' + (w s + w') phi = h - E_p[h].

    ``w phi`` solves the Langevin equation f' + s f = h - E_p[h]. NaN where the density underflows.
    """
    points = np.asarray(x, dtype=np.float64)
    t = logit(points)

    def plain(y: Array) -> Array:
        return np.asarray(risk(y), dtype=np.float64)

    plain.breaks = getattr(risk, "breaks", ())  # type: ignore[attr-defined]
    low_mass, high_mass = partial_integrals(interior, np.ones_like, t)
    low_risk, high_risk = partial_integrals(interior, plain, t)
    mean = (low_risk + high_risk) / (low_mass + high_mass)
    # The integral over the lighter side keeps its relative accuracy far into that tail.
    integral = np.where(low_mass < high_mass, low_risk - mean * low_mass, mean * high_mass - high_risk)
    log_density = interior.logit_log_pdf(t)
    return np.where(log_density > -600.0, integral * np.exp(-np.maximum(log_density, -600.0)), np.nan)


def _panel_operators() -> tuple[list[Array], list[Array], list[Array]]:
    """Return, for derivatives 0 to 3 on [-1, 1], the maps from node values to nodes, left and right end."""
    legendre = np.polynomial.legendre
    fit = np.linalg.inv(legendre.legvander(NODES, ORDER - 1))
    inner, left, right = [], [], []
    for order in range(4):
        coefficients = legendre.legder(fit, order, axis=0) if order else fit
        values = [legendre.legval(np.array(at), coefficients) for at in (NODES, -1.0, 1.0)]
        inner.append(values[0].T)
        left.append(values[1])
        right.append(values[2])
    return inner, left, right


_INNER, _LEFT, _RIGHT = _panel_operators()


def matern_norm(interior: Interior, risk: Risk, kernel: Kernel, operator: Operator, panels: int) -> float:
    """Return the Matern-5/2 RKHS norm on (0, 1) of the Stein solution, from polynomials on equal panels.

    With rate r = sqrt(5) / length the squared norm is that of the process (d/dx + r)^3 f = white noise of
    variance 16 r^5 / 3 with stationary start: the integral of the squared left side over that variance plus
    the quadratic form of (f, f', f'')(0) in the inverse of their covariance. Jumps between panels are charged
    as if bridged within one panel, so a solution with a jump or a kink grows with the number of panels.
    """
    width = 1.0 / panels
    nodes = (np.arange(panels)[:, None] + 0.5 * (1.0 + NODES)) * width
    values = stein_solution(interior, risk, nodes.ravel()).reshape(nodes.shape)
    if operator == "langevin":
        values = values * nodes * (1.0 - nodes)
    steps = [(2.0 / width) ** order for order in range(4)]
    f0, f1, f2, f3 = ((values @ _INNER[order].T) * steps[order] for order in range(4))
    rate = sqrt(5.0) / kernel.length
    inside = float(((f3 + 3 * rate * f2 + 3 * rate**2 * f1 + rate**3 * f0) ** 2 @ WEIGHTS).sum()) * width / 2
    jumps = 0.0
    for order in range(3):
        gap = (values[1:] @ _LEFT[order] - values[:-1] @ _RIGHT[order]) * steps[order]
        jumps += float(gap @ gap) / width ** (5 - 2 * order)
    z0, z1, z2 = (float(values[0] @ _LEFT[order]) * steps[order] for order in range(3))
    start = 1.125 * (z0**2 + 2 * z0 * z2 / (3 * rate**2) + z2**2 / rate**4) + 3 * z1**2 / rate**2
    return sqrt(start + 3.0 / (16.0 * rate**5) * (inside + jumps))
