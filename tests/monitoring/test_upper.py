"""Upper confidence sequences: the right root, never passed, exact coverage by enumeration."""

import json
from decimal import Decimal, getcontext
from itertools import product
from math import comb, log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from steingate.monitoring.bets import KEPT, STAKES, below
from steingate.monitoring.upper import count_upper, mean_upper

VILLE = json.loads((Path(__file__).parents[1] / "data" / "monitor_ville.json").read_text())


def wealth(over, under, m):
    """The mixed wealth in fifty digits."""
    getcontext().prec = 50
    m = Decimal(m)
    return sum(
        Decimal(w) * Decimal(rho) ** over * ((1 - Decimal(rho) * m) / (1 - m)) ** under
        for w, rho in zip(STAKES, KEPT, strict=True)
    )


@given(
    over=st.integers(0, 3000),
    under=st.integers(1, 100_000),
    delta=st.sampled_from([0.5, 0.05, 0.002, 1e-6, 1e-30]),
)
def test_newton_never_undershoots(over, under, delta):
    bound = count_upper(over, under, delta)
    if bound == 1.0:
        return
    needed = 1 / Decimal(delta)
    assert wealth(over, under, bound) >= needed  # the bound is at or right of the root
    # and hardly right of it
    assert wealth(over, under, bound * (1 - 1e-6)) < needed


@given(st.integers(0, 60), st.integers(1, 400), st.sampled_from([0.2, 0.05, 1e-3]))
def test_the_root_is_what_a_bracketing_search_finds(over, under, delta):
    bound = count_upper(over, under, delta)
    root = brentq(lambda m: below(m).level(over, under) + log(delta), 1e-12, 1 - 1e-12, xtol=1e-15)
    assert bound == pytest.approx(root, rel=1e-6) or (root > 1 - 1e-4 and bound == 1.0)


def test_edges():
    assert count_upper(0, 0, 0.05) == 1.0
    assert count_upper(17, 0, 0.05) == 1.0
    assert count_upper(10**7, 1, 0.05) == 1.0
    assert 0.0 < count_upper(0, 10**9, 0.05) < 1e-7
    assert mean_upper(np.array([1.0]), np.array([5.0]), 0.05) == 1.0
    assert count_upper(0, 36, 0.05) <= 0.1 < count_upper(0, 35, 0.05)


def test_more_violations_raise_and_more_clean_episodes_lower_the_bound():
    table = np.array([[count_upper(s, f, 0.05) for f in range(1, 80, 3)] for s in range(0, 20, 2)])
    assert ((np.diff(table, axis=0) > 0) | (table[1:] == 1.0)).all()
    assert ((np.diff(table, axis=1) < 0) | (table[:, :-1] == 1.0)).all()
    assert count_upper(3, 50, 0.01) > count_upper(3, 50, 0.05)


@pytest.mark.parametrize("p", [0.02, 0.1, 0.35, 0.7])
@pytest.mark.parametrize("delta", [0.3, 0.1])
def test_exact_error_over_every_sequence_of_small_length(p, delta):
    """P(some bound up to n = 14 is below p), summed over all 2^14 sequences by a walk over counts."""
    n = 14
    alive = {0: 1.0}  # chance of each number of violations while no bound has failed yet
    failed = 0.0
    for t in range(1, n + 1):
        following = {}
        for over, chance in alive.items():
            for hit, q in ((0, 1 - p), (1, p)):
                s = over + hit
                if count_upper(s, t - s, delta) < p:
                    failed += chance * q
                else:
                    following[s] = following.get(s, 0.0) + chance * q
        alive = following
    assert failed <= delta
    assert failed + sum(alive.values()) == pytest.approx(1.0)


def test_exact_error_of_soft_values_by_enumeration():
    values, chances, delta = np.array([0.0, 0.3, 1.0]), (0.5, 0.3, 0.2), 0.3
    mean, failed = float(values @ chances), 0.0
    for outcome in product(range(3), repeat=6):
        chance = float(np.prod([chances[k] for k in outcome]))
        for t in range(1, 7):
            counts = np.bincount(outcome[:t], minlength=3).astype(float)
            if mean_upper(values, counts, delta) < mean:
                failed += chance
                break
    assert failed <= delta


def test_means_of_zeros_and_ones_are_counts():
    for over, under in ((0, 40), (3, 100), (50, 50)):
        soft = mean_upper(np.array([0.0, 1.0]), np.array([under, over], float), 0.05)
        assert soft == pytest.approx(count_upper(over, under, 0.05), rel=1e-6)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.sampled_from([0.2, 0.05]))
def test_soft_bounds_solve_their_equation(x, delta):
    bound = mean_upper(np.array(x), np.ones(len(x)), delta)
    assert bound >= np.mean(x) - 1e-12
    if bound == 1.0:
        return

    def level(m):
        return float(
            np.log(
                sum(
                    w * np.prod(1 + (1 - rho) * (m - np.array(x)) / (1 - m))
                    for w, rho in zip(STAKES, KEPT, strict=True)
                )
            )
        )

    assert level(bound) >= -log(delta) - 1e-12
    assert level(bound) == pytest.approx(-log(delta), abs=1e-6)
    assert bound <= count_upper(sum(x), len(x) - sum(x), delta) + 1e-9


def test_no_bound_at_a_fixed_time_beats_the_exact_one():
    """Clopper-Pearson is the best there is for one look, so paying for all looks must cost something."""
    for over, n in ((0, 50), (2, 100), (30, 400)):

        def tail(p, over=over, n=n):
            return sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(over + 1)) - 0.05

        assert count_upper(over, n - over, 0.05) > brentq(tail, 1e-9, 1 - 1e-9)


def test_bounds_are_close_to_those_of_ville():
    """Other mixtures, other bounds; but for the same data and error none may be far off."""
    for case in VILLE["cases"]:
        x = np.zeros(max(VILLE["looks"]), int)
        x[case["over"]] = 1
        for index, look in enumerate(VILLE["looks"]):
            over = int(x[:look].sum())
            ours = count_upper(over, look - over, 0.05)
            theirs = [uppers[index] for uppers in case["uppers"].values()]
            assert ours <= 1.10 * max(theirs)
            if look >= 100 and over:
                assert 0.7 * min(theirs) <= ours
