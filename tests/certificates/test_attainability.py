"""What a configuration says of itself before any episode is seen."""

import numpy as np
import pytest

from steingate.certificates.certificate import Certificate
from steingate.certificates.reference import LogitNormal
from steingate.certificates.risk import Exceedance, Hinge, Power, Sigmoid


@pytest.fixture(scope="module")
def released():
    return Certificate.preset("released", limit=25.0)


@pytest.fixture(scope="module")
def certified():
    return Certificate.preset("certified", limit=25.0)


@pytest.fixture(scope="module")
def confident():
    return Certificate.preset("confident", limit=25.0)


def test_attainability_is_explained(released, certified, confident):
    text = released.explain()
    assert "0.113048" in text
    assert "never" in text
    assert "guard" in text
    assert [check.name for check in certified.checks if not check.holds] == ["risk"], certified.explain()
    assert all(check.holds for check in confident.checks), confident.explain()
    assert "29 episodes" in confident.explain()
    names = {check.name: check for check in released.checks}
    assert not names["reference"].holds
    assert not names["factor"].holds
    assert names["lemma"].holds
    for number in ("K_p = 0.2153", "M_p = 4", "B_int = 1.3265"):
        assert number in names["lemma"].text
    normal = Certificate.preset("released", limit=25.0, reference=LogitNormal(-1, 1))
    lemma = {check.name: check for check in normal.checks}["lemma"]
    assert not lemma.holds
    assert "M_p is infinite" in lemma.text


def test_tolerances_that_hide_risk_are_doubted():
    zero = Certificate.preset("certified", limit=25.0, zero_tol=0.4, risk_threshold=0.3)
    result = zero.evaluate(np.full(40, 19.5))
    assert result.bound < result.empirical_risk
    assert not result.valid
    assert "hide" in zero.explain()
    clipped = Certificate.preset("certified", limit=25.0, interior_clip=0.45, risk_threshold=0.7, one_tol=0.1)
    result = clipped.evaluate(np.full(40, 44.9))
    assert not result.valid
    # Harmless where the risk has not begun to rise.
    assert Certificate.preset("certified", limit=25.0, zero_tol=0.1).valid


@pytest.mark.parametrize(
    ("risk", "multiplier", "factor"),
    [
        (Sigmoid(), 2.0, 2.0),
        (Exceedance(0.5), 2.0, 1.0),
        (Exceedance(0.4), 2.0, 1.0),
        (Exceedance(0.6), 2.0, np.inf),
        (Power(2.0), 2.0, 4.0),
        (Hinge(0.5), 2.0, np.inf),
        (Hinge(0.25), 2.0, 3.0),
        (Sigmoid(), 1.0, 1.0),
    ],
)
def test_how_many_violations_a_risk_allows(risk, multiplier, factor):
    """P(cost > limit) <= factor * risk, with equality for costs just over the limit."""
    made = Certificate.preset("confident", limit=25.0, risk=risk, scale_multiplier=multiplier, budget=0.3)
    assert made.violation_factor == pytest.approx(factor, rel=1e-9) or made.violation_factor > 1e9
    rng = np.random.default_rng(0)
    for costs in (60.0 * rng.random(300), [25.0, 25.0 + 1e-9, 60.0], [30.0] * 5, [24.9] * 5):
        result = made.evaluate(costs)
        over = np.mean(np.asarray(costs) > 25.0)
        assert over <= factor * result.empirical_risk + 1e-9 or factor == np.inf
        assert over <= result.violation_bound + 1e-12
    check = {check.name: check for check in made.checks}["risk"]
    assert check.holds == (factor == 1.0)


def test_the_soft_risk_of_many_small_violations_opens_and_says_what_it_allows():
    """17 % of 20,000 episodes just over the limit are a soft risk of 0.085."""
    costs = np.r_[np.full(3400, 25.01), np.zeros(16_600)]
    soft = Certificate.preset("confident", limit=25.0, risk=Sigmoid()).evaluate(costs)
    assert soft.safe
    assert soft.violation_bound >= 0.17
    assert "the risk is soft" in soft.diagnosis
    hard = Certificate.preset("confident", limit=25.0).evaluate(costs)
    assert not hard.safe
    assert hard.bound >= 0.17
    near = Certificate.preset("confident", limit=25.0, risk=Sigmoid()).evaluate(np.full(10_000, 23.0))
    assert not near.safe  # not one violation, and shut
    assert Certificate.preset("confident", limit=25.0).evaluate(np.full(10_000, 23.0)).safe
