"""Sums and medians over all pairs of points on a line, without touching all pairs.

The sums are those of a Stein kernel, sum over i, j of b_i b_j k + (a_i b_j - b_i a_j) k' - a_i a_j k'' at the
difference x_i - x_j, for points in ascending order.
"""

from collections.abc import Callable
from math import ceil

import numpy as np
import numpy.typing as npt
from scipy.fft import irfft, next_fast_len, rfft

Array = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Derivatives = Callable[[Array], tuple[Array, Array, Array]]

CHUNK = 2**14  # points per pass, so that the dozen arrays in flight stay in the cache
ORDER = 13  # Chebyshev nodes per bin
BINS_PER_LENGTH = 4.0  # with ORDER nodes, this interpolates rbf, imq and their derivatives to rounding
SMALL = 220  # points up to which looking at all pairs finds the median sooner


def distinct(x: Array) -> tuple[Array, Counts]:
    """Distinct values of ``x`` in ascending order, and how often each occurs."""
    if not (x[1:] >= x[:-1]).all():
        x = np.sort(x)
    starts = np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]]))
    return (x if starts.size == x.size else x[starts]), np.diff(starts, append=x.size)


def matern_sum(r: Array, a: Array, b: Array) -> float:
    """Stein-kernel sum of the Matern-5/2 kernel (1 + |d| + d²/3) exp(-|d|), exact up to rounding, in O(n).

    ``r`` are the ascending points and ``a`` the derivative coefficients in units that give the kernel
    this form.

    At distance s beyond its right end, a group of points has the field exp(-s) (f0 + f1 s + f2 s²); what
    a group feels of such a field from its left is f0 g0 + f1 g1 + f2 g2. So six numbers and its two ends
    describe a group to all others, and neighboring groups merge in pairs, as a tree. Every exponent is
    minus a distance: nothing overflows at any length, and rounding grows with the depth of the tree only.
    """
    groups = []
    for start in range(0, r.size, CHUNK):
        part = slice(start, start + CHUNK)
        groups.append(_merge_all(_single_points(r[part], a[part], b[part])))
    pairs = float(_merge_all(np.concatenate(groups, axis=1))[-1, 0])
    # Not b @ b: the threads that a long BLAS product starts cost more than the product.
    return 2.0 * pairs + float(np.add.reduce(b * b + a * a / 3.0))


def _single_points(r: Array, a: Array, b: Array) -> Array:
    """Table of groups of one point each, a column per group.

    The rows are left end, right end, exp(left - right), f0, f1, f2, g0, g1, g2 and the sum over pairs inside.
    """
    zero = np.zeros_like(r)
    return np.stack([r, r, zero + 1.0, b, b + a / 3.0, (b + a) / 3.0, b - a, a, zero, zero])


def _merge_all(groups: Array) -> Array:
    """One group made of all the neighboring ``groups``."""
    while groups.shape[1] > 1:
        even = groups.shape[1] // 2 * 2
        merged = _merge(groups[:, 0:even:2], groups[:, 1:even:2])
        groups = merged if even == groups.shape[1] else np.concatenate([merged, groups[:, -1:]], axis=1)
    return groups


def _merge(left: Array, right: Array) -> Array:
    """Each left group united with its right neighbor; the columns of both are groups."""
    left_start, left_end, left_decay, e0, e1, e2, h0, h1, h2, left_pairs = left
    right_start, right_end, right_decay, f0, f1, f2, g0, g1, g2, right_pairs = right
    out = np.empty(left.shape)
    gap = right_start - left_end
    decay = np.exp(-gap)
    # The left group's field as seen from the right group's left end ...
    m2 = decay * e2
    m1 = decay * e1 + 2.0 * gap * m2
    m0 = decay * (e0 + gap * e1) + gap * gap * m2
    out[9] = left_pairs + right_pairs + (m0 * g0 + m1 * g1 + m2 * g2)
    # ... and from its right end, where both fields add up.
    span = right_end - right_start
    out[5] = f2 + right_decay * m2
    out[4] = f1 + right_decay * (m1 + 2.0 * span * m2)
    out[3] = f0 + right_decay * (m0 + span * (m1 + span * m2))
    shift = right_start - left_start
    decay *= left_decay
    out[6] = h0 + decay * g0
    out[7] = h1 + decay * (g1 + shift * g0)
    out[8] = h2 + decay * (g2 + shift * (2.0 * g1 + shift * g0))
    out[0], out[1], out[2] = left_start, right_end, decay * right_decay
    return out


