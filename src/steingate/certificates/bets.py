"""The data-independent part of the bound on a mean: bets on each candidate mean, and a binomial step."""

from functools import lru_cache
from math import ceil, exp, expm1, inf, log, log1p, log2
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import betaincc

from steingate.certificates.bounds import clopper_pearson_upper

Array = npt.NDArray[np.float64]

STEP_SHARE = 0.5  # of the error probability that a clean sample leaves, spent on the binomial step
_CELL = 0.15  # width, in log-odds, of the cells on which the bets are constant
_TOP = 6.0  # log-odds of the last cell edge
_OWN = 0.7  # share of the stake on the bet that is best for 0/1 data


class Bets(NamedTuple):
    """Cells of candidate means and the bets made in each, for one n and delta."""

    edges: Array  # left ends of the cells, the first is 1 - delta**(1/n)
    share: Array  # (cells, bets): fractions c of the largest allowed bet, the last is 1
    log_weight: Array  # (bets,): logarithm of the stake on each
    log_spare: Array  # (cells,): logarithm of what all bets together may stake at the edge
    miss: Array  # (cells, bets but the last): log of what a 0 multiplies a stake by at the edge
    hit: Array  # the same for a 1


def _kl(a: Array, m: Array) -> Array:
    """Return the relative entropy of Bernoulli(a) to Bernoulli(m), a > 0."""
    return np.asarray(a * np.log(a / m) + (1.0 - a) * (np.log1p(-a) - np.log1p(-m)))


def _rejecting_mean(edges: Array, level: float) -> Array:
    """Return about the largest mean a < m of 0/1 data for which some bet rejects m: kl(a, m) = level.

    Newton's method on a convex, decreasing function; a step too far to the left is cut to a tenth. Any bets
    are valid, so the last digits do not matter.
    """
    clean = np.maximum(-np.log1p(-edges) - level, 0.0)  # kl(0, m) - level
    with np.errstate(divide="ignore"):
        small = clean / (1.0 + np.log(edges / np.minimum(clean, edges)))
    a = np.maximum(edges - np.sqrt(2.0 * edges * level), np.clip(small, 1e-12 * edges, 0.9 * edges))
    for _ in range(8):
        slope = np.log(a / edges) - (np.log1p(-a) - np.log1p(-edges))
        a = np.clip(a - (_kl(a, edges) - level) / slope, 0.1 * a, (1.0 - 1e-12) * edges)
    return a


@lru_cache(maxsize=1024)
def bets(n: int, delta: float) -> Bets:
    """Return the bets for n episodes: mostly the one behind the Chernoff bound, and bolder ones.

    Samples that vary less than 0/1 data of the same mean deserve bolder bets, up to the boldest one, c = 1.
    """
    first = smallest_mean(n, delta)
    start = log(first) - log(delta) / n
    steps = max(1, ceil((_TOP - start) / _CELL))
    odds = np.exp(start + _CELL * np.arange(steps))
    edges = odds / (1.0 + odds)
    edges[0] = first
    own = 1.0 - _rejecting_mean(edges, -log(delta) / n) / edges
    count = 2 + ceil(log2(1.0 / float(own.min()))) if own.min() < 1.0 else 2
    share = own[:, None] ** np.linspace(1.0, 0.0, count)
    cautious = np.minimum(share[:, :-1], 1.0 - 1e-15)
    weight = np.full(count, (1.0 - _OWN) / (count - 1))
    weight[0] = _OWN
    log_spare = np.array([log_stakes(n, delta, m) for m in edges.tolist()])
    miss = np.log1p(cautious * (edges / (1.0 - edges))[:, None])
    return Bets(edges, share, np.log(weight), log_spare, miss, np.log1p(-cautious))


def smallest_mean(n: int, delta: float) -> float:
    """Return 1 - delta**(1/n), the bound of n clean episodes: below it no mean can be rejected."""
    return -expm1(log(delta) / n)


def _clean(n: int, m: float) -> float:
    return exp(n * log1p(-m))


def log_stakes(n: int, delta: float, m: float) -> float:
    """Return the logarithm of the error probability left to the bets: (1 - s) (delta - (1 - m)^n)."""
    spare = (1.0 - STEP_SHARE) * (delta - _clean(n, m))
    return log(spare) if spare > 0.0 else -inf


def _level(n: int, delta: float, m: float) -> float:
    """Return the level of the step: (1 - m)^n + s (delta - (1 - m)^n)."""
    clean = _clean(n, m)
    return clean + STEP_SHARE * (delta - clean)


def _at_most(n: int, m: float, k: int) -> float:
    """Return P(Binomial(n, m) <= k) for k < n."""
    return float(betaincc(k + 1.0, float(n - k), m))


@lru_cache(maxsize=65536)
def step_end(n: int, delta: float, m: float) -> int:
    """Return the largest k with P(Binomial(n, m) <= k) within the level of the step.

    At least 0 for every m from ``smallest_mean`` on.
    """
    level = _level(n, delta, m)
    low, high = 0, n
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _at_most(n, m, middle) <= level else (low, middle)
    return low


@lru_cache(maxsize=65536)
def step_start(n: int, delta: float, k: int) -> float:
    """Return the smallest m at which the step reaches k.

    From ``smallest_mean`` on there is one: P(Binomial(n, m) <= k) - (1 - s) (1 - m)^n, which the level
    compares with s delta, has a derivative that changes its sign once, from plus to minus, and starts above.
    """

    def over(m: float) -> float:
        return _at_most(n, m, k) - _level(n, delta, m)

    first = smallest_mean(n, delta)
    if k <= 0:
        return first
    if k >= n:
        return 1.0
    last = clopper_pearson_upper(k, n, STEP_SHARE * delta)
    if not (last > first and over(last) < 0.0 < over(first)):
        return max(first, last)
    width = 1e-12 * last
    return float(min(brentq(over, first, last, xtol=width, rtol=1e-14) + 2.0 * width, last))


@lru_cache(maxsize=65536)
def edge_part(n: int, delta: float, m: float, k: int) -> float:
    """Return ``step_part`` of a mean that comes up often: the edge of a cell."""
    return step_part(n, delta, m, k)


def step_part(n: int, delta: float, m: float, k: int) -> float:
    """Return the part of count k + 1 that the level still pays for when the step ends at k, in [0, 1].

    Grows with m: in units of p_j, the probability of j = k + 1, it is s delta / p_j, less s p_0 / p_j and all
    p_i / p_j for 0 < i < j. The latter fall with m, and 1 / p_j grows from m = j / n on; before that the part
    is 0.
    """
    if k + 1 >= n or m * n < k + 1:
        return 0.0
    below = _at_most(n, m, k)
    here = _at_most(n, m, k + 1) - below
    spare = _level(n, delta, m) - below
    return min(spare / here, 1.0) if here > 0.0 < spare else 0.0
