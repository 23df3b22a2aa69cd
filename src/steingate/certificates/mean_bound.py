"""An upper confidence bound for the mean of independent [0, 1] variables, from a fixed number of them.

Let x be the sample, K a count of independent successes with probabilities x_i, and phi a nonincreasing
function of a count. If the x_i are independent draws of a law with mean mu >= m, then K, over sample and
successes together, is Binomial(n, mu), so the mean over samples of

    T(m) = sum_k P(K = k | x) phi_m(k)

is E phi_m(Binomial(n, mu)) <= E phi_m(Binomial(n, m)). Where that is at most delta, Markov's inequality gives
P(T(m) >= 1) <= delta. The bound is the supremum of all m that are not rejected (T(m) < 1, or m below
1 - delta**(1/n), where nothing is rejected): if it lies below mu, then mu was rejected, which has probability
at most delta. phi may depend on m, n and delta, not on the data. Here

    phi_m(k) = step_m(k) + (1 - s) (delta - (1 - m)^n) sum_l w_l (1 - c_l)^k (1 + c_l m / (1 - m))^(n - k).

The step is that of Clopper and Pearson at the level (1 - m)^n + s (delta - (1 - m)^n): 1 up to the last count
whose binomial distribution function is within the level, and at the next count the part that the level still
pays for. The bets have fractions 0 <= c_l <= 1 and stakes w_l that sum to 1. The means of step and bets add
up to delta at most, and both grow with m while the c_l stay the same. The bets' part of T is a product, since
sum_k P(K = k | x) (1 - c)^k (1 + c m / (1 - m))^(n - k) = prod_i (1 + c (m - x_i) / (1 - m)).
"""

from collections.abc import Callable
from functools import cache
from math import exp, fsum, inf, log, log1p

import numpy as np
import numpy.typing as npt

from steingate.certificates.bets import (
    bets,
    edge_part,
    log_stakes,
    smallest_mean,
    step_end,
    step_part,
    step_start,
)
from steingate.certificates.bounds import check_delta, unit_sample
from steingate.certificates.poisson_binomial import successes_at_most

Array = npt.NDArray[np.float64]

_DIRECT = 128  # different values up to which a sample carries itself
_KNOTS = 64  # points that carry larger ones
_LARGEST = 1.0 - 1e-12  # candidates above this are not told from 1
_LOOK = 4  # cells examined at once
_NOTHING = -1e300  # logarithm of a stake that is lost


def mean_upper(x: npt.ArrayLike, delta: float) -> float:
    """Return an upper confidence bound for the mean of independent, identically distributed [0, 1] variables.

    Holds with probability at least 1 - delta at every n that was fixed beforehand, does not depend on the
    order of the sample, never falls when a value rises, is never below the mean of the sample, and is
    1 - delta**(1/n) for a sample of zeros.

    >>> round(mean_upper([0.0] * 29, 0.05), 4)
    0.0981
    """
    check_delta(delta)
    values = unit_sample(x)
    if smallest_mean(values.size, delta) > _LARGEST:
        return 1.0
    with np.errstate(divide="ignore"):
        found = _Test(_Sample(values), 0, float(delta)).upper()
    return max(found, float(values.mean()))


def padded_within(x: npt.ArrayLike, delta: float, budget: float) -> Callable[[int], bool]:
    """Return a function that says whether ``mean_upper`` of x and as many more zeros is at most ``budget``.

    Quicker than the bound itself, and its time does not grow with the number of zeros.
    """
    check_delta(delta)
    values = unit_sample(x)
    sample = _Sample(values)

    def within(zeros: int) -> bool:
        if smallest_mean(sample.size + zeros, delta) > _LARGEST:
            return budget >= 1.0
        if sample.total > budget * (sample.size + zeros):
            return False
        with np.errstate(divide="ignore"):
            return _Test(sample, zeros, float(delta)).within(budget)

    return within