def smooth_bins(x: Array, length: float) -> int:
    """Bins that :func:`smooth_sum` needs for the ascending points ``x`` and a kernel of the given length."""
    return max(1, ceil(float(x[-1] - x[0]) / length * BINS_PER_LENGTH))


def smooth_sum(x: Array, a: Array, b: Array, derivatives: Derivatives, length: float) -> float:
    """Stein-kernel sum of a smooth kernel of the given length, in O(n + bins log(bins)).

    The points are spread onto Chebyshev nodes in equal bins of a quarter length, which reproduces k, k'
    and k'' to rounding. Bins are equidistant, so the sum over pairs of bins is a convolution for each
    pair of nodes.
    """
    low, bins = float(x[0]), smooth_bins(x, length)
    width = max(float(x[-1]) - low, 1e-300) / bins
    size = next_fast_len(2 * bins, real=True)
    nodes = np.cos(np.pi * (np.arange(ORDER) + 0.5) / ORDER)
    va, vb = rfft(_spread(x, a, b, low, width, bins, nodes), size)
    lags = np.arange(size)
    lags[lags >= bins] -= size
    far = lags * width
    total = np.zeros(size // 2 + 1)
    for p in range(ORDER):
        k, k1, k2 = derivatives(far + (0.5 * width * (nodes[p] - nodes))[:, None])
        field_b = (rfft(k) * vb).sum(axis=0)
        field_a = (2.0 * rfft(k1) * vb - rfft(k2) * va).sum(axis=0)
        total += (vb[p].conj() * field_b + va[p].conj() * field_a).real
    total[1 : (size + 1) // 2] *= 2.0  # the conjugate frequencies that rfft leaves out
    return float(total.sum()) / size


def _spread(x: Array, a: Array, b: Array, low: float, width: float, bins: int, nodes: Array) -> Array:
    """Weights of the nodes of each bin that replace the weights ``a`` and ``b`` of the points.

    The result has shape (2, nodes, bins).
    """
    moments = np.zeros((2, ORDER, bins))
    for start in range(0, x.size, CHUNK):
        part = slice(start, start + CHUNK)
        position = (x[part] - low) * (1.0 / width)
        bin_of = np.minimum(position.astype(np.int64), bins - 1)
        t = 2.0 * (position - bin_of) - 1.0
        first = np.flatnonzero(np.diff(bin_of, prepend=-1))
        filled = bin_of[first]
        weights = np.stack([a[part], b[part]])
        moments[:, 0, filled] += np.add.reduceat(weights, first, axis=1)
        below, current, twice = np.ones_like(t), t, 2.0 * t
        for p in range(1, ORDER):
            moments[:, p, filled] += np.add.reduceat(weights * current, first, axis=1)
            below, current = current, twice * current - below
    chebyshev = np.cos(np.arange(ORDER) * np.arccos(nodes)[:, None]) * (2.0 / ORDER)
    chebyshev[:, 0] *= 0.5
    return np.asarray(chebyshev @ moments)


def median_pair_distance(x: Array) -> float:
    """Lower median of |x_i - x_j| over the pairs i < j of the points ``x`` (at least two), exactly.

    All pairs are looked at for few points. For many, an interval that holds the median is narrowed by
    counting the pairs within a distance, O(n log n) each, until the pairs inside can be listed.
    """
    n = x.size
    rank = (n * (n - 1) // 2 - 1) // 2
    if n <= SMALL:
        distance = np.abs(x[:, None] - x).ravel()
        full_rank = n + 2 * rank  # the full matrix holds n zeros and each pair twice
        distance.partition(full_rank)
        return float(distance[full_rank])
    points, counts = distinct(x)
    same = int((counts * (counts - 1) // 2).sum())
    if rank < same:
        return 0.0
    return _select_distance(points, counts, rank - same)


def _select_distance(x: Array, counts: Counts, rank: int) -> float:
    """Distance of the given rank (from 0) among pairs of distinct ascending points with these counts."""
    index = np.arange(x.size)
    before = np.concatenate([[0], np.cumsum(counts)])

    def reach(distance: float) -> tuple[Counts, int]:
        """For each point the first one that is further right than ``distance``, and the pairs up to there."""
        ends = np.maximum(np.searchsorted(x, x + distance, side="right"), index + 1)
        return ends, int((counts * (before[ends] - before[1:])).sum())

    rounding = 4.0 * np.spacing(max(abs(x[0]), abs(x[-1])))
    low, high = _coarse_interval(x, counts, rank)
    (first, below), (last, within) = reach(low), reach(high)
    if not below <= rank < within:  # rounding in the coarse interval
        low, high = -rounding, float(x[-1] - x[0]) + rounding
        (first, below), (last, within) = reach(low), reach(high)
    while (listed := int((last - first).sum())) > 2 * x.size + 10_000 and high - low > 8.0 * rounding:
        guess = low + (high - low) * ((rank - below) / (within - below))
        margin = (high - low) * min(0.25, 0.5 * x.size / listed)
        for distance in (guess - margin, guess + margin, 0.5 * (low + high)):
            if low < distance < high:
                ends, pairs = reach(distance)
                if pairs <= rank:
                    low, first, below = distance, ends, pairs
                else:
                    high, last, within = distance, ends, pairs
            if int((last - first).sum()) <= 0.5 * listed:
                break
    while True:
        value = _listed_distance(x, counts, first, last, rank - below)
        # Sums x + distance are rounded, so only a value clear of both ends is surely of this rank.
        if low + rounding <= value <= high - rounding:
            return value
        low, high = low - 2.0 * rounding, high + 2.0 * rounding
        (first, below), (last, within) = reach(low), reach(high)


def _coarse_interval(x: Array, counts: Counts, rank: int) -> tuple[float, float]:
    """Interval that holds the distance of the given rank, from a histogram correlated with itself."""
    bins = min(2**15, x.size)
    width = max(float(x[-1] - x[0]), 1e-300) / bins
    bin_of = np.minimum((x - x[0]) / width, bins - 1).astype(np.int64)
    histogram = np.bincount(bin_of, counts, minlength=bins)
    size = next_fast_len(2 * bins, real=True)
    spectrum = rfft(histogram, size)
    pairs = np.asarray(irfft(spectrum.real**2 + spectrum.imag**2, size))[:bins]
    pairs[0] = (pairs[0] - float((counts.astype(np.float64) ** 2).sum())) / 2.0
    lag = int(np.searchsorted(np.cumsum(pairs), rank))
    return max(lag - 1, 0) * width, (lag + 2) * width


def _listed_distance(x: Array, counts: Counts, first: Counts, last: Counts, rank: int) -> float:
    """Distance of the given rank among the pairs (i, j) with first[i] <= j < last[i]."""
    sizes = last - first
    left = np.repeat(np.arange(x.size), sizes)
    right = np.arange(left.size) + np.repeat(first - (np.cumsum(sizes) - sizes), sizes)
    distance = x[right] - x[left]
    if counts.max() == 1:
        distance.partition(rank)
        return float(distance[rank])
    order = np.argsort(distance)
    total = np.cumsum((counts[left] * counts[right])[order])
    return float(distance[order[np.searchsorted(total, rank, side="right")]])
