"""Confidence bounds for means of independent [0, 1] variables, and deviation radii of kernel mean embeddings.

Every bound holds at every sample size. ``delta`` is always the probability that the bound is wrong.
"""

from functools import lru_cache
from math import ceil, expm1, isfinite, log, log2, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import betainccinv

from steingate.errors import InputError

Array = npt.NDArray[np.float64]

_CELL = 0.15  # width, in log-odds, of the cells on which the bets are constant
_TOP = 6.0  # log-odds of the last cell edge
_OWN = 0.7  # share of the stake on the bet that is best for 0/1 data
_KNOTS = 512  # points that carry a sample of more than _DIRECT different values
_DIRECT = 512
_LARGEST = 1.0 - 1e-12  # candidates above this are not told from 1


def _check_delta(delta: float) -> None:
    if not 0.0 < delta < 1.0:
        raise InputError(f"delta is {delta!r}; give an error probability between 0 and 1.")


def _check_count(n: int, name: str = "n") -> None:
    if n != int(n) or n < 1:
        raise InputError(f"{name} is {n!r}; give a whole number of samples, at least 1.")


def unit_sample(x: npt.ArrayLike) -> Array:
    """Return the sample as a sorted float array after checking that it is not empty and lies in [0, 1]."""
    values = np.sort(np.asarray(x, dtype=np.float64).ravel())
    if values.size == 0:
        raise InputError("The sample is empty; a bound needs at least one value.")
    if not (values[0] >= 0.0 and values[-1] <= 1.0):
        bad = values[0] if values[0] < 0.0 else values[-1]
        raise InputError(
            f"The sample contains {bad}; bounds for [0, 1] variables need every value in [0, 1]."
        )
    return values


def clopper_pearson_upper(k: int, n: int, delta: float) -> float:
    """Return the exact upper confidence bound of a probability after k hits in n independent trials.

    The largest p with P(Binomial(n, p) <= k) >= delta; 1 - delta**(1/n) when k = 0.
    """
    _check_hits(k, n, delta)
    if k == n:
        return 1.0
    if k == 0:
        return -expm1(log(delta) / n)
    return float(betainccinv(float(k + 1), float(n - k), delta))


def clopper_pearson_lower(k: int, n: int, delta: float) -> float:
    """Return the exact lower confidence bound of a probability after k hits in n independent trials."""
    _check_hits(k, n, delta)
    return 1.0 - clopper_pearson_upper(n - k, n, delta) if k < n else float(delta ** (1.0 / n))


def _check_hits(k: int, n: int, delta: float) -> None:
    _check_delta(delta)
    _check_count(n)
    if k != int(k) or not 0 <= k <= n:
        raise InputError(f"k is {k!r}; give a whole number of hits between 0 and n = {n}.")


def hoeffding_radius(n: int, delta: float) -> float:
    """Return the one-sided Hoeffding radius sqrt(log(1/delta) / (2 n)) of a mean of n [0, 1] variables.

    For a two-sided radius pass delta / 2.
    """
    _check_delta(delta)
    _check_count(n)
    return sqrt(-log(delta) / (2 * n))


def empirical_bernstein_upper(x: npt.ArrayLike, delta: float) -> float:
    """Return mean + sqrt(2 V L / n) + 7 L / (3 (n - 1)), L = log(2/delta), V the unbiased sample variance.

    The bound of Maurer and Pontil (2009, theorem 4) for [0, 1] variables, cut at 1; 1 when n = 1.
    """
    _check_delta(delta)
    values = unit_sample(x)
    n = values.size
    if n == 1:
        return 1.0
    level = log(2.0 / delta)
    radius = sqrt(2.0 * float(values.var(ddof=1)) * level / n) + 7.0 * level / (3.0 * (n - 1))
    return min(1.0, float(values.mean()) + radius)