class _Sample:
    """What the test needs of sorted values: carriers of the bets' products, and those that are not 0."""

    def __init__(self, values: Array) -> None:
        self.size = values.size
        self.total = float(values.sum())
        self.points, self.weights = _carriers(values)
        self.positive = values[np.searchsorted(values, 0.0, side="right") :]


def _carriers(values: Array) -> tuple[Array, Array]:
    """Return points and weights that stand for sorted values without ever raising a stake.

    A sample of many different values is spread onto knots so that each value keeps its mean; the logarithm
    of a bet is concave in the value, so by Jensen's inequality the product can only fall.
    """
    if values.size <= _DIRECT:
        return values, np.ones(values.size)
    starts = np.flatnonzero(np.diff(values, prepend=-1.0))
    if starts.size <= _DIRECT:
        counts = np.diff(starts, append=values.size)
        return values[starts], np.asarray(counts, dtype=np.float64)
    knots = _knots()
    left = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, _KNOTS - 1)
    right_part = np.clip((values - knots[left]) / (knots[left + 1] - knots[left]), 0.0, 1.0)
    weights = np.asarray(np.bincount(left, 1.0 - right_part, _KNOTS + 1), dtype=np.float64)
    weights += np.bincount(left + 1, right_part, _KNOTS + 1)
    used = weights > 0.0
    return knots[used], weights[used]


@cache
def _knots() -> Array:
    knots = np.sin(np.linspace(0.0, np.pi / 2, _KNOTS + 1)) ** 2
    knots[0], knots[-1] = 0.0, 1.0
    return knots


