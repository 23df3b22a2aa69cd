"""Running observation statistics, and action spaces."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steingate.policies.normalizer import CLIP, STD_FLOOR, init_stats, normalize, push, std


def test_recorded_stream():
    stats, outputs = init_stats(1), []
    for number in (1.0, 2.0, 4.0, 4.0):
        stats = push(stats, [[number]])
        outputs.append(float(normalize(stats, [[number]])[0, 0]))
    np.testing.assert_allclose(outputs, [1.0, 0.70711, 1.09109, 0.83333], atol=5e-6)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.integers(0, 2**32 - 1))
def test_batches_of_any_size_give_the_statistics_of_the_whole(sizes, seed):
    rng = np.random.default_rng(seed)
    batches = [rng.normal(3.0, 2.0, (size, 4)) for size in sizes]
    stats = init_stats(4)
    for batch in batches:
        stats = push(stats, batch)
    whole = np.concatenate(batches)
    assert stats.count == len(whole)
    if len(whole) > 1:
        deviation = np.maximum(whole.std(axis=0, ddof=1), STD_FLOOR)
        np.testing.assert_allclose(stats.mean, whole.mean(axis=0), atol=1e-12)
        np.testing.assert_allclose(std(stats), deviation, atol=1e-12)
        expected = np.clip((whole - whole.mean(axis=0)) / deviation, -CLIP, CLIP)
        np.testing.assert_allclose(normalize(stats, whole), expected, atol=1e-10)


def test_constant_features_are_divided_by_the_floor_and_clipped():
    stats = push(init_stats(1), np.full((5, 1), 2.0))
    np.testing.assert_allclose(normalize(stats, [[2.02], [2.5], [-9.0]])[:, 0], [2.0, CLIP, -CLIP])


def test_large_offsets_lose_no_digits():
    rows = 1e6 + np.random.default_rng(0).normal(size=(1000, 1))
    stats = init_stats(1)
    for row in rows:
        stats = push(stats, row[None])
    assert float(std(stats)[0]) == pytest.approx(float(rows.std(ddof=1)), rel=1e-8)
