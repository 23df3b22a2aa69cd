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
def _thresholds(limit: float, cap: float) -> tuple[Array, list[float]]:
    """Return the increasing thresholds of a limit as array and as list; monitors share them."""
    scale = 2.0 * limit if limit > 0.0 else 1.0
    inner = np.arange(0, 1001, 1000 // (2 * STEPS)) * (scale / 1000)
    inner[STEPS] = 0.5 * scale
    inner = inner[(inner < cap) | (inner == limit)]
    ratio = cap / scale
    outer = [scale * ratio ** (k / BEYOND) for k in range(1, BEYOND)] + [cap] if ratio > 1.0 else []
    thresholds: Array = np.concatenate([inner, outer])
    thresholds.setflags(write=False)
    return thresholds, thresholds.tolist()


class Tail:
    """Numbers of episodes whose cost exceeds each of J thresholds.

    The limit is one of the thresholds; with a limit of 0 they lie between 0 and 1. Mean and CVaR are those of
    min(cost, cap).
    """

    def __init__(self, limit: float, cap: float) -> None:
        self.limit, self.cap = limit, cap
        self.thresholds, self._thresholds = _thresholds(limit, cap)
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
        """Return a bound on the mean of min(cost, cap) over the worst ``fraction`` of the episodes; 1: the mean.

        It is the integral of min(1, G(c) / fraction) over c from 0 to the cap. G is a step function: 1 below the first
        threshold, and the bound on P(cost > c) from each threshold c on.
        """
        inside = self.thresholds < self.cap
        ends = np.append(self.thresholds[inside], self.cap)
        heights = np.minimum.accumulate(np.concatenate([[1.0], self.bounds(delta)[inside]]))
        return float(np.diff(ends, prepend=0.0) @ np.minimum(heights / fraction, 1.0))
