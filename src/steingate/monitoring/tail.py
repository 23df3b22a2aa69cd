"""Bounds on P(cost > c) at several thresholds c together, and on mean and CVaR of the cost."""

from bisect import bisect_left
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from steingate.monitoring.wealth import upper_bound

Array = npt.NDArray[np.float64]

STEPS = 10  # thresholds per limit, from 0 to twice the limit
BEYOND = 4  # further thresholds up to the cap, in geometric progression


@lru_cache(256)
def _thresholds(limit: float, cap: float) -> Array:
    """Return the increasing thresholds of a limit; read-only, because monitors share them."""
    scale = 2.0 * limit if limit > 0.0 else 1.0
    inner = np.arange(0, 1001, 1000 // (2 * STEPS)) * (scale / 1000)
    inner[STEPS] = 0.5 * scale
    inner = inner[(inner < cap) | (inner == limit)]
    ratio = cap / scale
    outer = [scale * ratio ** (k / BEYOND) for k in range(1, BEYOND)] + [cap] if ratio > 1.0 else []
    thresholds: Array = np.concatenate([inner, outer])
    thresholds.setflags(write=False)
    return thresholds


@lru_cache(256)
def _threshold_list(limit: float, cap: float) -> list[float]:
    return [float(c) for c in _thresholds(limit, cap)]


class Tail:
    """Numbers of episodes whose cost exceeds each of J thresholds.

    Parameters
    ----------
    limit
        Cost limit; it is one of the thresholds. With a limit of 0 they lie between 0 and 1.
    cap
        Mean and CVaR are those of min(cost, cap).
    """

    def __init__(self, limit: float, cap: float) -> None:
        self.limit, self.cap = limit, cap
        self.thresholds = _thresholds(limit, cap)
        self._thresholds = _threshold_list(limit, cap)
        self.counts: list[float] = [0] * (len(self._thresholds) + 1)  # episodes with c[i-1] < cost <= c[i]

    def update(self, cost: float, weight: float = 1) -> None:
        """Count one episode; an episode of a cluster of n has the weight 1 / n.

        By Jensen's inequality a cluster with the fraction y above a threshold then raises the wealth by no more than
        the factor for y, so the bounds stay valid.
        """
        self.counts[bisect_left(self._thresholds, cost)] += weight

    def exceedances(self) -> Array:
        """Return the number of episodes (clusters) with cost > c for every threshold c."""
        return np.asarray(np.cumsum(self.counts[::-1])[::-1][1:], dtype=np.float64)

    def over_limit(self) -> float:
        """Return the number of episodes (clusters) with cost > limit."""
        return sum(self.counts[bisect_left(self._thresholds, self.limit) + 1 :])

    def bounds(self, delta: float) -> Array:
        """Return upper bounds on P(cost > c) that hold together, at all times, with probability 1 - delta."""
        episodes, share = sum(self.counts), delta / len(self._thresholds)
        bounds = [upper_bound(n, max(episodes - n, 0.0), share) for n in self.exceedances().tolist()]
        return np.minimum.accumulate(bounds)

    def cvar_bound(self, delta: float, fraction: float = 1.0) -> float:
        """Return a bound on the mean of min(cost, cap) over the worst ``fraction`` of the episodes.

        It is the integral of min(1, P(cost > c) / fraction) over c from 0 to the cap.
        """
        return capped_mean(self.thresholds, self.bounds(delta), self.cap, fraction)


def capped_mean(thresholds: Array, bounds: Array, cap: float, fraction: float = 1.0) -> float:
    """Return the integral of min(1, G(c) / fraction) from 0 to ``cap``; a fraction of 1 gives the mean.

    G is a step function: 1 below the first of the increasing ``thresholds``, and ``bounds[i]`` from the i-th on.
    """
    inside = thresholds < cap
    ends = np.append(thresholds[inside], cap)
    heights = np.minimum.accumulate(np.concatenate([[1.0], bounds[inside]]))
    return float(np.diff(ends, prepend=0.0) @ np.minimum(heights / fraction, 1.0))
