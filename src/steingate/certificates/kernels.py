"""Kernels, Stein kernels on (0, 1) and the kernel Stein discrepancy (KSD) of samples from a density.

A Stein operator is T f = a f' + b f. The Langevin operator of the paper has a = 1 and b = s, the score of the
density p. The boundary-weighted operator has a = w and b = w s + w' with w(x) = x (1 - x). T f has mean zero
under p if a p f vanishes at 0 and 1: always for the weighted operator, and for Langevin if p itself vanishes
there (a Beta density needs a > 1 and b > 1). The Stein kernel is u(x, y) = T_x T_y k(x - y), and
KSD^2 = mean of u(x_i, x_j) over all pairs, i = j included (V-statistic).
"""

from dataclasses import dataclass
from math import log, sqrt
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from steingate.certificates.reference import Interior
from steingate.errors import InputError, check_interval

Array = npt.NDArray[np.float64]
KernelName = Literal["rbf", "matern52"]
Operator = Literal["langevin", "weighted"]

DIRECT_SAMPLES = 1000  # up to which the distances of all pairs are stored
BLOCK = 8192  # pairs at a time: few enough that BLAS uses one thread


@dataclass(frozen=True)
class Kernel:
    """A translation-invariant kernel k(d), d = x - y, with k(0) = 1 and length l.

    ``rbf`` is exp(-d²/(2 l²)); ``matern52`` is (1 + r + r²/3) exp(-r) with r = √5 ``|d|`` / l.
    """

    name: KernelName
    length: float

    def __post_init__(self) -> None:
        if self.name not in get_args(KernelName):
            raise InputError(f"There is no kernel {self.name!r}: choose {', '.join(get_args(KernelName))}.")
        check_interval("kernel length", self.length, 1e-12, 1e12, "[]")

    def derivatives(self, d: npt.ArrayLike) -> tuple[Array, Array, Array]:
        """Return k, k' and k'' at the differences d; dk/dx = k', dk/dy = -k' and d²k/dxdy = -k''."""
        scale = 1.0 / self.length
        z = np.asarray(d, dtype=np.float64) * scale
        if self.name == "rbf":
            square = z * z
            k = np.exp(-0.5 * square)
            return k, z * k * -scale, (square - 1.0) * k * scale**2
        scale *= sqrt(5.0)
        r = sqrt(5.0) * np.abs(z)
        decay = np.exp(-r)
        third = decay * (1.0 / 3.0)
        k1 = z * (1.0 + r) * third * (-sqrt(5.0) * scale)
        return decay + r * decay + r * r * third, k1, (r * r - r - 1.0) * third * scale**2


def released_length(x: npt.ArrayLike, min_bandwidth: float = 0.05) -> float:
    """Return the length of the released code: sqrt(max(median / max(log(n + 1), 1), min_bandwidth²)).

    The median is the lower median of the n (n - 1) / 2 squared distances between the n samples ``x``; a
    single sample gets ``min_bandwidth``.
    """
    points = np.asarray(x, dtype=np.float64)
    if points.size < 2:
        return min_bandwidth
    return max(_median_distance(points) / sqrt(max(log(points.size + 1), 1.0)), min_bandwidth)


def stein_coefficients(x: Array, interior: Interior, operator: Operator) -> tuple[Array, Array]:
    """Return the coefficients (a, b) of the Stein operator T f = a f' + b f at the points ``x``."""
    if operator == "langevin":
        return np.ones_like(x), interior.score(x)
    if operator == "weighted":
        return x * (1.0 - x), interior.logit_score(x)
    raise InputError(f"There is no operator {operator!r}: choose langevin or weighted.")


def stein_kernel(
    x: npt.ArrayLike, y: npt.ArrayLike, interior: Interior, kernel: Kernel, operator: Operator = "langevin"
) -> Array:
    """Return the matrix u(x_i, y_j) of the Stein kernel, shape (len(x), len(y))."""
    rows, columns = _points(x), _points(y)
    a, b = stein_coefficients(rows, interior, operator)
    c, e = stein_coefficients(columns, interior, operator)
    k, k1, k2 = kernel.derivatives(rows[:, None] - columns)
    a, b = a[:, None], b[:, None]
    return b * e * k + (a * e - b * c) * k1 - a * c * k2


def ksd_squared(x: npt.ArrayLike, interior: Interior, kernel: Kernel, operator: Operator = "langevin") -> float:
    """Return the squared kernel Stein discrepancy of the samples ``x``, shape (n,), from a density, in O(n²) time."""
    points = _points(x)
    a, b = stein_coefficients(points, interior, operator)
    rows = max(1, BLOCK // points.size)
    total = 0.0
    for start in range(0, points.size, rows):
        part = slice(start, start + rows)
        k, k1, k2 = kernel.derivatives(points[part, None] - points)
        # k1 is odd, so the two mixed terms have the same sum over all pairs.
        total += float(b[part] @ (k @ b) + a[part] @ (2.0 * (k1 @ b) - k2 @ a))
    return total / points.size**2


def ksd(x: npt.ArrayLike, interior: Interior, kernel: Kernel, operator: Operator = "langevin") -> float:
    """Return the kernel Stein discrepancy, the root of :func:`ksd_squared`."""
    return sqrt(max(ksd_squared(x, interior, kernel, operator), 0.0))


def _points(x: npt.ArrayLike) -> Array:
    points = np.asarray(x, dtype=np.float64).ravel()
    if points.size == 0:
        raise InputError("There are no samples: give at least one normalized cost inside (0, 1).")
    low, high = points.min(), points.max()
    if not (low > 0.0 and high < 1.0):
        bad = high if low > 0.0 else low
        raise InputError(f"The sample {bad!r} is not inside (0, 1): clip the samples first.")
    return points


def _median_distance(x: Array) -> float:
    """Lower median of |x_i - x_j| over the pairs i < j; by bisection (1e-15) for many samples."""
    n = x.size
    rank = (n * (n - 1) // 2 - 1) // 2
    if n <= DIRECT_SAMPLES:
        distances = np.abs(x[:, None] - x).ravel()
        full_rank = n + 2 * rank  # the full matrix has n zeros and each pair twice
        distances.partition(full_rank)
        return float(distances[full_rank])
    x = np.sort(x)
    low, high = -1e-15, float(x[-1] - x[0])
    while high - low > 1e-15:
        middle = 0.5 * (low + high)
        within = int(np.searchsorted(x, x + middle, side="right").sum()) - n * (n + 1) // 2
        low, high = (low, middle) if within > rank else (middle, high)
    return high
