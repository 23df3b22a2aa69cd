"""Reference distributions on [0, 1]: a density on (0, 1), and its mixture with atoms at 0 and 1.

Integrals run over t = logit(x), where the densities decay exponentially and singularities at 0 and 1 vanish.
The density of t is p(x) x (1 - x); the derivative of its logarithm is x (1 - x) s(x) + 1 - 2x.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, expit, log_expit, logit

from steingate.certificates.risk import Risk
from steingate.errors import InputError, is_real

Array = npt.NDArray[np.float64]

TAIL_DROP = 45.0  # integrals stop where the log-density of t has fallen by this much
EDGE = 20.0  # |logit(x)| up to which a given function of x is evaluated: 1 - x has enough digits there
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


class Interior(ABC):
    """A density p on (0, 1); methods take and return arrays."""

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

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int) -> Array:
        """Return independent samples."""

    def score(self, x: npt.ArrayLike) -> Array:
        """Return the score s(x) = (log p)'(x)."""
        x = np.asarray(x, dtype=np.float64)
        return np.asarray((self.logit_score(x) - (1.0 - 2.0 * x)) / (x * (1.0 - x)))

    def log_pdf(self, x: npt.ArrayLike) -> Array:
        """Return log p(x)."""
        x = np.asarray(x, dtype=np.float64)
        return np.asarray(self.logit_log_pdf(logit(x)) - np.log(x) - np.log1p(-x))

    def pdf(self, x: npt.ArrayLike) -> Array:
        """Return p(x)."""
        return np.asarray(np.exp(self.log_pdf(x)))


@dataclass(frozen=True)
class Beta(Interior):
    """Beta density x^(a-1) (1-x)^(b-1) / B(a, b)."""

    a: float = 2.0
    b: float = 5.0

    def __post_init__(self) -> None:
        for name, value in (("a", self.a), ("b", self.b)):
            if not (is_real(value) and 1e-3 <= value <= 1e9):
                raise InputError(f"The Beta shape {name} is {value!r}: give a number between 0.001 and 1e9.")

    @property
    def logit_range(self) -> tuple[float, float]:
        """Interval of t = logit(x) outside of which the mass is negligible."""
        mode = float(np.log(self.a / self.b))
        # Below the mode the density of t falls like exp(a t), once t is past the bend of the logistic.
        return min(mode, 0.0) - TAIL_DROP / self.a - 5.0, max(mode, 0.0) + TAIL_DROP / self.b + 5.0

    def score(self, x: npt.ArrayLike) -> Array:
        """Return the score (a - 1) / x - (b - 1) / (1 - x)."""
        x = np.asarray(x, dtype=np.float64)
        return np.asarray((self.a - 1.0) / x - (self.b - 1.0) / (1.0 - x))

    def logit_score(self, x: npt.ArrayLike) -> Array:
        """Return the score of t: a - (a + b) x, bounded for every Beta."""
        return np.asarray(self.a - (self.a + self.b) * np.asarray(x, dtype=np.float64))

    def logit_log_pdf(self, t: npt.ArrayLike) -> Array:
        """Return the logarithm of the density of t = logit(x)."""
        t = np.asarray(t, dtype=np.float64)
        return np.asarray(self.a * log_expit(t) + self.b * log_expit(-t) - betaln(self.a, self.b))

    def sample(self, rng: np.random.Generator, size: int) -> Array:
        """Return independent samples."""
        return rng.beta(self.a, self.b, size)


@dataclass(frozen=True)
class LogitNormal(Interior):
    """Density of x if logit(x) is normal with mean ``mu`` and standard deviation ``sigma``."""

    mu: float = -1.0
    sigma: float = 1.0

    def __post_init__(self) -> None:
        if not (is_real(self.mu) and abs(self.mu) <= 500.0):
            raise InputError(f"The logit-normal mu is {self.mu!r}: give a number between -500 and 500.")
        if not (is_real(self.sigma) and 1e-3 <= self.sigma <= 1e3):
            raise InputError(f"The logit-normal sigma is {self.sigma!r}: give a number between 0.001 and 1000.")

    @property
    def logit_range(self) -> tuple[float, float]:
        """Interval of t = logit(x) outside of which the mass is negligible."""
        reach = float(np.sqrt(2.0 * TAIL_DROP)) * self.sigma
        return self.mu - reach, self.mu + reach

    def logit_score(self, x: npt.ArrayLike) -> Array:
        """Return the score of t: (mu - logit(x)) / sigma², unbounded at both ends."""
        return np.asarray((self.mu - logit(np.asarray(x, dtype=np.float64))) / self.sigma**2)

    def logit_log_pdf(self, t: npt.ArrayLike) -> Array:
        """Return the logarithm of the density of t = logit(x)."""
        z = (np.asarray(t, dtype=np.float64) - self.mu) / self.sigma
        return np.asarray(-0.5 * z * z - np.log(self.sigma * np.sqrt(2.0 * np.pi)))

    def sample(self, rng: np.random.Generator, size: int) -> Array:
        """Return independent samples."""
        return np.asarray(expit(rng.normal(self.mu, self.sigma, size)))