class _Test:
    """The test T(m) for a sample and more zeros."""

    def __init__(self, sample: _Sample, zeros: int, delta: float) -> None:
        self.n, self.delta = sample.size + zeros, delta
        self.bets = bets(self.n, delta)
        self.points, self.weights, self.zeros = sample.points, sample.weights, float(zeros)
        self.mean = sample.total / self.n
        self.stop = self._candidates()
        edges = self.bets.edges
        highest = float(edges[self.stop]) if self.stop < edges.size else _LARGEST
        self.counts = sample.positive.size  # no more successes than that are possible
        self.at_most = successes_at_most(sample.positive, step_end(self.n, delta, highest) + 1)

    def upper(self) -> float:
        """Return the supremum of the means that stand."""
        stop = self.stop
        while stop > 0:
            cells = slice(max(stop - _LOOK, 0), stop)
            standing = np.flatnonzero(~self._rejected(self.bets.edges[cells], cells))
            if standing.size:
                return self._last_standing(cells.start + int(standing[-1]))
            stop = cells.start
        return float(self.bets.edges[0])

    def within(self, budget: float) -> bool:
        """Return whether every mean above ``budget`` is rejected."""
        edges = self.bets.edges
        cell = int(np.searchsorted(edges, budget, side="right")) - 1
        if cell < 0:
            return False
        if cell < self.stop:
            # T grows inside a cell, so what rejects the budget rejects the rest of it; mostly that decides.
            if not self._rejected(np.array([budget]), slice(cell, cell + 1))[0]:
                return False
            rest = slice(cell + 1, self.stop)
            return bool(self._rejected(edges[rest], rest).all())
        return True

    def _candidates(self) -> int:
        """Return how many cells have left ends that 0/1 data of the same mean would leave standing.

        Such data have the smallest product for every bet, again because its logarithm is concave.
        """
        worst = self.n * ((1.0 - self.mean) * self.bets.miss + self.mean * self.bets.hit)
        sure = (worst + self.bets.log_weight[:-1]).max(axis=1) + self.bets.log_spare >= 0.0
        open_cells = np.flatnonzero(~sure)
        return int(open_cells[-1]) + 1 if open_cells.size else 0

    def _rejected(self, m: Array, cells: slice) -> npt.NDArray[np.bool_]:
        """Return whether T(m) >= 1 at one candidate in each of the cells."""
        missing = [
            self._missing(value, step_end(self.n, self.delta, value), edge_part) for value in m.tolist()
        ]
        share = self.bets.share[cells]
        inner = (1.0 - m[:, None]) + m[:, None] * share
        parts = np.log(np.maximum(inner[..., None] - share[..., None] * self.points, 0.0)) @ self.weights
        parts += self.zeros * np.log(inner) + self.bets.log_weight
        most = np.maximum(parts.max(axis=1), _NOTHING)
        parts = most + np.log(np.exp(parts - most[:, None]).sum(axis=1)) - self.n * np.log1p(-m)
        stakes = [log_stakes(self.n, self.delta, value) for value in m.tolist()]
        return np.asarray(parts + stakes >= missing)

    def _missing(
        self, m: float, k: int, part: Callable[[int, float, float, int], float] = step_part
    ) -> float:
        """Return the logarithm of what the step, which ends at k, leaves to the bets."""
        if k >= self.counts:
            return -inf
        here, following = float(self.at_most[k]), float(self.at_most[k + 1])
        left = 1.0 - here - part(self.n, self.delta, m, k) * (following - here)
        return log(left) if left > 0.0 else -inf

    def _last_standing(self, cell: int) -> float:
        """Return the supremum of the standing means of a cell whose left end stands; T grows inside."""
        edges, n, delta = self.bets.edges, self.n, self.delta
        low = float(edges[cell])
        high = float(edges[cell + 1]) if cell + 1 < edges.size else _LARGEST
        share, log_weight = self.bets.share[cell], self.bets.log_weight
        taken = share[:, None] * self.points

        def gap(m: float, k: int) -> float:
            """Return about log of the bets' part of T over what the step that ends at k leaves to it."""
            inner = (1.0 - m) + m * share
            parts = np.log(np.maximum(inner[:, None] - taken, 0.0)) @ self.weights + log_weight
            if self.zeros:
                parts += self.zeros * np.log(inner)
            found = [float(part) for part in parts]
            most = max(*found, _NOTHING)
            reached = most + log(fsum(exp(part - most) for part in found)) - n * log1p(-m)
            reached += log_stakes(n, delta, m)
            return min(max(reached - max(self._missing(m, k), -1e5), -3.0), 3.0)

        # The last count at which the step can begin without rejecting.
        first, last = step_end(n, delta, low), step_end(n, delta, high) + 1
        while last - first > 1:
            k = (first + last) // 2
            start = step_start(n, delta, k)
            rejects = start >= high or gap(max(start, low), k) >= 0.0
            first, last = (first, k) if rejects else (k, last)
        low = max(low, step_start(n, delta, first))
        high = min(high, step_start(n, delta, last))
        if high <= low:
            return high
        over = gap(high, first)
        if not over > 0.0:
            return high if high < _LARGEST else 1.0
        under = gap(low, first)
        if under >= 0.0:
            return low
        return _root(lambda m: gap(m, first), low, high, under, over, 1e-9 * low)


def _root(
    function: Callable[[float], float], low: float, high: float, under: float, over: float, width: float
) -> float:
    """Return a point at most ``width`` above the root of a growing function, never below it.

    Chandrupatla's method: inverse quadratic interpolation where it is safe, else bisection. ``under`` < 0 and
    ``over`` > 0 are the values at the ends.
    """
    a, b, fa, fb = low, high, under, over
    share = fa / (fa - fb)
    while True:
        x = a + min(max(share, 0.25 * width / abs(b - a)), 1.0 - 0.25 * width / abs(b - a)) * (b - a)
        f = function(x)
        if (f > 0.0) == (fa > 0.0):
            c, fc = a, fa
        else:
            c, fc, b, fb = b, fb, a, fa
        a, fa = x, f
        if f == 0.0 or abs(b - a) <= width:
            return x if f >= 0.0 else max(a, b)
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        share = 0.5
        if phi * phi < xi and (1.0 - phi) ** 2 < 1.0 - xi:
            share = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
