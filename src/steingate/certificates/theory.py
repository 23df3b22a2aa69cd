"""The paper's finite-sample statements as numbers: concentration radii, SD_tot^+ and Theorem 4.3.

The paper's proof needs three events with error delta / 3 each, and both inequalities of its lemma follow from
the same three, so every statement here holds with probability 1 - delta (the text has 1 - 2 delta once). The
text concentrates the V-statistic around its mean, which exceeds the squared KSD by at most M_u / m; that bias
is included here. All statements need independent episodes with one distribution.
"""

from dataclasses import dataclass
from math import inf, isfinite, log, sqrt

import numpy as np
import numpy.typing as npt

from steingate.certificates.kernels import Kernel, Operator, stein_coefficients
from steingate.certificates.reference import Interior
from steingate.errors import InputError

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ConcentrationRadii:
    """Errors of the empirical discrepancies, which hold together with probability 1 - delta.

    Attributes
    ----------
    mass
        eps_w, bound on the error of SD_disc and of the interior mass w.
    interior
        eps_int, bound on the error of SD_int.
    holds
        Whether the assumptions hold: a bounded Stein kernel that was not chosen from the samples.
    """

    mass: float
    interior: float
    holds: bool

    def total(self, interior_discrepancy: float) -> float:
        """Return the radius of SD_tot = SD_disc + w SD_int for a true interior discrepancy SD_int."""
        return self.interior + self.mass * (1.0 + interior_discrepancy)


@dataclass(frozen=True)
class StepCondition:
    """Condition of Theorem 4.3 under which a policy step keeps the risk within the budget.

    Attributes
    ----------
    margin
        m_k = lambda_k SD_tot^+ with the factor in use.
    penalty
        What the step may add to the surrogate risk: 2 H² epsilon_h TV.
    required_factor
        Smallest lambda_k whose margin covers the penalty; infinite if SD_tot^+ is 0.
    holds
        Whether the margin covers the penalty, and the assumptions of the radii hold.
    attainable
        Whether a margin that covers the penalty leaves room in the budget.
    """

    margin: float
    penalty: float
    required_factor: float
    holds: bool
    attainable: bool


def concentration_radii(
    n: int,
    m: int,
    delta: float,
    kernel_bound: float,
    *,
    squared_ksd: bool = False,
    kernel_from_data: bool = False,
) -> ConcentrationRadii:
    """Return the radii eps_w and eps_int for n episodes, m of them between the atoms.

    eps_w = 2 sqrt(log(6/delta) / (2 n)), from Hoeffding's inequality for both atoms. eps_int is the radius of
    the mean embedding at delta / 3, or, if SD_int is the squared KSD as in the appendix of the paper,
    2 sqrt(2) M_u sqrt(log(6/delta) / m) + M_u / m, from McDiarmid's inequality and the bias.

    Parameters
    ----------
    kernel_bound
        M_u, the supremum of the Stein kernel (:func:`stein_kernel_bound`). For the Langevin kernel of a Beta
        density clipped at 1e-5 it is about 1e11, and the radii say nothing at any practical n.
    kernel_from_data
        Whether the length of the kernel depends on the samples, as in ``paper`` and ``released``. McDiarmid's
        inequality then does not apply.
    """
    for name, number in (("n", n), ("m", m)):
        if number != int(number) or number < 0 or (name == "n" and number < 1):
            raise InputError(f"{name} is {number!r}; give a whole number of samples.")
    if m > n:
        raise InputError(f"m is {m}; there cannot be more interior samples than the n = {n} episodes.")
    if not 0.0 < delta < 1.0:
        raise InputError(f"delta is {delta!r}; give an error probability between 0 and 1.")
    level = log(6.0 / delta)
    interior = inf
    if m > 0 and isfinite(kernel_bound):
        interior = embedding_radius(kernel_bound, m, delta / 3.0)
        if squared_ksd:
            interior = 2.0 * sqrt(2.0) * kernel_bound * sqrt(level / m) + kernel_bound / m
    holds = isfinite(kernel_bound) and not kernel_from_data
    return ConcentrationRadii(2.0 * sqrt(level / (2.0 * n)), interior, holds)


def embedding_radius(kernel_bound: float, m: int, delta: float) -> float:
    """Return sqrt(M_u / m) (1 + sqrt(2 log(1/delta))), the radius of a mean embedding of m samples.

    The distance between the empirical and the true mean embedding is at most this with probability 1 - delta:
    its mean is at most sqrt(M_u / m), one sample moves it by at most 2 sqrt(M_u) / m, and McDiarmid's
    inequality does the rest. The KSD is the norm of the empirical embedding.
    """
    return sqrt(kernel_bound / m) * (1.0 + sqrt(-2.0 * log(delta)))


def discrepancy_lower_bound(
    discrete_discrepancy: float, interior_discrepancy: float, interior_mass: float, radii: ConcentrationRadii
) -> float:
    """Return SD_tot^+ = max(SD_tot - eps_int - eps_w (1 + SD_int + eps_int), 0) from empirical discrepancies.

    ``interior_discrepancy`` is the KSD or its square, as the radii are. Without an interior sample only the
    discrete part counts.
    """
    if not isfinite(radii.interior):
        return max(discrete_discrepancy - radii.mass, 0.0)
    estimate = discrete_discrepancy + interior_mass * interior_discrepancy
    return max(estimate - radii.total(interior_discrepancy + radii.interior), 0.0)


def step_condition(
    lower_bound: float,
    factor: float,
    *,
    advantage_bound: float,
    horizon: int,
    mean_total_variation: float,
    budget: float,
    assumptions_hold: bool,
) -> StepCondition:
    """Return the condition of Theorem 4.3 for one policy step.

    Parameters
    ----------
    lower_bound
        SD_tot^+ (:func:`discrepancy_lower_bound`).
    factor
        lambda_k in use.
    advantage_bound
        epsilon_h: the largest absolute mean advantage of the risk under the new policy, over all states.
    mean_total_variation
        Total variation between new and old policy, averaged over the states that the old policy visits.
    assumptions_hold
        ``ConcentrationRadii.holds``.
    """
    for name, value in (
        ("factor", factor),
        ("advantage_bound", advantage_bound),
        ("horizon", horizon),
        ("mean_total_variation", mean_total_variation),
    ):
        if not (value >= 0.0 and isfinite(value)):
            raise InputError(f"{name} is {value!r}; give a finite number that is at least 0.")
    penalty = 2.0 * horizon**2 * advantage_bound * mean_total_variation
    margin = factor * lower_bound
    required = inf if lower_bound == 0.0 else penalty / lower_bound
    if penalty == 0.0:
        required = 0.0
    return StepCondition(
        margin=margin,
        penalty=penalty,
        required_factor=required,
        holds=assumptions_hold and margin >= penalty,
        attainable=isfinite(required) and penalty < budget,
    )


def stein_kernel_bound(interior: Interior, kernel: Kernel, operator: Operator, clip: float) -> float:
    """Return M_u, the supremum of |u(x, y)| for x and y in [clip, 1 - clip]; infinite if u is unbounded.

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
