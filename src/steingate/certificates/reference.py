"""References on [0, 1]: a density inside (0, 1), and the hybrid of two atoms with such a density.

Integrals run over t = logit(x), where every density here decays at least exponentially at both ends and
singularities at 0 and 1 disappear. The density of t is p(x) x (1 - x), and the derivative of its logarithm is
``logit_score`` = x (1 - x) s(x) + 1 - 2x.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, expit, log_expit, logit

from steingate.certificates.checks import is_real
from steingate.certificates.density import TAIL_DROP, Density, gauss_points
from steingate.certificates.risk import Risk
from steingate.errors import InputError

Array = npt.NDArray[np.float64]

__all__ = ["Beta", "Density", "HybridReference", "Interior", "LogitNormal"]


class Interior(Protocol):
    """A density on (0, 1) as the certificate uses it."""

    @property
    def logit_range(self) -> tuple[float, float]:
        """Interval of t = logit(x) outside of which the mass is negligible."""
        ...

    def log_pdf(self, x: Any, /) -> Array:
        """Logarithm of the density at ``x``."""
        ...

    def pdf(self, x: Any, /) -> Array:
        """Density at ``x``."""
        ...

    def score(self, x: Any, /) -> Array:
        """Score at ``x``: the derivative of the logarithm of the density."""
        ...

    def logit_score(self, x: Any, /) -> Array:
        """Score of t = logit(x), as a function of ``x``: x (1 - x) score(x) + 1 - 2x."""
        ...

    def logit_log_pdf(self, t: Any, /) -> Array:
        """Logarithm of the density of t = logit(x)."""
        ...

    def sample(self, rng: np.random.Generator, size: int, /) -> Array:
        """Independent draws."""
        ...


@dataclass(frozen=True)
class Beta:
    """Beta density with shapes a and b: x^(a-1) (1-x)^(b-1) / B(a, b)."""

    a: float = 2.0
    b: float = 5.0

    def __post_init__(self) -> None:
        for name, value in (("a", self.a), ("b", self.b)):
            if not (is_real(value) and 0.0 < value < np.inf):
                raise InputError(f"The Beta shape {name} is {value!r}: give a positive number.")

    @property
    def logit_range(self) -> tuple[float, float]:
        """Interval of logit(x) outside of which the mass is negligible."""
        mode = float(np.log(self.a / self.b))
        # Below the mode the density of t falls like exp(a t), once t is past the bend of the logistic.
        return min(mode, 0.0) - TAIL_DROP / self.a - 5.0, max(mode, 0.0) + TAIL_DROP / self.b + 5.0

    def log_pdf(self, x: npt.ArrayLike) -> Array:
        """Logarithm of the density at ``x``."""
        x = np.asarray(x, dtype=np.float64)
        return np.asarray((self.a - 1) * np.log(x) + (self.b - 1) * np.log1p(-x) - betaln(self.a, self.b))

    def pdf(self, x: npt.ArrayLike) -> Array:
        """Density at ``x``."""
        return np.asarray(np.exp(self.log_pdf(x)))

    def score(self, x: npt.ArrayLike) -> Array:
        """Score at ``x``: the derivative of the logarithm of the density."""
        x = np.asarray(x, dtype=np.float64)
        return np.asarray((self.a - 1.0) / x - (self.b - 1.0) / (1.0 - x))

    def logit_score(self, x: npt.ArrayLike) -> Array:
        """Score of logit(x) at ``x``: a - (a + b) x, bounded for every Beta."""
        return np.asarray(self.a - (self.a + self.b) * np.asarray(x, dtype=np.float64))

    def logit_log_pdf(self, t: npt.ArrayLike) -> Array:
        """Logarithm of the density of t = logit(x)."""
        t = np.asarray(t, dtype=np.float64)
        return np.asarray(self.a * log_expit(t) + self.b * log_expit(-t) - betaln(self.a, self.b))

    def sample(self, rng: np.random.Generator, size: int) -> Array:
        """Independent draws."""
        return rng.beta(self.a, self.b, size)


@dataclass(frozen=True)
class LogitNormal:
    """Density of x when logit(x) is normal with mean ``mu`` and standard deviation ``sigma``."""

    mu: float = -1.0
    sigma: float = 1.0

    def __post_init__(self) -> None:
        if not (is_real(self.mu) and np.isfinite(self.mu)):
            raise InputError(f"The logit-normal mu is {self.mu!r}: give a finite number.")
        if not (is_real(self.sigma) and 0.0 < self.sigma < np.inf):
            raise InputError(f"The logit-normal sigma is {self.sigma!r}: give a positive number.")

    @property
    def logit_range(self) -> tuple[float, float]:
        """Interval of logit(x) outside of which the mass is negligible."""
        reach = float(np.sqrt(2.0 * TAIL_DROP)) * self.sigma
        return self.mu - reach, self.mu + reach

    def log_pdf(self, x: npt.ArrayLike) -> Array:
        """Logarithm of the density at ``x``."""
        x = np.asarray(x, dtype=np.float64)
        return np.asarray(self.logit_log_pdf(logit(x)) - np.log(x) - np.log1p(-x))

    def pdf(self, x: npt.ArrayLike) -> Array:
        """Density at ``x``."""
        return np.asarray(np.exp(self.log_pdf(x)))

    def score(self, x: npt.ArrayLike) -> Array:
        """Score at ``x``: the derivative of the logarithm of the density."""
        x = np.asarray(x, dtype=np.float64)
        return np.asarray((self.logit_score(x) - (1.0 - 2.0 * x)) / (x * (1.0 - x)))

    def logit_score(self, x: npt.ArrayLike) -> Array:
        """Score of logit(x) at ``x``: (mu - logit(x)) / sigma², unbounded at both ends."""
        return np.asarray((self.mu - logit(np.asarray(x, dtype=np.float64))) / self.sigma**2)

    def logit_log_pdf(self, t: npt.ArrayLike) -> Array:
        """Logarithm of the density of t = logit(x)."""
        z = (np.asarray(t, dtype=np.float64) - self.mu) / self.sigma
        return np.asarray(-0.5 * z * z - np.log(self.sigma * np.sqrt(2.0 * np.pi)))

    def sample(self, rng: np.random.Generator, size: int) -> Array:
        """Independent draws."""
        return np.asarray(expit(rng.normal(self.mu, self.sigma, size)))


@dataclass(frozen=True)
class HybridReference:
    """Atoms at 0 and 1 and a density between: zero_mass δ₀ + one_mass δ₁ + interior_mass p."""

    interior: Interior
    zero_mass: float = 0.0
    one_mass: float = 0.0

    def __post_init__(self) -> None:
        for name, mass in (("zero_mass", self.zero_mass), ("one_mass", self.one_mass)):
            if not (is_real(mass) and 0.0 <= mass <= 1.0):
                raise InputError(f"The atom {name} is {mass!r}: give a number in [0, 1].")
        total = self.zero_mass + self.one_mass
        if total > 1.0:
            raise InputError(
                f"The atoms zero_mass and one_mass add up to {total!r}: keep their sum at most 1."
            )

    @property
    def interior_mass(self) -> float:
        """Mass of the density between the atoms."""
        return 1.0 - self.zero_mass - self.one_mass

    def expectation(self, risk: Risk) -> float:
        """Mean of ``risk`` under the reference, by quadrature, to about 1e-11 absolute.

        Steps and kinks of ``risk`` cost no accuracy when its ``breaks`` name them.
        """
        at_zero, at_one = np.asarray(risk(np.array([0.0, 1.0])), dtype=np.float64)
        inner = _interior_mean(self.interior, risk) if self.interior_mass > 0.0 else 0.0
        return float(self.zero_mass * at_zero + self.one_mass * at_one + self.interior_mass * inner)


def _interior_mean(interior: Interior, risk: Risk) -> float:
    """Mean of ``risk`` under a density, with panels halved until the mean and the mass have settled."""
    low, high = interior.logit_range
    splits = logit(np.asarray(getattr(risk, "breaks", ()), dtype=np.float64))
    splits = splits[(splits > low) & (splits < high)]
    panels = int(np.ceil(2.0 * (high - low)))
    previous = -np.inf
    while panels < 2**20:
        edges = np.union1d(np.linspace(low, high, panels + 1), splits)
        t, weight = gauss_points(edges)
        weight = weight * np.exp(interior.logit_log_pdf(t))
        mass = float(weight.sum())
        mean = float((weight * risk(expit(t))).sum()) / mass if mass > 0.0 else np.inf
        if abs(mean - previous) <= 1e-11 and abs(mass - 1.0) <= 1e-6:
            return mean
        previous = mean
        panels *= 2
    raise InputError(f"The mean risk under {interior!r} does not settle: give a smoother density or risk.")
