"""Stein kernels on (0, 1) and the kernel Stein discrepancy of samples from a reference density.

A Stein operator acts as T f = a f' + b f. The Langevin operator has a = 1 and b = s, the score of density p;
the boundary-weighted one has a = w and b = w s + w' with w(x) = x (1 - x). T f has mean zero under p whenever
a p f vanishes at 0 and 1: always for the weighted operator, but for Langevin only where p itself vanishes (a
Beta needs a > 1 and b > 1). The Stein kernel is u(x, y) = T_x T_y k(x - y).
"""

from math import inf, sqrt
from typing import Literal

import numpy as np
import numpy.typing as npt

from steingate.certificates.kernels import Kernel
from steingate.certificates.reference import Interior
from steingate.certificates.sums import distinct, matern_sum, smooth_bins, smooth_sum
from steingate.errors import InputError

Array = npt.NDArray[np.float64]
Operator = Literal["langevin", "weighted"]
Statistic = Literal["V", "U"]
Method = Literal["auto", "direct", "fast"]

# Samples up to which the direct sum is quicker, measured.
DIRECT_LIMIT = {"matern52": 160, "rbf": 340, "imq": 340}
PAIRS_PER_BIN = 1500  # pairs of the direct sum that take as long as one bin of the fast sum, measured
MAX_BINS = 2**17  # more would not fit into the memory of a small machine
DIRECT_BLOCK = 8192  # entries per block of the direct sum: few enough that BLAS stays on one thread


def stein_coefficients(x: Array, interior: Interior, operator: Operator) -> tuple[Array, Array]:
    """Coefficients (a, b) of the Stein operator T f = a f' + b f at the points ``x``."""
    if operator == "langevin":
        return np.ones_like(x), interior.score(x)
    if operator == "weighted":
        return x * (1.0 - x), interior.logit_score(x)
    raise InputError(f"There is no operator {operator!r}: choose langevin or weighted.")


def stein_kernel(
    x: npt.ArrayLike, y: npt.ArrayLike, interior: Interior, kernel: Kernel, operator: Operator = "langevin"
) -> Array:
    """Matrix u(x_i, y_j) of the Stein kernel, shape (len(x), len(y))."""
    rows, columns = _points(x), _points(y)
    a, b = stein_coefficients(rows, interior, operator)
    c, e = stein_coefficients(columns, interior, operator)
    k, k1, k2 = kernel.derivatives(rows[:, None] - columns)
    a, b = a[:, None], b[:, None]
    return b * e * k + (a * e - b * c) * k1 - a * c * k2


def ksd_squared(
    x: npt.ArrayLike,
    interior: Interior,
    kernel: Kernel,
    operator: Operator = "langevin",
    statistic: Statistic = "V",
    method: Method = "auto",
) -> float:
    """Squared kernel Stein discrepancy of the samples ``x`` from the density ``interior``.

    Parameters
    ----------
    x
        Samples strictly inside (0, 1), in any order.
    statistic
        ``"V"``: mean of u over all pairs; ``"U"``: over pairs of different samples (unbiased, may be < 0).
    method
        ``"direct"`` sums all pairs, ``"fast"`` needs O(n log n) time, ``"auto"`` takes the quicker one.
        The fast sum is exact up to rounding for matern52 at every length, and for rbf and imq down to a
        length of 3e-5 of the range of the samples; for shorter ones it is the direct sum.
    """
    points = _points(x)
    n = points.size
    if statistic not in ("V", "U") or method not in ("auto", "direct", "fast"):
        raise InputError(
            f"There is no {method!r} sum of a {statistic!r}-statistic: choose auto, direct or fast; V or U."
        )
    if statistic == "U" and n < 2:
        raise InputError("One sample has no U-statistic: give two samples or use the V-statistic.")
    if method == "direct" or (method == "auto" and n <= DIRECT_LIMIT[kernel.name]):
        a, b = stein_coefficients(points, interior, operator)
        total = _direct_sum(points, a, b, kernel)
        same = float(np.add.reduce(b * b + kernel.curvature * (a * a))) if statistic == "U" else 0.0
    else:
        points, counts = distinct(points)
        a, b = stein_coefficients(points, interior, operator)
        total = _fast_sum(points, counts * a, counts * b, kernel, method)
        square = b * b + kernel.curvature * (a * a)
        same = float(np.add.reduce(counts * square)) if statistic == "U" else 0.0
    return total / n**2 if statistic == "V" else (total - same) / (n * (n - 1))


def ksd(
    x: npt.ArrayLike,
    interior: Interior,
    kernel: Kernel,
    operator: Operator = "langevin",
    statistic: Statistic = "V",
    method: Method = "auto",
) -> float:
    """Kernel Stein discrepancy: the root of :func:`ksd_squared`, or 0 where a U-statistic is negative."""
    return sqrt(max(ksd_squared(x, interior, kernel, operator, statistic, method), 0.0))


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


def _points(x: npt.ArrayLike) -> Array:
    points = np.asarray(x, dtype=np.float64).ravel()
    if points.size == 0:
        raise InputError("There are no samples: give at least one normalized cost inside (0, 1).")
    low, high = points.min(), points.max()
    if not (low > 0.0 and high < 1.0):
        bad = high if low > 0.0 else low
        raise InputError(f"The sample {bad!r} is not inside (0, 1): clip the samples first.")
    return points


def _direct_sum(x: Array, a: Array, b: Array, kernel: Kernel) -> float:
    """Sum of u(x_i, x_j) over all i, j, one block of rows at a time."""
    rows = max(1, DIRECT_BLOCK // x.size)
    total = 0.0
    for start in range(0, x.size, rows):
        part = slice(start, start + rows)
        k, k1, k2 = kernel.derivatives(x[part, None] - x)
        # k1 is odd, so the two mixed terms have the same sum over all pairs.
        total += float(b[part] @ (k @ b) + a[part] @ (2.0 * (k1 @ b) - k2 @ a))
    return total


def _fast_sum(x: Array, a: Array, b: Array, kernel: Kernel, method: Method) -> float:
    """Sum of u(x_i, x_j) over all i, j for ascending distinct points."""
    if method == "auto" and x.size <= DIRECT_LIMIT[kernel.name]:
        return _direct_sum(x, a, b, kernel)
    if kernel.name == "matern52":
        rate = sqrt(5.0) / kernel.length
        return matern_sum(rate * x, rate * a, b)
    bins = smooth_bins(x, kernel.length)
    if bins > MAX_BINS or (method == "auto" and x.size**2 <= PAIRS_PER_BIN * bins):
        return _direct_sum(x, a, b, kernel)
    return smooth_sum(x, a, b, kernel.derivatives, kernel.length)
