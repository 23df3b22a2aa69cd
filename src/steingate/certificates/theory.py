"""The paper's finite-sample statements as numbers: concentration radii, SD_tot^+ and the condition of Theorem 4.3.

They hold for independent episodes with one distribution, and for a bounded Stein kernel that was not chosen from the
samples (the length of ``paper`` and ``released`` is). The paper's proof needs three events with error delta / 3 each,
and both inequalities of its lemma follow from the same three, so every statement holds with probability 1 - delta
(the text has 1 - 2 delta once). The text concentrates the V-statistic around its mean, which exceeds the squared KSD
by at most M_u / m; that bias is included here.

Theorem 4.3: a policy step keeps the risk within the budget if lambda_k SD_tot^+ covers the penalty 2 H² epsilon_h TV.
"""

from math import inf, isfinite, log, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from steingate.certificates.kernels import Kernel, Operator, stein_coefficients
from steingate.certificates.reference import Interior
from steingate.errors import InputError

Array = npt.NDArray[np.float64]


class ConcentrationRadii(NamedTuple):
    """Errors of the empirical discrepancies: of SD_disc and w (``mass``), and of SD_int (``interior``)."""

    mass: float
    interior: float

    def total(self, interior_discrepancy: float) -> float:
        """Return the radius of SD_tot = SD_disc + w SD_int for a true interior discrepancy SD_int."""
        return self.interior + self.mass * (1.0 + interior_discrepancy)


def concentration_radii(
    n: int, m: int, delta: float, kernel_bound: float, squared_ksd: bool = False
) -> ConcentrationRadii:
    """Return radii that hold together with probability 1 - delta for n episodes, m of them between the atoms.

    ``mass`` is 2 sqrt(log(6/delta) / (2 n)), from Hoeffding's inequality for both atoms. ``interior`` is the radius of
    the mean embedding at delta / 3, or, if SD_int is the squared KSD as in the appendix of the paper,
    2 sqrt(2) M_u sqrt(log(6/delta) / m) + M_u / m, from McDiarmid's inequality and the bias.

    Parameters
    ----------
    kernel_bound
        M_u (:func:`stein_kernel_bound`). For the Langevin kernel of a Beta density clipped at 1e-5 it is about 1e11:
        the radii say nothing at any practical n.
    """
    for name, number in (("n", n), ("m", m)):
        if number != int(number) or number < 0 or (name == "n" and number < 1):
            raise InputError(f"{name} is {number!r}; give a whole number of samples.")
    if m > n:
        raise InputError(f"m is {m}; there cannot be more interior samples than the n = {n} episodes.")
    if not 0.0 < delta < 1.0:
        raise InputError(f"delta is {delta!r}; give an error probability between 0 and 1.")
    level = log(6.0 / delta)
    if m == 0 or not isfinite(kernel_bound):
        interior = inf
    elif squared_ksd:
        interior = 2.0 * sqrt(2.0) * kernel_bound * sqrt(level / m) + kernel_bound / m
    else:
        interior = embedding_radius(kernel_bound, m, delta / 3.0)
    return ConcentrationRadii(2.0 * sqrt(level / (2.0 * n)), interior)


def embedding_radius(kernel_bound: float, m: int, delta: float) -> float:
    """Return sqrt(M_u / m) (1 + sqrt(2 log(1/delta))), the radius of a mean embedding of m samples.

    The distance between the empirical and the true mean embedding is at most this with probability 1 - delta: its mean
    is at most sqrt(M_u / m), one sample moves it by at most 2 sqrt(M_u) / m, and McDiarmid's inequality does the rest.
    The KSD is the norm of the empirical embedding.
    """
    return sqrt(kernel_bound / m) * (1.0 + sqrt(-2.0 * log(delta)))


def discrepancy_lower_bound(
    discrete_discrepancy: float, interior_discrepancy: float, interior_mass: float, radii: ConcentrationRadii
) -> float:
    """Return SD_tot^+ = max(SD_tot - eps_int - eps_w (1 + SD_int + eps_int), 0) from empirical discrepancies.

    ``interior_discrepancy`` is the KSD or its square, as the radii are. Without an interior sample only the discrete
    part counts.
    """
    if not isfinite(radii.interior):
        return max(discrete_discrepancy - radii.mass, 0.0)
    estimate = discrete_discrepancy + interior_mass * interior_discrepancy
    return max(estimate - radii.total(interior_discrepancy + radii.interior), 0.0)


def step_penalty(horizon: int, advantage_bound: float, mean_total_variation: float) -> float:
    """Return 2 H² epsilon_h TV, what a policy step may add to the surrogate risk.

    Parameters
    ----------
    horizon
        H, steps of an episode.
    advantage_bound
        epsilon_h: the largest absolute mean advantage of the risk under the new policy, over all states; at most 1.
    mean_total_variation
        Total variation between new and old policy, averaged over the states that the old policy visits.
    """
    for name, value in (
        ("horizon", horizon),
        ("advantage_bound", advantage_bound),
        ("mean_total_variation", mean_total_variation),
    ):
        if not (value >= 0.0 and isfinite(value)):
            raise InputError(f"{name} is {value!r}; give a finite number that is at least 0.")
    return 2.0 * horizon**2 * advantage_bound * mean_total_variation


def required_step_factor(penalty: float, lower_bound: float) -> float:
    """Return the smallest lambda_k whose margin lambda_k SD_tot^+ covers the penalty; infinite if SD_tot^+ is 0."""
    if penalty == 0.0:
        return 0.0
    return penalty / lower_bound if lower_bound > 0.0 else inf


def stein_kernel_bound(interior: Interior, kernel: Kernel, operator: Operator, clip: float) -> float:
    """Return M_u, the supremum of abs(u(x, y)) for x and y in [clip, 1 - clip]; infinite if u is unbounded.

    u is positive semidefinite, so it is the supremum of the diagonal u(x, x) = b(x)² - a(x)² k''(0).
    """
    if not (0.0 <= clip < 0.5):
        raise InputError(f"The clip is {clip!r}: give a number in [0, 0.5).")

    def diagonal(points: Array) -> Array:
        a, b = stein_coefficients(points, interior, operator)
        return b * b + kernel.curvature * a * a

    low = max(clip, 1e-12)
    ends = np.geomspace(low, 0.5, 2001)
    grid = np.unique(np.concatenate([ends, 1.0 - ends, np.linspace(low, 1.0 - low, 20001)]))
    grid = grid[(grid >= clip) & (grid <= 1.0 - clip)]
    value = diagonal(grid)
    if clip == 0.0:
        # A bounded u has converged well before 1e-8; one that still grows over four decades has no bound.
        near = diagonal(np.array([1e-12, 1e-8, 1.0 - 1e-8, 1.0 - 1e-12]))
        if not np.all(np.isfinite(near)) or near[0] > near[1] * 1.0001 or near[3] > near[2] * 1.0001:
            return inf
    top = int(np.argmax(value))
    fine = np.linspace(grid[max(top - 1, 0)], grid[min(top + 1, grid.size - 1)], 2001)
    return float(max(value[top], diagonal(fine).max()))
