"""Criteria: what counts as met."""

import math

import numpy as np
from tests.parity.criteria import at_least, at_most, equal


def test_a_share_of_the_values_must_respect_the_limit():
    values = np.concatenate([np.full(97, 1e-12), np.full(3, 1.0)])
    (met,) = at_most("B", values, 1e-9, 0.97)
    (unmet,) = at_most("B", values, 1e-9, 0.98)
    (largest,) = at_most("B", values, 1e-9)
    assert met.holds
    assert met.figure == 1e-12
    assert not unmet.holds
    assert not largest.holds
    assert largest.figure == 1.0


def test_the_limit_itself_is_allowed_and_not_a_number_is_not():
    assert at_most("A", [0.0], 0.0)[0].holds
    assert not at_most("A", [math.nan, 0.0], 1.0)[0].holds
    assert at_most("A", [], 1.0) == []


def test_mismatches_are_counted():
    (same,) = equal("A", [0.0, 1.0], [0, 1])
    (other,) = equal("A", [0.0, 1.0, math.nan], [0, 0, 0])
    assert same.holds
    assert not other.holds
    assert other.figure == 2


def test_a_line_says_verdict_figure_and_limit():
    (good,) = at_most("A reward", [2e-15], 1e-9)
    (bad,) = at_least("A share", 0.5, 0.985)
    assert good.line().split() == ["ok", "A", "reward:", "max", "of", "1", "2.00e-15", "<=", "1e-09"]
    assert bad.line().startswith("FAIL")
    assert bad.line().endswith("5.00e-01 >= 0.985")
