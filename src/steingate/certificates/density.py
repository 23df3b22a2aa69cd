"""Any density on (0, 1) from its log-pdf or its score, normalized by quadrature over t = logit(x)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from steingate.errors import InputError

Array = npt.NDArray[np.float64]

TAIL_DROP = 45.0  # integrals stop where the log-density of t has fallen this far: well below rounding
EDGE = 20.0  # |logit(x)| up to which 1 - x keeps enough digits to evaluate a given function of x
GAUSS_NODES, GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(16)


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
    The density is normalized numerically; features wider than about 0.01 in logit(x) are resolved. Beyond
    ``|logit(x)|`` = 20 it is taken as a power of x or 1 - x; one that is not integrable there is refused.
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
    def logit_range(self) -> tuple[float, float]:
        """Interval of logit(x) outside of which the mass is negligible."""
        return -EDGE - TAIL_DROP / self._slopes[0], EDGE - TAIL_DROP / self._slopes[1]

    def log_pdf(self, x: npt.ArrayLike) -> Array:
        """Logarithm of the normalized density at ``x``."""
        x = np.asarray(x, dtype=np.float64)
        return np.asarray(self.logit_log_pdf(logit(x)) - np.log(x) - np.log1p(-x))

    def pdf(self, x: npt.ArrayLike) -> Array:
        """Return the normalized density at ``x``."""
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


def gauss_points(edges: Array) -> tuple[Array, Array]:
    """Nodes and weights of Gauss quadrature between neighboring edges, shape (panels, order)."""
    half = 0.5 * np.diff(edges)[:, None]
    return edges[:-1, None] + half * (1.0 + GAUSS_NODES), half * GAUSS_WEIGHTS


def _cell_integrals(function: Callable[[Array], Array], edges: Array) -> Array:
    """Integral of ``function`` between neighboring edges."""
    nodes, weights = gauss_points(edges)
    return np.asarray((function(nodes) * weights).sum(axis=1))
