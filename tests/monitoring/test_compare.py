"""Comparison of two policies: e-values against an integral, both directions, returns, refused input."""

import json
from math import log, nan

import numpy as np
import pytest
from scipy.integrate import quad

from steingate import ComparisonMonitor, InputError
from steingate.monitoring.compare import log_e_value


@pytest.mark.parametrize(("a", "b"), [(0, 0), (0, 8), (3, 20), (20, 3), (40, 60)])
def test_the_e_value_is_an_integral_of_likelihood_ratios(a, b):
    e, _ = quad(lambda q: 2 * (2 * q) ** a * (2 * (1 - q)) ** b, 0.0, 0.5, epsabs=0.0, epsrel=1e-12)
    assert log_e_value(a, b) == pytest.approx(log(e), abs=1e-9)


def test_the_expected_e_value_is_one_if_both_are_equally_safe():
    """Exact: the sum over all sequences of twelve pairs that count."""
    weights = [1.0]
    for _ in range(12):
        weights = [0.5 * (x + y) for x, y in zip([*weights, 0.0], [0.0, *weights], strict=True)]
    expected = sum(w * np.exp(log_e_value(a, 12 - a)) for a, w in enumerate(weights))
    assert expected == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("swap", [False, True])
def test_the_safer_policy_is_found(swap):
    rng, comparison = np.random.default_rng(0), ComparisonMonitor(25)
    for _ in range(400):
        safe, risky = np.where(rng.random(2) < (0.02, 0.2), 40.0, 3.0)
        comparison.update(*((risky, safe) if swap else (safe, risky)))
    assert (comparison.a_is_safer, comparison.b_is_safer) == (not swap, swap)
    assert comparison.decided
    assert comparison.e_value >= 20
    assert comparison.only_a + comparison.only_b <= comparison.violations_a + comparison.violations_b
    assert json.loads(json.dumps(comparison.to_dict())) == comparison.to_dict()


def test_pairs_with_equal_outcomes_change_nothing():
    comparison = ComparisonMonitor(25)
    for _ in range(1_000):
        comparison.update(25.0, 3.0)
        comparison.update(30.0, 40.0)
    assert (comparison.pairs, comparison.violations_a, comparison.only_a) == (2_000, 1_000, 0)
    assert comparison.e_value == 1.0
    for _ in range(6):
        comparison.update(30.0, 25.0)
    assert not comparison.b_is_safer
    comparison.update(30.0, 25.0)
    assert comparison.b_is_safer  # e = 2^8 / 8 = 32
    assert comparison.e_value == pytest.approx(2**8 / 8 * (1 - 0.5**8))


def test_mean_returns_are_compared_pair_by_pair():
    rng, comparison = np.random.default_rng(1), ComparisonMonitor(25, return_range=20.0)
    layouts = rng.normal(0.0, 10.0, 200)
    for layout in layouts:
        comparison.update(0.0, 0.0, layout + rng.normal(2.0, 2.0), layout + rng.normal(0.0, 2.0))
    assert comparison.a_has_higher_return
    assert not comparison.b_has_higher_return
    assert not comparison.decided
    equal = ComparisonMonitor(25, return_range=3.0)
    for _ in range(2_000):
        equal.update(0.0, 0.0, rng.normal(), rng.normal())
    assert equal.return_e_value < 20
    for _ in range(5):
        equal.update(0.0, 0.0, -1e9, 1e9)  # differences are clipped
    assert equal.return_e_value < 1e3


def test_invalid_numbers_are_one_sentence_and_change_nothing():
    comparison = ComparisonMonitor(25)
    for pair, words in (((nan, 1.0), "nan"), ((1.0, -2.0), "-2.0"), ((1.0, 2.0, 3.0, 4.0), "return_range")):
        with pytest.raises(InputError, match=r"\.$") as refusal:
            comparison.update(*pair)
        assert words in str(refusal.value)
    assert comparison.pairs == 0
    for settings in ({"limit": -1}, {"delta": 2.0}, {"return_range": 0.0}):
        with pytest.raises(InputError):
            ComparisonMonitor(**{"limit": 25, **settings})
    with pytest.raises(InputError, match="two finite"):
        ComparisonMonitor(25, return_range=1.0).update(1.0, 1.0, 1.0, nan)