def embedding_radius(M_u: float, m: int, delta: float) -> float:
    """Return sqrt(M_u / m) (1 + sqrt(2 log(1/delta))), the radius of a mean embedding of m samples.

    For independent samples and a positive definite kernel u with u(x, x) <= M_u, the distance between the
    empirical and the true mean embedding is at most this with probability 1 - delta: its mean is at most
    sqrt(M_u / m), one sample moves it by at most 2 sqrt(M_u) / m, and McDiarmid's inequality does the rest.
    The KSD as square root of the V-statistic is the norm of the empirical embedding, so it is off by no more.
    Infinite when M_u is.
    """
    _check_delta(delta)
    _check_count(m, "m")
    if not M_u >= 0.0:
        raise InputError(f"M_u is {M_u!r}; give a kernel bound that is at least 0.")
    return sqrt(M_u / m) * (1.0 + sqrt(-2.0 * log(delta))) if isfinite(M_u) else float("inf")


class _Bets(NamedTuple):
    """Data-independent part of the betting test: cells of candidate means and the bets made in each."""

    edges: Array  # left ends of the cells, the first is 1 - delta**(1/n)
    share: Array  # (cells, bets): fractions c of the largest allowed bet
    log_weight: Array  # (bets,): logarithm of the stake on each


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
def _bets(n: int, delta: float) -> _Bets:
    first = -expm1(log(delta) / n)
    start = log(first) - log(delta) / n
    steps = max(1, ceil((_TOP - start) / _CELL))
    odds = np.exp(start + _CELL * np.arange(steps))
    edges = odds / (1.0 + odds)
    edges[0] = first
    own = 1.0 - _rejecting_mean(edges, -log(delta) / n) / edges
    count = 2 + ceil(log2(1.0 / float(own.min()))) if own.min() < 1.0 else 2
    # Data that vary less than 0/1 data of the same mean deserve bolder bets, up to the boldest one, c = 1.
    share = own[:, None] ** np.linspace(1.0, 0.0, count)
    weight = np.full(count, (1.0 - _OWN) / (count - 1))
    weight[0] = _OWN
    return _Bets(edges, share, np.log(weight))


def _carriers(values: Array, zeros: int) -> tuple[Array, Array]:
    """Return points and weights that stand for sorted values and more zeros without ever raising a wealth.

    A sample of many different values is spread onto knots so that each value keeps its mean; the logarithm
    of a bet is concave in the value, so by Jensen's inequality the wealth can only fall.
    """
    starts = np.flatnonzero(np.diff(values, prepend=-1.0))
    if starts.size <= _DIRECT:
        counts = np.diff(starts, append=values.size).astype(np.float64)
        if zeros == 0:
            return values[starts], counts
        return np.append(values[starts], 0.0), np.append(counts, float(zeros))
    knots = np.sin(np.linspace(0.0, np.pi / 2, _KNOTS + 1)) ** 2
    knots[0], knots[-1] = 0.0, 1.0
    left = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, _KNOTS - 1)
    right_part = np.clip((values - knots[left]) / (knots[left + 1] - knots[left]), 0.0, 1.0)
    weights = np.zeros(_KNOTS + 1)
    weights[0] = zeros
    weights += np.bincount(left, 1.0 - right_part, _KNOTS + 1)
    weights += np.bincount(left + 1, right_part, _KNOTS + 1)
    used = weights > 0.0
    return knots[used], weights[used]


class _Test:
    """The test T(m) of ``betting_upper`` for a sample of sorted values and more zeros."""

    def __init__(self, values: Array, zeros: int, delta: float) -> None:
        self.n, self.delta = values.size + zeros, delta
        self.bets = _bets(self.n, delta)
        self.points, self.weights = _carriers(values, zeros)
        with np.errstate(divide="ignore"):
            self.log_clear = np.log1p(-values).sum()

    def log(self, m: Array, cell: slice) -> Array:
        """Return log T at candidates m of the given cells, one candidate per cell."""
        m = m[:, None]
        with np.errstate(divide="ignore", over="ignore"):
            gains = self.bets.share[cell, :, None] * ((m[..., None] - self.points) / (1.0 - m[..., None]))
            wealth = np.log1p(np.maximum(gains, -1.0)) @ self.weights + self.bets.log_weight
            clean = np.exp(float(self.n) * np.log1p(-m[:, 0]))
            spare = np.log(np.maximum(self.delta - clean, 0.0))
            return np.asarray(np.logaddexp(self.log_clear, spare + np.logaddexp.reduce(wealth, axis=-1)))


