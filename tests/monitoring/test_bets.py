"""The wealth of bets: fair under its hypothesis, equal to plain products and to another package's numbers."""

import json
from itertools import product
from math import exp, log, prod
from pathlib import Path

import numpy as np
import pytest

from steingate.monitoring.bets import BOLDNESS, KEPT, STAKES, Mixture, above, below

VILLE = json.loads((Path(__file__).parents[1] / "data" / "monitor_ville.json").read_text())


def test_stakes_are_a_whole():
    assert sum(STAKES) == pytest.approx(1.0, abs=1e-15)
    assert len(STAKES) == len(KEPT) == 20
    assert sum(map(exp, above(0.1).stakes)) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("budget", [1e-3, 0.1, 0.5, 0.95])
def test_levels_are_logs_of_plain_products(budget):
    rng = np.random.default_rng(1)
    x = rng.random(40) < 0.3
    over, under = int(x.sum()), int((~x).sum())
    shrink = sum(
        w * prod(1 + (1 - rho) * (budget - xi) / (1 - budget) for xi in x)
        for w, rho in zip(STAKES, KEPT, strict=True)
    )
    grow = sum(prod(1 + theta * (xi - budget) / budget for xi in x) for theta in BOLDNESS) / len(BOLDNESS)
    assert below(budget).level(over, under) == pytest.approx(log(shrink), abs=1e-10)
    assert above(budget).level(over, under) == pytest.approx(log(grow), abs=1e-10)


@pytest.mark.parametrize("make", [below, above])
@pytest.mark.parametrize("m", [0.02, 0.1, 0.6])
def test_wealth_is_fair_at_the_boundary(make, m):
    """Exact: over all sequences of length 8, the expected wealth is one."""
    mixture = make(m)
    total = 0.0
    for outcome in product((0, 1), repeat=8):
        over = sum(outcome)
        total += m**over * (1 - m) ** (8 - over) * exp(mixture.level(over, 8 - over))
    assert total == pytest.approx(1.0, abs=1e-12)


def test_array_and_scalar_levels_agree_within_the_slack():
    over = np.array([0, 1, 5, 1000, 10**6, 10**7])
    under = np.array([1, 0, 50, 20_000, 9 * 10**6, 10**7])
    for mixture in (below(0.1), above(0.1), below(1e-6)):
        for a, b, level in zip(over.tolist(), under.tolist(), mixture.levels(over, under), strict=True):
            assert abs(level - mixture.level(a, b)) <= 0.1 * mixture.slack(a, b)


def test_single_bets_agree_with_ville():
    for case in VILLE["cases"]:
        x = np.zeros(max(VILLE["looks"]), int)
        x[case["over"]] = 1
        for m, share, recorded in case["bets"]:
            bet = Mixture((0.0,), (log(share),), (float(np.log1p(-share * m) - np.log1p(-m)),))
            for look, level in zip(VILLE["looks"], recorded, strict=True):
                over = int(x[:look].sum())
                # To second order, a prior of this concentration adds so much to the logarithm.
                spread = (over**2 / (share * m) + (look - over) ** 2) / VILLE["concentration"]
                assert bet.level(over, look - over) == pytest.approx(level, abs=1e-5 + spread)