class Density(Interior):
    """Any density on (0, 1), given by its log-pdf up to a constant.

    Parameters
    ----------
    log_pdf
        Function of an array of points in (0, 1).
    score
        Derivative of ``log_pdf``; by default a five-point difference (about eleven digits).
    name
        Name in messages.

    Notes
    -----
    The density is normalized by quadrature; features wider than about 0.01 in logit(x) are resolved. Beyond
    ``|logit(x)|`` = 20 it is taken as a power of x or 1 - x; one that is not integrable there is refused.
    """

    def __init__(
        self,
        log_pdf: Callable[[Array], Any],
        score: Callable[[Array], Any] | None = None,
        name: str = "density",
    ) -> None:
        self.name = name
        self._log_pdf, self._score = log_pdf, score
        self._knots = np.linspace(-EDGE, EDGE, 4001)
        left, right = self.logit_score(expit(np.array([-EDGE, EDGE])))
        if not (0.0 < left < np.inf and -np.inf < right < 0.0):
            raise InputError(f"The density {name!r} cannot be integrated up to 0 and 1: check its sign and exponents.")
        self._slopes = float(left), float(right)
        self._log_mass = 0.0
        self._log_mass = float(self._body(self._knots).max())  # keeps exp() below in range
        nodes, weights = gauss_points(self._knots)
        cells = (np.exp(self._body(nodes)) * weights).sum(axis=1)
        first, last = np.exp(self._body(self._knots[[0, -1]]))
        masses = np.concatenate([[first / left], cells, [last / -right]])
        if not np.isfinite(masses).all():
            raise InputError(f"The density {name!r} is not finite on (0, 1): check its log_pdf.")
        self._log_mass += float(np.log(masses.sum()))
        self._cumulative = np.cumsum(masses[:-1]) / masses.sum()

    def __repr__(self) -> str:
        return f"Density(name={self.name!r})"

    @property
    def logit_range(self) -> tuple[float, float]:
        """Interval of t = logit(x) outside of which the mass is negligible."""
        return -EDGE - TAIL_DROP / self._slopes[0], EDGE - TAIL_DROP / self._slopes[1]

    def score(self, x: npt.ArrayLike) -> Array:
        """Return the score s(x) = (log p)'(x)."""
        x = np.asarray(x, dtype=np.float64)
        if self._score is not None:
            return np.asarray(self._score(x), dtype=np.float64)
        # A power of two as the step keeps x ± step exact next to 1, where differences would lose digits.
        step = np.ldexp(1.0, np.frexp(np.minimum(x, 1.0 - x))[1] - 10)
        near = np.asarray(self._log_pdf(x + step)) - np.asarray(self._log_pdf(x - step))
        far = np.asarray(self._log_pdf(x + 2.0 * step)) - np.asarray(self._log_pdf(x - 2.0 * step))
        return np.asarray((8.0 * near - far) / (12.0 * step), dtype=np.float64)

    def logit_score(self, x: npt.ArrayLike) -> Array:
        """Return the score of t as a function of x: x (1 - x) s(x) + 1 - 2x."""
        x = np.asarray(x, dtype=np.float64)
        return np.asarray(x * (1.0 - x) * self.score(x) + 1.0 - 2.0 * x)

    def logit_log_pdf(self, t: npt.ArrayLike) -> Array:
        """Return the logarithm of the density of t = logit(x)."""
        t = np.asarray(t, dtype=np.float64)
        beyond = np.minimum(t + EDGE, 0.0) * self._slopes[0] + np.maximum(t - EDGE, 0.0) * self._slopes[1]
        return np.asarray(self._body(np.clip(t, -EDGE, EDGE)) + beyond)

    def sample(self, rng: np.random.Generator, size: int) -> Array:
        """Return independent samples, by interpolation of the distribution function in logit(x)."""
        u = rng.random(size)
        t = np.interp(u, self._cumulative, self._knots)
        low, high = u < self._cumulative[0], u > self._cumulative[-1]
        t[low] += np.log(u[low] / self._cumulative[0]) / self._slopes[0]
        t[high] += np.log((1.0 - u[high]) / (1.0 - self._cumulative[-1])) / self._slopes[1]
        return np.asarray(expit(t))

    def _body(self, t: Array) -> Array:
        """Logarithm of the density of t for |t| <= EDGE."""
        x = expit(t)
        return np.asarray(self._log_pdf(x), dtype=np.float64) + np.log(x) + np.log1p(-x) - self._log_mass


@dataclass(frozen=True)
class HybridReference:
    """Atoms at 0 and 1 and a density between them: zero_mass δ₀ + one_mass δ₁ + interior_mass p."""

    interior: Interior
    zero_mass: float = 0.0
    one_mass: float = 0.0

    def __post_init__(self) -> None:
        for name, mass in (("zero_mass", self.zero_mass), ("one_mass", self.one_mass)):
            if not (is_real(mass) and 0.0 <= mass <= 1.0):
                raise InputError(f"The atom {name} is {mass!r}: give a number in [0, 1].")
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


def gauss_points(edges: Array) -> tuple[Array, Array]:
    """Return nodes and weights of Gauss quadrature between neighboring edges, shape (panels, order)."""
    half = 0.5 * np.diff(edges)[:, None]
    return edges[:-1, None] + half * (1.0 + _NODES), half * _WEIGHTS


def _interior_mean(interior: Interior, risk: Risk) -> float:
    """Mean of ``risk`` under a density; panels are halved until mean and mass have converged."""
    low, high = interior.logit_range
    splits = logit(np.asarray(getattr(risk, "breaks", ()), dtype=np.float64))
    splits = splits[(splits > low) & (splits < high)]
    panels = int(np.ceil(2.0 * (high - low)))
    previous = -np.inf
    while panels < 2**20:
        t, weight = gauss_points(np.union1d(np.linspace(low, high, panels + 1), splits))
        weight = weight * np.exp(interior.logit_log_pdf(t))
        mass = float(weight.sum())
        mean = float((weight * risk(expit(t))).sum()) / mass if mass > 0.0 else np.inf
        if abs(mean - previous) <= 1e-11 and abs(mass - 1.0) <= 1e-6:
            return mean
        previous = mean
        panels *= 2
    raise InputError(f"The mean risk under {interior!r} does not converge: give a smoother density or risk.")
