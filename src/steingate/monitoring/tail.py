"""The grid on which costs are counted, and what bounds on P(cost > c) say about mean and CVaR."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from steingate.certificates.risk import Risk

Array = npt.NDArray[np.float64]

CELLS = 1000  # of equal width from 0 to twice the limit, or to 1 when the limit is 0
STEPS = 10  # thresholds of the tail per limit, up to twice the limit
BEYOND = 4  # further thresholds up to the cap, in geometric progression


def cost_scale(limit: float) -> float:
    """Return the cost that the soft risk takes as 1: twice the limit, or 1 when the limit is 0."""
    return 2.0 * limit if limit > 0.0 else 1.0


@dataclass(frozen=True, eq=False)
class Grid:
    """Cells of costs: cell i holds costs above edge i - 1 and up to edge i, the last one those above all.

    Attributes
    ----------
    limit, cap : the limit, and the cost from which on mean and CVaR count no more
    edges : upper ends of the cells
    thresholds : indices of the edges at which the tail is bounded; the limit is one of them
    """

    limit: float
    cap: float
    edges: Array
    thresholds: npt.NDArray[np.int64]

    @classmethod
    def of(cls, limit: float, cap: float) -> "Grid":
        """Return the grid of a limit; plain arithmetic makes it the same on every machine."""
        scale = cost_scale(limit)
        cells = np.arange(CELLS + 1) * (scale / CELLS)
        cells[CELLS // 2] = scale / 2.0
        ratio = cap / scale
        beyond = [scale * ratio ** (k / BEYOND) for k in range(1, BEYOND)] + [cap] if ratio > 1 else []
        edges = np.concatenate([cells, beyond])
        coarse = np.arange(0, CELLS + 1, CELLS // (2 * STEPS))
        thresholds = np.concatenate([coarse, np.arange(CELLS + 1, len(edges))])
        needed = (edges[thresholds] < cap) | (edges[thresholds] == limit) | (thresholds > CELLS)
        return cls(limit, cap, edges, thresholds[needed])

    @property
    def within(self) -> int:
        """Number of cells within the limit."""
        return CELLS // 2 + 1 if self.limit > 0.0 else 1

    def above(self, cells: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return how many costs are above each threshold, given the number in each cell."""
        upto = np.cumsum(cells)
        return np.asarray(upto[-1] - upto[self.thresholds])

    def risks(self, risk: Risk) -> Array:
        """Return the largest risk in each cell: that of its upper end, at the scale of the cells."""
        x = np.minimum(np.append(self.edges, np.inf) / cost_scale(self.limit), 1.0)
        return np.asarray(risk(x), dtype=np.float64)


def capped_mean(thresholds: Array, bounds: Array, cap: float, tail: float = 1.0) -> float:
    """Return a bound on the mean of min(cost, cap) over the worst share ``tail`` of episodes.

    It is the integral over c from 0 to the cap of min(1, P(cost > c) / tail); between thresholds the bound at
    the lower one holds.

    Parameters
    ----------
    thresholds, bounds
        Bounds on P(cost > c) at growing c.
    cap
        Where costs are cut off.
    tail
        Share of worst episodes; 1 gives the mean.
    """
    inside = thresholds < cap
    ends = np.append(thresholds[inside], cap)
    heights = np.minimum.accumulate(np.concatenate([[1.0], bounds[inside]]))
    return float(np.diff(ends, prepend=0.0) @ np.minimum(heights / tail, 1.0))
