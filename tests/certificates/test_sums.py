"""Fast sums against the direct ones, and the median of pair distances against all pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steingate.certificates import sums
from steingate.certificates.kernels import KERNELS, Kernel
from steingate.certificates.reference import Beta, LogitNormal
from steingate.certificates.stein import ksd_squared
from steingate.certificates.sums import distinct, median_pair_distance


def sample(kind, n, seed=1):
    """Samples of Beta(2, 5), plain or made awkward in one way."""
    rng = np.random.default_rng(seed)
    x = rng.beta(2, 5, n)
    if kind == "clipped":  # a fifth at each end, where the scores are 1e5
        x[: n // 5], x[n // 5 : 2 * n // 5] = 1e-5, 1 - 1e-5
    elif kind == "near the clip":  # the same, but all different
        x[: n // 5] = 1e-5 * (1 + 1e-3 * rng.random(n // 5))
        x[n // 5 : 2 * n // 5] = 1 - 1e-5 * (1 + rng.random(n // 5))
    elif kind == "ties":  # whole costs under a limit of 25
        x = np.round(x * 50) / 50
    elif kind == "grid":  # many equal distances that rounding makes different
        x = np.round(x * n) / n
    elif kind == "cluster":
        x = 0.2 + 1e-4 * rng.random(n)
    return np.clip(x, 1e-5, 1 - 1e-5)


KINDS = ("plain", "clipped", "near the clip", "ties", "grid", "cluster")


def brute_median(x):
    distance = np.sort(np.abs(np.subtract.outer(x, x))[np.triu_indices(len(x), 1)])
    return distance[(distance.size - 1) // 2]


@pytest.mark.parametrize("operator", ["langevin", "weighted"])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("kind", KINDS)
def test_fast_equals_direct_at_five_thousand(kind, name, operator):
    x, interior, kernel = sample(kind, 5000), Beta(2, 5), Kernel(name, 0.05 if name == "rbf" else 0.2)
    direct = ksd_squared(x, interior, kernel, operator, "V", "direct")
    assert ksd_squared(x, interior, kernel, operator, "V", "fast") == pytest.approx(direct, rel=1e-9)


@pytest.mark.parametrize("length", [1e-3, 0.01, 0.3, 50.0])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("kind", ["plain", "clipped", "ties"])
def test_fast_equals_direct_at_every_length(kind, name, length):
    x, interior, kernel = sample(kind, 1500), LogitNormal(-1, 1), Kernel(name, length)
    for operator in ("langevin", "weighted"):
        direct = ksd_squared(x, interior, kernel, operator, "V", "direct")
        assert ksd_squared(x, interior, kernel, operator, "V", "fast") == pytest.approx(direct, rel=1e-9)


@pytest.mark.parametrize("length", [1e-9, 1e-12])
@pytest.mark.parametrize("name", KERNELS)
def test_tiny_lengths_leave_the_diagonal(name, length):
    # Points far apart compared with the length do not see each other.
    x, interior, kernel = sample("plain", 400), Beta(2, 5), Kernel(name, length)
    diagonal = (x * (1 - x)) @ (x * (1 - x)) * kernel.curvature / x.size**2
    value = ksd_squared(x, interior, kernel, "weighted", "V", "fast")
    assert value == pytest.approx(diagonal, rel=1e-6)


def test_u_statistic_of_ties_counts_pairs_of_different_samples():
    x, interior, kernel = sample("ties", 800), Beta(2, 5), Kernel("matern52", 0.2)
    direct = ksd_squared(x, interior, kernel, "weighted", "U", "direct")
    assert ksd_squared(x, interior, kernel, "weighted", "U", "fast") == pytest.approx(direct, rel=1e-8)
    assert direct != pytest.approx(ksd_squared(x, interior, kernel, "weighted", "V"), rel=1e-3)


@pytest.mark.parametrize("name", KERNELS)
def test_chunks_join_without_a_seam(name, monkeypatch):
    x, interior, kernel = sample("plain", 700), Beta(2, 5), Kernel(name, 0.1)
    whole = ksd_squared(x, interior, kernel, "langevin", "V", "fast")
    for chunk in (1, 7, 64, 699, 700):
        monkeypatch.setattr(sums, "CHUNK", chunk)
        assert ksd_squared(x, interior, kernel, "langevin", "V", "fast") == pytest.approx(whole, rel=1e-11)


@pytest.mark.parametrize("operator", ["langevin", "weighted"])
@pytest.mark.parametrize("name", KERNELS)
@settings(deadline=None, max_examples=40)
@given(
    points=st.lists(
        st.one_of(st.floats(1e-5, 1 - 1e-5), st.sampled_from([1e-5, 0.1, 0.5, 1 - 1e-5])),
        min_size=1,
        max_size=70,
    ),
    length=st.floats(1e-3, 5.0),
)
def test_fast_equals_direct_for_any_points(name, operator, points, length):
    interior, kernel = Beta(2, 5), Kernel(name, length)
    x = np.array(points)
    direct = ksd_squared(x, interior, kernel, operator, "V", "direct")
    # Opposite scores may cancel; rounding is relative to the terms, whose size the diagonal bounds.
    scale = np.mean([ksd_squared(x[i : i + 1], interior, kernel, operator) for i in range(x.size)])
    assert ksd_squared(x, interior, kernel, operator, "V", "fast") == pytest.approx(
        direct, rel=1e-9, abs=1e-12 * scale
    )


@pytest.mark.parametrize("n", [221, 1000, 1501])
@pytest.mark.parametrize("kind", KINDS)
def test_median_by_selection_is_exact(kind, n):
    x = sample(kind, n, seed=n)
    assert median_pair_distance(x) == brute_median(x)


@settings(deadline=None, max_examples=150)
@given(
    st.lists(
        st.one_of(st.floats(0.0, 1.0), st.integers(0, 9).map(lambda i: i / 10), st.just(0.25)),
        min_size=2,
        max_size=40,
    )
)
def test_median_of_any_points_is_exact(points):
    x = np.array(points)
    expected = brute_median(x)
    assert median_pair_distance(x) == expected
    small = sums.SMALL
    try:
        sums.SMALL = 0  # forces selection
        assert median_pair_distance(x) == expected
    finally:
        sums.SMALL = small


def test_median_narrows_when_the_pairs_cannot_be_listed():
    # Two tight clusters: the histogram sees two spikes, so only counting can separate the pairs.
    rng = np.random.default_rng(6)
    x = np.concatenate([0.2 + 1e-9 * rng.random(1500), 0.8 + 1e-9 * rng.random(1500)])
    assert median_pair_distance(x) == brute_median(x)


def test_distinct_counts_and_sorts():
    values, counts = distinct(np.array([0.5, 0.1, 0.5, 0.3, 0.1, 0.5]))
    np.testing.assert_array_equal(values, [0.1, 0.3, 0.5])
    np.testing.assert_array_equal(counts, [2, 1, 3])
    values, counts = distinct(np.array([0.2, 0.7]))
    np.testing.assert_array_equal(values, [0.2, 0.7])
    np.testing.assert_array_equal(counts, [1, 1])
