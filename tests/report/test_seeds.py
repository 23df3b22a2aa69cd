import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, norm, trim_mean
from steingate.report.seeds import (
    improvement,
    interquartile_mean,
    mean,
    probability_of_improvement,
    stratified_bootstrap,
)

from steingate.errors import InputError

RLIABLE = json.loads((Path(__file__).parents[1] / "data" / "rliable.json").read_text())


@pytest.mark.parametrize("size", range(1, 14))
def test_the_interquartile_mean_is_scipys_trimmed_mean(size):
    scores = np.random.default_rng(size).normal(size=(3, size))
    np.testing.assert_allclose(interquartile_mean(scores), trim_mean(scores, 0.25, axis=1))


@pytest.mark.parametrize("name", ["x", "y"])
@pytest.mark.parametrize(("key", "statistic"), [("iqm", interquartile_mean), ("mean", mean)])
def test_intervals_agree_with_rliable(name, key, statistic):
    scores = np.array(RLIABLE[name])
    found = stratified_bootstrap(list(scores.T), statistic, draws=20_000)
    value, low, high = RLIABLE[key][name]
    assert found.value == pytest.approx(value, rel=1e-12)
    # Both sides carry the noise of their resampling, about 0.02 of the interval at 4000 draws.
    assert [found.low, found.high] == pytest.approx([low, high], abs=0.05 * (high - low))


def test_the_probability_of_improvement_agrees_with_rliable():
    x, y = (list(np.array(RLIABLE[name]).T) for name in "xy")
    found = probability_of_improvement(x, y, draws=10_000)
    value, low, high = RLIABLE["improvement"]
    assert found.value == pytest.approx(value, rel=1e-12)
    assert [found.low, found.high] == pytest.approx([low, high], abs=0.06 * (high - low))


def test_improvement_counts_pairs():
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 5, 9).astype(float), rng.integers(0, 5, 6).astype(float)
    pairs = [(a > b) + 0.5 * (a == b) for a, b in product(x, y)]
    assert improvement(x, y) == pytest.approx(np.mean(pairs))
    assert improvement(x, y) == pytest.approx(mannwhitneyu(x, y).statistic / (len(x) * len(y)))
    assert improvement(x, y) + improvement(y, x) == pytest.approx(1.0)


def test_a_bootstrap_of_two_scores_is_known_exactly():
    # Resampled means of (0, 1) are 0, 1/2 and 1 with probabilities 1/4, 1/2 and 1/4.
    found = stratified_bootstrap([[0.0, 1.0]], mean, draws=20_000, confidence=0.4)
    assert (found.value, found.low, found.high) == (0.5, 0.5, 0.5)
    found = stratified_bootstrap([[0.0, 1.0]], mean, draws=20_000, confidence=0.6)
    assert (found.low, found.high) == (0.0, 1.0)


def test_a_large_bootstrap_of_the_mean_is_normal():
    scores = np.random.default_rng(2).normal(size=400)
    found = stratified_bootstrap([scores], mean, draws=8000)
    radius = norm.ppf(0.975) * scores.std() / np.sqrt(len(scores))
    assert found.high - found.value == pytest.approx(radius, rel=0.06)
    assert found.value - found.low == pytest.approx(radius, rel=0.06)


def test_tasks_are_resampled_apart():
    # Within a task all seeds agree, so nothing can vary, however far apart the tasks are.
    found = stratified_bootstrap([[0.0] * 5, [100.0] * 4], mean)
    assert (found.low, found.high) == (found.value, found.value)


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(200):
        found = stratified_bootstrap([rng.normal(size=30)], mean, draws=400)
        covered += found.low <= 0.0 <= found.high
    assert 0.87 <= covered / 200 <= 0.99


def test_one_seed_has_no_interval():
    found = stratified_bootstrap([[3.0], [5.0]])
    assert found.value == 4.0
    assert np.isnan(found.low)
    assert np.isnan(found.high)
    assert np.isnan(probability_of_improvement([[1.0]], [[0.0]]).low)


def test_equal_input_gives_equal_intervals():
    assert stratified_bootstrap([[1.0, 2, 3]]) == stratified_bootstrap([[1.0, 2, 3]])


def test_missing_scores_are_refused():
    with pytest.raises(InputError, match="at least one score"):
        stratified_bootstrap([[1.0], []])
    with pytest.raises(InputError, match="at least one score"):
        improvement([], [1.0])
    with pytest.raises(InputError, match="there are 1 and 2"):
        probability_of_improvement([[1.0]], [[1.0], [2.0]])
