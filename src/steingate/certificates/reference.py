"""Reference distributions on [0, 1]: a density on (0, 1), and its mixture with atoms at 0 and 1.

Integrals run over t = logit(x), where the densities decay exponentially and singularities at 0 and 1 vanish.
The density of t is p(x) x (1 - x); the derivative of its logarithm is x (1 - x) s(x) + 1 - 2x.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, expit, log_expit, logit

from steingate.certificates.risk import Risk
from steingate.errors import InputError, check_interval

Array = npt.NDArray[np.float64]

TAIL_DROP = 45.0  # integrals stop where the log-density of t has fallen by this much
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


class Interior(ABC):
    """A density p on (0, 1); methods take and return arrays. For a density of your own, write a subclass."""

    @property
    @abstractmethod
    def logit_range(self) -> tuple[float, float]:
        """Interval of t = logit(x) outside of which the mass is negligible."""

    @abstractmethod
    def logit_log_pdf(self, t: npt.ArrayLike) -> Array:
        """Return the logarithm of the density of t = logit(x)."""

    @abstractmethod
    def logit_score(self, x: npt.ArrayLike) -> Array:
        """Return the score of t as a function of x: x (1 - x) s(x) + 1 - 2x."""

    def score(self, x: npt.ArrayLike) -> Array:
        """Return the score s(x) = (log p)'(x)."""
        x = np.asarray(x, dtype=np.float64)
        return np.asarray((self.logit_score(x) - (1.0 - 2.0 * x)) / (x * (1.0 - x)))

    def pdf(self, x: npt.ArrayLike) -> Array:
        """Return p(x)."""
        x = np.asarray(x, dtype=np.float64)
        return np.asarray(np.exp(self.logit_log_pdf(logit(x)) - np.log(x) - np.log1p(-x)))


@dataclass(frozen=True)
class Beta(Interior):
    """Beta density x^(a-1) (1-x)^(b-1) / B(a, b)."""

    a: float = 2.0
    b: float = 5.0

    def __post_init__(self) -> None:
        check_interval("Beta shape a", self.a, 1e-3, 1e9, "[]")
        check_interval("Beta shape b", self.b, 1e-3, 1e9, "[]")

    @property
    def logit_range(self) -> tuple[float, float]:
        mode = float(np.log(self.a / self.b))
        # Below the mode the density of t falls like exp(a t), once t is past the bend of the logistic.
        return min(mode, 0.0) - TAIL_DROP / self.a - 5.0, max(mode, 0.0) + TAIL_DROP / self.b + 5.0

    def score(self, x: npt.ArrayLike) -> Array:
        x = np.asarray(x, dtype=np.float64)
        return np.asarray((self.a - 1.0) / x - (self.b - 1.0) / (1.0 - x))

    def logit_score(self, x: npt.ArrayLike) -> Array:
        return np.asarray(self.a - (self.a + self.b) * np.asarray(x, dtype=np.float64))

    def logit_log_pdf(self, t: npt.ArrayLike) -> Array:
        t = np.asarray(t, dtype=np.float64)
        return np.asarray(self.a * log_expit(t) + self.b * log_expit(-t) - betaln(self.a, self.b))


@dataclass(frozen=True)
class LogitNormal(Interior):
    """Density of x if logit(x) is normal with mean ``mu`` and standard deviation ``sigma``."""

    mu: float = -1.0
    sigma: float = 1.0

    def __post_init__(self) -> None:
        check_interval("LogitNormal mu", self.mu, -500.0, 500.0, "[]")
        check_interval("LogitNormal sigma", self.sigma, 1e-3, 1e3, "[]")

    @property
    def logit_range(self) -> tuple[float, float]:
        reach = float(np.sqrt(2.0 * TAIL_DROP)) * self.sigma
        return self.mu - reach, self.mu + reach

    def logit_score(self, x: npt.ArrayLike) -> Array:
        return np.asarray((self.mu - logit(np.asarray(x, dtype=np.float64))) / self.sigma**2)

    def logit_log_pdf(self, t: npt.ArrayLike) -> Array:
        z = (np.asarray(t, dtype=np.float64) - self.mu) / self.sigma
        return np.asarray(-0.5 * z * z - np.log(self.sigma * np.sqrt(2.0 * np.pi)))


@dataclass(frozen=True)
class HybridReference:
    """Atoms at 0 and 1 and a density between them: zero_mass δ₀ + one_mass δ₁ + interior_mass p."""

    interior: Interior
    zero_mass: float = 0.0
    one_mass: float = 0.0

    def __post_init__(self) -> None:
        check_interval("zero_mass", self.zero_mass, 0.0, 1.0, "[]")
        check_interval("one_mass", self.one_mass, 0.0, 1.0, "[]")
        if self.zero_mass + self.one_mass > 1.0:
            raise InputError(f"zero_mass {self.zero_mass:g} and one_mass {self.one_mass:g} add up to more than 1.")

    @property
    def interior_mass(self) -> float:
        """Mass of the density."""
        return 1.0 - self.zero_mass - self.one_mass

    def expectation(self, risk: Risk) -> float:
        """Return the mean of ``risk``, by quadrature, with an absolute error of about 1e-11."""
        at_zero, at_one = np.asarray(risk(np.array([0.0, 1.0])), dtype=np.float64)
        inner = _interior_mean(self.interior, risk) if self.interior_mass > 0.0 else 0.0
        return float(self.zero_mass * at_zero + self.one_mass * at_one + self.interior_mass * inner)


def _interior_mean(interior: Interior, risk: Risk) -> float:
    """Mean of ``risk`` under a density; panels are halved until mean and mass have converged."""
    low, high = interior.logit_range
    splits = logit(np.asarray(getattr(risk, "breaks", ()), dtype=np.float64))
    splits = splits[(splits > low) & (splits < high)]
    panels = int(np.ceil(2.0 * (high - low)))
    previous = -np.inf
    while panels < 2**20:
        edges = np.union1d(np.linspace(low, high, panels + 1), splits)
        half = 0.5 * np.diff(edges)[:, None]
        t = edges[:-1, None] + half * (1.0 + _NODES)
        weight = half * _WEIGHTS * np.exp(interior.logit_log_pdf(t))
        mass = float(weight.sum())
        mean = float((weight * risk(expit(t))).sum()) / mass if mass > 0.0 else np.inf
        if abs(mean - previous) <= 1e-11 and abs(mass - 1.0) <= 1e-6:
            return mean
        previous = mean
        panels *= 2
    raise InputError(f"The mean risk under {interior!r} does not converge: give a smoother density or risk.")
