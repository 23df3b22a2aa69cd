"""The published finite-sample statements, as numbers with the assumptions they need.

They are the concentration proposition, the lower confidence bound SD_tot^+ and the step condition of the
safety theorem. The published proof needs three events with error delta / 3 each, and both inequalities of its
lemma follow from the same three, so every statement here holds with probability 1 - delta (the text has
1 - 2 delta once). The text concentrates the V-statistic around its mean, which exceeds the squared KSD by at
most M_u / m; that bias is charged here.
"""

from dataclasses import dataclass
from math import inf, isfinite, log, sqrt
from typing import Literal

import numpy as np
import numpy.typing as npt

from steingate.certificates.bounds import embedding_radius
from steingate.certificates.kernels import Kernel, Operator, stein_coefficients
from steingate.certificates.reference import Interior
from steingate.errors import InputError

Array = npt.NDArray[np.float64]
Form = Literal["ksd", "squared"]

_COMMON = (
    "The episodes are independent and have the same distribution; interior samples lie in the clipped "
    "interval, where the Stein kernel is at most M_u."
)


@dataclass(frozen=True)
class ConcentrationRadii:
    """How far the empirical discrepancies may be from the true ones, all at once, with probability 1 - delta.

    ``mass`` bounds the error of SD_disc and of the interior mass w; ``interior`` bounds that of SD_int.
    ``holds`` says whether the assumptions do; ``vacuous`` that the radii, times the Stein factor, reach 1, so
    that a bound on a risk moved by them says nothing.
    """

    mass: float
    interior: float
    delta: float
    holds: bool
    vacuous: bool
    assumptions: str

    def total(self, interior_discrepancy: float) -> float:
        """Return the radius of SD_tot = SD_disc + w SD_int for a true interior discrepancy SD_int."""
        return self.interior + self.mass * (1.0 + interior_discrepancy)


@dataclass(frozen=True)
class DiscrepancyLowerBound:
    """SD_tot^+: at most the true total discrepancy with probability 1 - delta."""

    value: float
    estimate: float
    radius: float
    delta: float
    holds: bool
    vacuous: bool
    assumptions: str


@dataclass(frozen=True)
class StepCondition:
    """When a policy step keeps the risk within the budget (the safety theorem).

    ``penalty`` is what the step may add beyond the surrogate, ``required_factor`` the smallest lambda_k whose
    margin covers it (inf when SD_tot^+ is 0), ``margin`` the m_k of the factor in use. ``holds`` says whether
    the margin covers the penalty, ``attainable`` whether one that does still leaves room in the budget.
    """

    margin: float
    penalty: float
    required_factor: float
    holds: bool
    attainable: bool
    assumptions: str


def concentration_radii(
    n: int,
    m: int,
    delta: float,
    kernel_bound: float,
    *,
    form: Form = "ksd",
    stein_factor: float | None = 1.0,
    kernel_from_data: bool = False,
) -> ConcentrationRadii:
    """Return the radii eps_w and eps_int for n episodes, m of them in the interior.

    eps_w = 2 sqrt(log(6/delta) / (2 n)): Hoeffding, two-sided, for both atoms at delta / 3 each.
    eps_int at delta / 3 is, for ``form="squared"`` (SD_int the squared KSD, as in the published appendix),
    2 sqrt(2) M_u sqrt(log(6/delta) / m) + M_u / m, McDiarmid's inequality and the bias of the V-statistic;
    for ``form="ksd"`` (SD_int the KSD, as the certificate uses it) it is the radius of the mean embedding.

    Parameters
    ----------
    kernel_bound
        M_u, the supremum of the Stein kernel on the clipped interval
        (:func:`steingate.certificates.stein.stein_kernel_bound`). The Langevin kernel of a Beta density
        clipped at 1e-5 has M_u of the order 1e10: the statement is true and says nothing at any practical n.
    stein_factor
        Factor with which the radii enter a bound on a risk, ``None`` if there is no such bound; decides
        ``vacuous`` only.
    kernel_from_data
        Whether the length of the kernel was chosen by looking at the samples, as ``paper`` and ``released``
        do. One sample then moves every term of the statistic, McDiarmid's inequality does not apply, and
        ``holds`` is false.
    """
    for name, count in (("n", n), ("m", m)):
        if count != int(count) or count < 0 or (name == "n" and count < 1):
            raise InputError(f"{name} is {count!r}; give a whole number of samples.")
    if m > n:
        raise InputError(f"m is {m}; there cannot be more interior samples than the n = {n} episodes.")
    if not 0.0 < delta < 1.0:
        raise InputError(f"delta is {delta!r}; give an error probability between 0 and 1.")
    if form not in ("ksd", "squared"):
        raise InputError(f"There is no form {form!r}: choose ksd or squared.")
    level = log(6.0 / delta)
    mass = 2.0 * sqrt(level / (2.0 * n))
    if m == 0 or not isfinite(kernel_bound):
        interior = inf
    elif form == "ksd":
        interior = embedding_radius(kernel_bound, m, delta / 3.0)
    else:
        interior = 2.0 * sqrt(2.0) * kernel_bound * sqrt(level / m) + kernel_bound / m
    holds = isfinite(kernel_bound) and not kernel_from_data
    if kernel_from_data:
        words = f"{_COMMON} Here the kernel was chosen from the samples, so the statement does not apply."
    elif not holds:
        words = f"{_COMMON} Here the Stein kernel is unbounded, so the statement does not apply."
    elif m == 0:
        words = f"{_COMMON} Here no sample is in the interior, so SD_int is not bounded."
    else:
        words = f"{_COMMON} Here M_u = {kernel_bound:.3g}."
    vacuous = stein_factor is None or stein_factor * (interior + mass) >= 1.0
    return ConcentrationRadii(mass, interior, delta, holds, vacuous, words)


