"""Wealth of bets and the bound that follows: closed forms, exact enumeration, numbers of another package."""

import json
from decimal import Decimal, getcontext
from itertools import product
from math import exp, log, log1p, prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from steingate.monitoring.wealth import (
    RHO,
    THETA,
    WEIGHTS,
    BetMixture,
    RestartingWealth,
    add_clusters,
    bets_below,
    cluster_bound,
    upper_bound,
)

VILLE = json.loads((Path(__file__).parents[1] / "data" / "monitor_ville.json").read_text())


def restarting_wealth(x, rate):
    """mean(R) after each episode, from its definition: a bet starts with every block, with weight 1 / (j (j + 1))."""
    means = []
    for n in range(1, len(x) + 1):
        stakes = [(1 / (j * (j + 1)), x[8 * (j - 1) : n]) for j in range(1, -(-n // 8) + 1)]
        bets = [w * prod(1 + theta * (xi - rate) / rate for xi in part) for w, part in stakes for theta in THETA]
        means.append(sum(bets) / len(THETA))
    return means


def test_restarting_wealth_is_that_of_its_definition():
    x = np.random.default_rng(2).random(60) < np.repeat([0.1, 0.5], 30)
    wealth, means = RestartingWealth(0.1, 0.05), restarting_wealth(x.tolist(), 0.1)
    for n, (xi, mean) in enumerate(zip(x.tolist(), means, strict=True), start=1):
        wealth.update(float(xi), n)
        assert sum(wealth.wealth) / len(THETA) == pytest.approx(mean, rel=1e-12)
    assert wealth.reached_at == 1 + next(n for n, mean in enumerate(means) if mean >= 20)
    assert wealth.p_value == pytest.approx(1 / max(means))


@pytest.mark.parametrize("m", [0.02, 0.1, 0.6])
def test_expected_wealth_is_one_at_the_boundary(m):
    """Exact: the sum over all sequences of length 10; the weights of two blocks sum to 2/3."""
    below = above = 0.0
    for outcome in product((0, 1), repeat=10):
        over = sum(outcome)
        chance = m**over * (1 - m) ** (10 - over)
        below += chance * exp(bets_below(m).log_wealth(over, 10 - over))
        wealth = RestartingWealth(m, 1e-9)
        for x in outcome:
            wealth.update(float(x), 1)
        above += chance * sum(wealth.wealth) / len(THETA)
    assert below == pytest.approx(1.0, abs=1e-12)
    assert above == pytest.approx(2 / 3, abs=1e-12)


def test_wealth_and_bound_of_clusters():
    """Against products over the clusters, and a bracketing search for the bound."""
    singles, clusters = [1, 0, 0, 0, 0, 0, 0, 0], {0.1: 30, 0.25: 2, 0.9: 1}
    values = [*singles, *(share for share, number in clusters.items() for _ in range(number))]

    def wealth(m):
        factors = (prod(1 + (1 - rho) * (m - y) / (1 - m) for y in values) for rho in RHO)
        return sum(w * factor for w, factor in zip(WEIGHTS, factors, strict=True))

    for m in (0.05, 0.1, 0.3):
        mixture = add_clusters(bets_below(m), m, clusters)
        assert mixture.log_wealth(1, 7) == pytest.approx(log(wealth(m)), abs=1e-9)
    root = brentq(lambda m: wealth(m) - 20, 1e-6, 0.9)
    assert cluster_bound(1, 7, clusters, 0.05) == pytest.approx(root, rel=1e-6)
    assert cluster_bound(1, 7, clusters, 0.05) >= root * (1 - 1e-12)
    assert cluster_bound(3, 200, {}, 0.05) == upper_bound(3, 200, 0.05)
    assert 0.9 < cluster_bound(0, 0, {0.9: 10**6}, 1e-300) < 0.91


def test_single_bets_agree_with_ville():
    """The wealth of one bet is the likelihood ratio of rho m against m; see record_ville.py."""
    for case in VILLE["cases"]:
        x = np.zeros(max(VILLE["looks"]), int)
        x[case["over"]] = 1
        for m, rho, recorded in case["bets"]:
            bet = BetMixture((0.0,), (log(rho),), (log1p(-rho * m) - log1p(-m),))
            for look, level in zip(VILLE["looks"], recorded, strict=True):
                over = int(x[:look].sum())
                # To second order, a prior of this concentration adds so much to the logarithm.
                spread = (over**2 / (rho * m) + (look - over) ** 2) / VILLE["concentration"]
                assert bet.log_wealth(over, look - over) == pytest.approx(level, abs=1e-5 + spread)


def exact_wealth(violations, safe, m):
    """W(m) in fifty digits."""
    getcontext().prec = 50
    m = Decimal(m)
    return sum(
        Decimal(w) * Decimal(rho) ** violations * ((1 - Decimal(rho) * m) / (1 - m)) ** safe
        for w, rho in zip(WEIGHTS, RHO, strict=True)
    )


@given(
    violations=st.integers(0, 3000),
    safe=st.integers(1, 100_000),
    delta=st.sampled_from([0.5, 0.05, 0.002, 1e-6, 1e-30]),
)
def test_the_bound_is_at_the_root_or_right_of_it(violations, safe, delta):
    bound = upper_bound(violations, safe, delta)
    if bound == 1.0:
        return
    assert exact_wealth(violations, safe, bound) >= 1 / Decimal(delta)
    assert exact_wealth(violations, safe, bound * (1 - 1e-6)) < 1 / Decimal(delta)


def test_edges_and_monotonicity():
    assert upper_bound(0, 0, 0.05) == upper_bound(17, 0, 0.05) == upper_bound(10**7, 1, 0.05) == 1.0
    assert 0.0 < upper_bound(0, 10**9, 0.05) < 1e-7
    assert 0.03 < upper_bound(300_000, 9_700_000, 0.05) < 0.0304
    assert upper_bound(0, 36, 0.05) <= 0.1 < upper_bound(0, 35, 0.05)
    table = np.array([[upper_bound(s, f, 0.05) for f in range(1, 80, 3)] for s in range(0, 20, 2)])
    assert ((np.diff(table, axis=0) > 0) | (table[1:] == 1.0)).all()
    assert ((np.diff(table, axis=1) < 0) | (table[:, :-1] == 1.0)).all()
    assert upper_bound(3, 50, 0.01) > upper_bound(3, 50, 0.05)


def test_bounds_are_close_to_those_of_ville():
    for case in VILLE["cases"]:
        x = np.zeros(max(VILLE["looks"]), int)
        x[case["over"]] = 1
        for index, look in enumerate(VILLE["looks"]):
            over = int(x[:look].sum())
            ours = upper_bound(over, look - over, 0.05)
            theirs = [uppers[index] for uppers in case["uppers"].values()]
            assert ours <= 1.10 * max(theirs)
            if look >= 100 and over:
                assert 0.7 * min(theirs) <= ours
