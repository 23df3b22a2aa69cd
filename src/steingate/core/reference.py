"""References on [0, 1]: a density inside (0, 1), and the hybrid of two atoms with such a density.

Integrals run over t = logit(x), where every density here decays at least exponentially at both ends and
singularities at 0 and 1 disappear. The density of t is p(x) x (1 - x), and the derivative of its logarithm is
``logit_score`` = x (1 - x) s(x) + 1 - 2x.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, expit, log_expit, logit

from steingate.core.risk import Risk
from steingate.errors import InputError

Array = npt.NDArray[np.float64]

# Integrals stop where the density of t has fallen by this factor of e from its top: far below rounding.
TAIL_DROP = 45.0
EDGE = 20.0  # |logit(x)| up to which 1 - x keeps enough digits to evaluate a given function of x
GAUSS_NODES, GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(16)


class Interior(Protocol):
    """A density on (0, 1) as the certificate uses it."""

    @property
    def key(self) -> Hashable | None:
        """Identity for caches, or None when two equal-looking densities may differ."""
        ...

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
            if not (0.0 < value < np.inf):
                raise InputError(f"The Beta shape {name} is {value!r}: give a positive number.")

    @property
    def key(self) -> Hashable:
        """Identity for caches."""
        return ("beta", float(self.a), float(self.b))

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
        if not np.isfinite(self.mu):
            raise InputError(f"The logit-normal mu is {self.mu!r}: give a finite number.")
        if not (0.0 < self.sigma < np.inf):
            raise InputError(f"The logit-normal sigma is {self.sigma!r}: give a positive number.")

    @property
    def key(self) -> Hashable:
        """Identity for caches."""
        return ("logit-normal", float(self.mu), float(self.sigma))

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


class Density:
    """Any density on (0, 1), given by its log-pdf up to a constant, or by its score, or by both.

    Parameters
    ----------
    log_pdf, score
        Functions of an array of points in (0, 1); one of them is enough. A missing score is a five-point
        difference of the log-pdf (about eleven digits), a missing log-pdf is the integral of the score.
    name
        What to call the density in reports.

    Notes
    -----
    The density is normalised numerically; features wider than about 0.01 in logit(x) are resolved. Beyond
    |logit(x)| = 20 it is taken as a power of x or 1 - x; one that is not integrable there is refused.
    Instances are not changed after they are made.
    """

    def __init__(
        self,
        log_pdf: Callable[[Array], Any] | None = None,
        score: Callable[[Array], Any] | None = None,
        name: str = "density",
    ) -> None:
        if log_pdf is None and score is None:
            raise InputError("The density has neither log_pdf nor score: give one of the two functions.")
        self.name = name
        self._log_pdf, self._score = log_pdf, score
        self._knots = np.linspace(-EDGE, EDGE, 4001)
        left, right = self.logit_score(expit(np.array([-EDGE, EDGE])))
        if not (0.0 < left < np.inf and -np.inf < right < 0.0):
            raise InputError(
                f"The density {name!r} cannot be integrated up to 0 and 1: check its sign and exponents."
            )
        self._slopes = float(left), float(right)
        self._log_mass = 0.0
        self._primitive = self._knots * 0.0
        if log_pdf is None:
            cells = _cell_integrals(lambda t: self.logit_score(expit(t)), self._knots)
            self._primitive = np.concatenate([[0.0], np.cumsum(cells)])
        self._log_mass = float(self._body(self._knots).max())  # keeps exp() below in range
        cells = _cell_integrals(lambda t: np.exp(self._body(t)), self._knots)
        first, last = np.exp(self._body(self._knots[[0, -1]]))
        masses = np.concatenate([[first / left], cells, [last / -right]])
        if not np.isfinite(masses).all():
            raise InputError(f"The density {name!r} is not finite on (0, 1): check its log_pdf or score.")
        self._log_mass += float(np.log(masses.sum()))
        self._cumulative = np.cumsum(masses[:-1]) / masses.sum()

    def __repr__(self) -> str:
        return f"Density(name={self.name!r})"

    @property
    def key(self) -> Hashable | None:
        """None: two functions cannot be compared."""
        return None

    @property
    def logit_range(self) -> tuple[float, float]:
        """Interval of logit(x) outside of which the mass is negligible."""
        return -EDGE - TAIL_DROP / self._slopes[0], EDGE - TAIL_DROP / self._slopes[1]

    def log_pdf(self, x: npt.ArrayLike) -> Array:
        """Logarithm of the normalised density at ``x``."""
        x = np.asarray(x, dtype=np.float64)
        return np.asarray(self.logit_log_pdf(logit(x)) - np.log(x) - np.log1p(-x))

    def pdf(self, x: npt.ArrayLike) -> Array:
        """Normalised density at ``x``."""
        return np.asarray(np.exp(self.log_pdf(x)))

    def score(self, x: npt.ArrayLike) -> Array:
        """Score at ``x``: the derivative of the logarithm of the density."""
        x = np.asarray(x, dtype=np.float64)
        if self._score is not None:
            return np.asarray(self._score(x), dtype=np.float64)
        assert self._log_pdf is not None
        # A power of two as the step keeps x ± step exact next to 1, where differences would lose digits.
        step = np.ldexp(1.0, np.frexp(np.minimum(x, 1.0 - x))[1] - 10)
        near = np.asarray(self._log_pdf(x + step)) - np.asarray(self._log_pdf(x - step))
        far = np.asarray(self._log_pdf(x + 2.0 * step)) - np.asarray(self._log_pdf(x - 2.0 * step))
        return np.asarray((8.0 * near - far) / (12.0 * step), dtype=np.float64)

    def logit_score(self, x: npt.ArrayLike) -> Array:
        """Score of logit(x) at ``x``: x (1 - x) score(x) + 1 - 2x."""
        x = np.asarray(x, dtype=np.float64)
        return np.asarray(x * (1.0 - x) * self.score(x) + 1.0 - 2.0 * x)

    def logit_log_pdf(self, t: npt.ArrayLike) -> Array:
        """Logarithm of the density of t = logit(x)."""
        t = np.asarray(t, dtype=np.float64)
        beyond = np.minimum(t + EDGE, 0.0) * self._slopes[0] + np.maximum(t - EDGE, 0.0) * self._slopes[1]
        return np.asarray(self._body(np.clip(t, -EDGE, EDGE)) + beyond)

    def sample(self, rng: np.random.Generator, size: int) -> Array:
        """Independent draws, by linear interpolation of the tabulated distribution function in logit(x)."""
        u = rng.random(size)
        t = np.interp(u, self._cumulative, self._knots)
        low, high = u < self._cumulative[0], u > self._cumulative[-1]
        t[low] += np.log(u[low] / self._cumulative[0]) / self._slopes[0]
        t[high] += np.log((1.0 - u[high]) / (1.0 - self._cumulative[-1])) / self._slopes[1]
        return np.asarray(expit(t))

    def _body(self, t: Array) -> Array:
        """Logarithm of the density of t for |t| <= EDGE."""
        if self._log_pdf is not None:
            x = expit(t)
            return np.asarray(self._log_pdf(x), dtype=np.float64) + np.log(x) + np.log1p(-x) - self._log_mass
        cell = np.clip(np.searchsorted(self._knots, t) - 1, 0, self._knots.size - 1)
        half = 0.5 * (t - self._knots[cell])
        nodes = (self._knots[cell] + half)[..., None] + half[..., None] * GAUSS_NODES
        return (
            self._primitive[cell] + half * (self.logit_score(expit(nodes)) @ GAUSS_WEIGHTS) - self._log_mass
        )


@dataclass(frozen=True)
class HybridReference:
    """Atoms at 0 and 1 and a density between: zero_mass δ₀ + one_mass δ₁ + interior_mass p."""

    interior: Interior
    zero_mass: float = 0.0
    one_mass: float = 0.0

    def __post_init__(self) -> None:
        for name, mass in (("zero_mass", self.zero_mass), ("one_mass", self.one_mass)):
            if not (0.0 <= mass <= 1.0):
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

    @property
    def key(self) -> Hashable | None:
        """Identity for caches, or None when the interior has none."""
        inner = self.interior.key
        return None if inner is None else (inner, float(self.zero_mass), float(self.one_mass))

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
        t, weight = _gauss_points(edges)
        weight = weight * np.exp(interior.logit_log_pdf(t))
        mass = float(weight.sum())
        mean = float((weight * risk(expit(t))).sum()) / mass if mass > 0.0 else np.inf
        if abs(mean - previous) <= 1e-11 and abs(mass - 1.0) <= 1e-6:
            return mean
        previous = mean
        panels *= 2
    raise InputError(f"The mean risk under {interior!r} does not settle: give a smoother density or risk.")


def _gauss_points(edges: Array) -> tuple[Array, Array]:
    """Nodes and weights of Gauss quadrature between neighbouring edges, shape (panels, order)."""
    half = 0.5 * np.diff(edges)[:, None]
    return edges[:-1, None] + half * (1.0 + GAUSS_NODES), half * GAUSS_WEIGHTS


def _cell_integrals(function: Callable[[Array], Array], edges: Array) -> Array:
    """Integral of ``function`` between neighbouring edges."""
    nodes, weights = _gauss_points(edges)
    return np.asarray((function(nodes) * weights).sum(axis=1))
