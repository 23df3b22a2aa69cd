"""Risk functions h: nondecreasing maps from normalized cost in [0, 1] to risk in [0, 1].

A risk function takes and returns arrays. Its attribute ``breaks``, if it has one, lists points in (0, 1) at
which quadrature must split: jumps, kinks and steep rises.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from steingate.errors import InputError, check_interval

Array = npt.NDArray[np.float64]
Risk = Callable[[Any], Any]


@dataclass(frozen=True)
class Sigmoid:
    """Smooth exceedance: 1 / (1 + exp(-(x - threshold) / width))."""

    threshold: float = 0.5
    width: float = 0.02

    def __post_init__(self) -> None:
        check_interval("risk threshold", self.threshold, 0.0, 1.0, "[)")
        check_interval("risk width", self.width, 0.0, inf)

    def __call__(self, x: npt.ArrayLike) -> Array:
        return np.asarray(expit((np.asarray(x, dtype=np.float64) - self.threshold) / self.width))

    @property
    def breaks(self) -> tuple[float, ...]:
        """Points around the threshold, so that quadrature resolves any width."""
        steps = (-40.0, -20.0, -10.0, -5.0, -2.5, 0.0, 2.5, 5.0, 10.0, 20.0, 40.0)
        return _inside(self.threshold + step * self.width for step in steps)


@dataclass(frozen=True)
class Exceedance:
    """Hard exceedance: 1 where x > threshold, 0 elsewhere."""

    threshold: float = 0.5

    def __post_init__(self) -> None:
        check_interval("risk threshold", self.threshold, 0.0, 1.0, "[)")

    def __call__(self, x: npt.ArrayLike) -> Array:
        return np.asarray(np.asarray(x) > self.threshold, dtype=np.float64)

    @property
    def breaks(self) -> tuple[float, ...]:
        """The jump."""
        return _inside((self.threshold,))


def check_risk(risk: Risk) -> Risk:
    """Return ``risk`` after checking on a fine grid that it is nondecreasing with values in [0, 1]."""
    if not callable(risk):
        raise InputError(
            f"The risk function is {risk!r}: give a function of the normalized cost, or a text such as "
            "exceedance:0.5 or sigmoid:0.5,0.02."
        )
    edges = np.concatenate([np.geomspace(1e-9, 1e-3, 200), [0.0]])
    breaks = np.asarray(getattr(risk, "breaks", ()), dtype=np.float64)
    grid = np.unique(np.concatenate([edges, 1.0 - edges, np.linspace(0.0, 1.0, 20001), breaks]))
    value = np.asarray(risk(grid), dtype=np.float64)
    if value.shape != grid.shape:
        raise InputError(f"The risk function returns shape {value.shape} for {grid.shape}: return one value per cost.")
    outside = ~((value >= 0.0) & (value <= 1.0))
    if outside.any():
        x = grid[outside][0]
        raise InputError(f"The risk at x = {x:.6g} is {value[outside][0]:.6g}: keep it within [0, 1].")
    falls = np.diff(value) < -1e-12
    if falls.any():
        raise InputError(f"The risk falls near x = {grid[1:][falls][0]:.6g}: give a nondecreasing function.")
    return risk


def _inside(points: Iterable[float]) -> tuple[float, ...]:
    return tuple(point for point in points if 0.0 < point < 1.0)