def discrepancy_lower_bound(
    discrete_discrepancy: float, interior_discrepancy: float, interior_mass: float, radii: ConcentrationRadii
) -> DiscrepancyLowerBound:
    """Return SD_tot^+ = max(SD_tot - eps_int - eps_w (1 + SD_int + eps_int), 0) from empirical discrepancies.

    ``interior_discrepancy`` is in the form (KSD or its square) that the radii were made for. With no interior
    sample the interior term is at least 0, so only the discrete part and eps_w count.
    """
    estimate = discrete_discrepancy + interior_mass * interior_discrepancy
    if isfinite(radii.interior):
        radius = radii.interior + radii.mass * (1.0 + interior_discrepancy + radii.interior)
        value = max(estimate - radius, 0.0)
    else:
        radius = inf
        value = max(discrete_discrepancy - radii.mass, 0.0)
    return DiscrepancyLowerBound(
        value, estimate, radius, radii.delta, radii.holds, value == 0.0, radii.assumptions
    )


def step_condition(
    lower_bound: DiscrepancyLowerBound,
    factor: float | None,
    *,
    advantage_bound: float,
    horizon: int,
    mean_total_variation: float,
    budget: float,
) -> StepCondition:
    """Return the margin m_k = lambda_k SD_tot^+, the penalty it must cover and the lambda_k that suffices.

    penalty = 2 H epsilon_h sum_t E[D_TV] = 2 H^2 epsilon_h mean_total_variation for the horizon H.

    Parameters
    ----------
    factor
        lambda_k in use; ``None``, when no valid one is known, counts as 0.
    advantage_bound
        epsilon_h: the largest absolute mean advantage of the risk under the new policy, over all states.
    mean_total_variation
        Total variation between new and old policy, averaged over the states the old policy visits.
    """
    factor = factor or 0.0
    for name, value in (
        ("factor", factor),
        ("advantage_bound", advantage_bound),
        ("horizon", horizon),
        ("mean_total_variation", mean_total_variation),
    ):
        if not (value >= 0.0 and isfinite(value)):
            raise InputError(f"{name} is {value!r}; give a finite number that is at least 0.")
    if not 0.0 < budget < 1.0:
        raise InputError(f"The budget is {budget!r}; give a risk between 0 and 1.")
    penalty = 2.0 * horizon**2 * advantage_bound * mean_total_variation
    margin = factor * lower_bound.value
    required = inf
    if penalty == 0.0 or lower_bound.value > 0.0:
        required = penalty / lower_bound.value if penalty > 0.0 else 0.0
    words = (
        f"{lower_bound.assumptions} The surrogate risk of the new policy plus the margin is within the "
        "budget, and advantage_bound holds for every augmented state, not only for those visited."
    )
    return StepCondition(
        margin=margin,
        penalty=penalty,
        required_factor=required,
        holds=lower_bound.holds and margin >= penalty,
        attainable=isfinite(required) and penalty < budget,
        assumptions=words,
    )


def stein_kernel_bound(interior: Interior, kernel: Kernel, operator: Operator, clip: float) -> float:
    """Supremum of |u(x, y)| for x and y in [clip, 1 - clip], or inf when u is unbounded there.

    u is positive semidefinite, so the supremum is that of the diagonal u(x, x) = b(x)² - a(x)² k''(0).
    """
    if not (0.0 <= clip < 0.5):
        raise InputError(f"The clip is {clip!r}: give a number in [0, 0.5).")

    def diagonal(points: Array) -> Array:
        a, b = stein_coefficients(points, interior, operator)
        return b * b + kernel.curvature * a * a

    ends = np.geomspace(max(clip, 1e-12), 0.5, 2001)
    grid = np.unique(
        np.concatenate([ends, 1.0 - ends, np.linspace(max(clip, 1e-12), 1.0 - max(clip, 1e-12), 20001)])
    )
    grid = grid[(grid >= clip) & (grid <= 1.0 - clip)]
    value = diagonal(grid)
    if clip == 0.0:
        # A bounded u has settled well before 1e-8; one that still grows over four decades has no bound.
        near = diagonal(np.array([1e-12, 1e-8, 1.0 - 1e-8, 1.0 - 1e-12]))
        if not np.all(np.isfinite(near)) or near[0] > near[1] * 1.0001 or near[3] > near[2] * 1.0001:
            return inf
    top = int(np.argmax(value))
    fine = np.linspace(grid[max(top - 1, 0)], grid[min(top + 1, grid.size - 1)], 2001)
    return float(max(value[top], diagonal(fine).max()))
