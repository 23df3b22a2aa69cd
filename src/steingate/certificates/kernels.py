"""Base kernels on the line and the released rule for their length."""

from dataclasses import dataclass
from math import log, sqrt
from typing import Literal

import numpy as np
import numpy.typing as npt

from steingate.certificates.checks import is_real
from steingate.certificates.sums import median_pair_distance
from steingate.errors import InputError

Array = npt.NDArray[np.float64]
KernelName = Literal["rbf", "matern52", "imq"]
KERNELS: tuple[KernelName, ...] = ("rbf", "matern52", "imq")


@dataclass(frozen=True)
class Kernel:
    """A translation-invariant kernel k(x - y) with k(0) = 1.

    ``rbf`` is exp(-d²/(2 l²)), ``matern52`` is (1 + r + r²/3) exp(-r) with r = √5 ``|d|`` / l, and ``imq``
    is (1 + d²/l²)^(-1/2), for the difference d and the length l.
    """

    name: KernelName
    length: float

    def __post_init__(self) -> None:
        if self.name not in KERNELS:
            raise InputError(f"There is no kernel {self.name!r}: choose one of {', '.join(KERNELS)}.")
        if not (is_real(self.length) and 1e-12 <= self.length <= 1e12):
            raise InputError(f"The kernel length is {self.length!r}: give a number between 1e-12 and 1e12.")

    def __call__(self, d: npt.ArrayLike) -> Array:
        """Kernel values at the differences ``d``."""
        z = np.asarray(d, dtype=np.float64) / self.length
        if self.name == "rbf":
            return np.asarray(np.exp(-0.5 * z * z))
        if self.name == "imq":
            return np.asarray(1.0 / np.sqrt(1.0 + z * z))
        r = sqrt(5.0) * np.abs(z)
        return np.asarray((1.0 + r + r * r / 3.0) * np.exp(-r))

    def derivatives(self, d: npt.ArrayLike) -> tuple[Array, Array, Array]:
        """Kernel, first and second derivative at the differences d = x - y.

        With these, dk/dx = k1, dk/dy = -k1 and d²k/dxdy = -k2.
        """
        scale = 1.0 / self.length
        z = np.asarray(d, dtype=np.float64) * scale
        if self.name == "rbf":
            square = z * z
            k = np.exp(-0.5 * square)
            return k, z * k * -scale, (square - 1.0) * k * scale**2
        if self.name == "imq":
            inverse = 1.0 / (1.0 + z * z)
            k = np.sqrt(inverse)
            cube = k * inverse
            return k, z * cube * -scale, (2.0 - 3.0 * inverse) * cube * scale**2
        scale *= sqrt(5.0)
        r = sqrt(5.0) * np.abs(z)
        decay = np.exp(-r)
        third = decay * (1.0 / 3.0)
        k1 = z * (1.0 + r) * third * (-sqrt(5.0) * scale)
        return decay + r * decay + r * r * third, k1, (r * r - r - 1.0) * third * scale**2

    @property
    def curvature(self) -> float:
        """Value of -k''(0), the size of d²k/dxdy on the diagonal."""
        return (5.0 / 3.0 if self.name == "matern52" else 1.0) / self.length**2


def released_length(x: npt.ArrayLike, min_bandwidth: float = 0.05) -> float:
    """Length of the released rule: sqrt(max(median / max(log(n + 1), 1), min_bandwidth²)).

    The median is the lower median of the n(n-1)/2 squared pairwise distances of the n samples ``x``;
    a single sample has no pairs and gets ``min_bandwidth``.
    """
    points = np.asarray(x, dtype=np.float64)
    if points.size < 2:
        return min_bandwidth
    median = median_pair_distance(points)
    return max(median / sqrt(max(log(points.size + 1), 1.0)), min_bandwidth)