def betting_upper(x: npt.ArrayLike, delta: float) -> float:
    """Return an upper confidence bound for the mean of independent, identically distributed [0, 1] variables.

    Holds with probability at least 1 - delta at every n, does not depend on the order of the sample, never
    falls when a value rises, and is 1 - delta**(1/n) for a sample of zeros.

    For a candidate mean m and bets 0 <= c_l <= 1 with stakes w_l that sum to 1 let

        T(m) = prod_i (1 - x_i) + (delta - (1 - m)^n) sum_l w_l prod_i (1 + c_l (m - x_i) / (1 - m)).

    Every factor is nonnegative. If the true mean mu is at least m, independence gives
    E prod (1 - x_i) = (1 - mu)^n <= (1 - m)^n and E prod (1 + c (m - x_i)/(1 - m)) <= 1, so for every m with
    (1 - m)^n <= delta the mean of T(m) is at most delta and, by Markov's inequality, P(T(m) >= 1) <= delta.
    The bound is the supremum of all m that are not rejected (T(m) < 1, or (1 - m)^n > delta): if it lies
    below mu then mu itself was rejected, which has probability at most delta. Bets and stakes may depend on
    m, n and delta, not on the data. Here they are constant on cells of m; inside a cell T grows with m, so
    looking at the left ends and one search for a root find the supremum. The largest stake is on the bet
    behind the Chernoff bound for 0/1 data (n kl(mean, m) = log(1/delta)), the rest on bolder bets for samples
    of small variance.
    """
    _check_delta(delta)
    values = unit_sample(x)
    if _too_few(values.size, delta):
        return 1.0
    test = _Test(values, 0, float(delta))
    edges = test.bets.edges
    standing = np.flatnonzero(~(test.log(edges, slice(None)) >= 0.0))
    if standing.size == 0:
        return float(edges[0])
    cell = int(standing[-1])
    here = slice(cell, cell + 1)
    low = float(edges[cell])
    high = float(edges[cell + 1]) if cell + 1 < edges.size else _LARGEST

    def excess(m: float) -> float:
        return min(max(float(test.log(np.array([m]), here)[0]), -1e3), 1e3)

    if not excess(high) > 0.0:
        return high if cell + 1 < edges.size else 1.0
    width = 1e-12 * low
    return min(brentq(excess, low, high, xtol=width) + width, high)


def betting_within(x: npt.ArrayLike, zeros: int, delta: float, budget: float) -> bool:
    """Return whether ``betting_upper`` of the values and as many more zeros is at most ``budget``.

    Quicker than the bound itself, and its time does not grow with the number of zeros.
    """
    _check_delta(delta)
    values = unit_sample(x)
    if _too_few(values.size + zeros, delta):
        return budget >= 1.0
    test = _Test(values, zeros, float(delta))
    edges = test.bets.edges
    cell = int(np.searchsorted(edges, budget, side="right")) - 1
    if cell < 0:
        return False
    # T grows inside a cell, so what rejects the budget rejects the rest of its cell; mostly that decides.
    if not test.log(np.array([budget]), slice(cell, cell + 1))[0] >= 0.0:
        return False
    return bool((test.log(edges[cell + 1 :], slice(cell + 1, None)) >= 0.0).all())


def _too_few(n: int, delta: float) -> bool:
    """Return whether even n zeros leave a bound of 1, in double precision."""
    return -expm1(log(delta) / n) > _LARGEST


def direct_upper(x: npt.ArrayLike, delta: float, *, binary: bool = False) -> float:
    """Return the upper confidence bound for a mean of [0, 1] variables that the `confident` preset uses.

    The betting bound; with ``binary=True``, which the caller may set only when the variables can take no
    values but 0 and 1 (a hard exceedance), the Clopper-Pearson bound, the smallest there is.
    """
    if not binary:
        return betting_upper(x, delta)
    values = unit_sample(x)
    if not bool(np.all((values == 0.0) | (values == 1.0))):
        raise InputError("binary=True was given for a sample with values between 0 and 1; leave it out.")
    return clopper_pearson_upper(int(values.sum()), values.size, delta)
