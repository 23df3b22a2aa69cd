"""One evaluation against its formula, term by term, with the discrepancy summed over all pairs here."""

from math import sqrt

import numpy as np
import pytest
from scipy import stats

from steingate.certificates import evaluation
from steingate.certificates.certificate import Certificate
from steingate.certificates.kernels import Kernel, stein_kernel
from steingate.certificates.mean_bound import mean_upper
from steingate.certificates.reference import Beta
from steingate.certificates.risk import Exceedance, Power

# Ten episodes: two without cost, one at the top of the scale (20), seven between.
COSTS = np.array([0.0, 0.0, 25.0, 1.0, 3.0, 3.5, 6.0, 8.0, 12.0, 15.0])
INSIDE = COSTS[3:] / 20.0
CLEAN = np.array([0.0, 1.0, 2.0, 3.0])


def certificate(**changes):
    given = {
        "limit": 10.0, "budget": 0.4, "scale_multiplier": 2.0, "reference": Beta(2.0, 5.0), "zero_mass": 0.3,
        "one_mass": 0.04, "risk": Power(1.0), "kernel": "rbf", "kernel_length": 0.3, "operator": "langevin",
        "stein_factor": 0.1, "decision": "bound",
    }  # fmt: skip
    return Certificate(**{**given, **changes})


def discrepancy(operator="langevin"):
    """The root of the mean of the Stein kernel over all pairs of interior costs."""
    kernel = Kernel("rbf", 0.3)
    return sqrt(stein_kernel(INSIDE, INSIDE, Beta(2.0, 5.0), kernel, operator).mean())


REFERENCE_RISK = 0.3 * 0.0 + 0.04 * 1.0 + 0.66 * 2.0 / 7.0


def test_masses_risks_and_counts():
    result = certificate().evaluate(COSTS)
    assert (result.samples, result.interior_samples) == (10, 7)
    assert (result.zero_mass, result.one_mass, result.interior_mass) == (0.2, 0.1, 0.7)
    assert result.empirical_risk == pytest.approx((INSIDE.sum() + 1.0) / 10)
    assert result.reference_risk == pytest.approx(REFERENCE_RISK)


@pytest.mark.parametrize(("weighted", "weight"), [(True, 0.7), (False, 1.0)])
@pytest.mark.parametrize("operator", ["langevin", "weighted"])
def test_the_bound_is_the_sum_of_its_terms(weighted, weight, operator):
    result = certificate(interior_weighted=weighted, operator=operator, discrete_weight=2.0).evaluate(COSTS)
    atoms = 2.0 * ((0.3 - 0.2) + (0.1 - 0.04))
    interior = 0.1 * weight * discrepancy(operator)
    assert result.discrete_term == pytest.approx(atoms)
    assert result.interior_term == pytest.approx(interior)
    assert result.bound == result.stein_bound == pytest.approx(REFERENCE_RISK + atoms + interior)
    assert result.decided_by == "stein_bound"


def test_atoms_count_only_beyond_what_the_reference_allows():
    result = certificate(zero_mass=0.1, one_mass=0.2).evaluate(COSTS)
    assert result.discrete_discrepancy == 0.0


def test_the_squared_statistic_is_the_square():
    result = certificate(interior_statistic="ksd_squared").evaluate(COSTS)
    assert result.interior_discrepancy == pytest.approx(discrepancy() ** 2)


def test_the_gate_opens_exactly_at_the_budget():
    bound = certificate().evaluate(COSTS).bound
    assert certificate(budget=bound).evaluate(COSTS).safe
    assert not certificate(budget=np.nextafter(bound, 0.0)).evaluate(COSTS).safe


@pytest.mark.parametrize(
    ("guard", "one_mass", "costs", "guarded"),
    [
        ("none", 0.04, CLEAN, False),
        ("released", 0.04, CLEAN, True),
        ("paper", 0.04, CLEAN, True),
        ("released", 0.2, COSTS, True),  # a tenth at the top, which the reference allows
        ("paper", 0.2, COSTS, False),
        ("released", 0.04, COSTS, False),
    ],
)
def test_the_guard_puts_the_mean_risk_in_place_of_the_bound(guard, one_mass, costs, guarded):
    result = certificate(guard=guard, one_mass=one_mass, guard_slack=0.3).evaluate(costs)
    assert result.guarded is guarded
    assert result.bound == (result.empirical_risk if guarded else result.stein_bound)


def test_the_guard_needs_a_mean_risk_near_the_references():
    mean = CLEAN.mean() / 20.0
    # The reference's own risk is above the mean of clean costs, so a negative slack tells the two apart.
    for slack, guarded in ((0.0, True), (0.5, True)):
        assert certificate(guard="released", guard_slack=slack).evaluate(CLEAN).guarded is guarded
    assert mean < REFERENCE_RISK
    high = np.full(4, 19.0)
    assert not certificate(guard="released").evaluate(high).guarded


def test_the_excess_takes_the_noise_off(monkeypatch):
    asked = []
    monkeypatch.setattr(evaluation, "null_quantile", lambda *given: asked.append(given) or 0.5)
    cut = certificate(decision="excess", operator="weighted", budget=0.39)
    result = cut.evaluate(COSTS)
    expected = REFERENCE_RISK + 0.16 + 0.1 * 0.7 * max(discrepancy("weighted") - 0.5, 0.0)
    assert result.decision_value == pytest.approx(expected)
    assert result.bound == pytest.approx(REFERENCE_RISK + 0.16 + 0.1 * 0.7 * discrepancy("weighted"))
    assert result.null_quantile == 0.5
    assert result.decided_by == "excess"
    interior, kernel, operator, m, alpha, clip = asked[0]
    assert (interior, operator, m, alpha) == (Beta(2.0, 5.0), "weighted", 7, cut.alpha)
    assert kernel == cut.base_kernel
    assert clip == cut.interior_clip
    between = 0.5 * (result.decision_value + result.bound)
    assert result.decision_value < result.bound
    decided = certificate(decision="excess", operator="weighted", budget=between).evaluate(COSTS)
    assert decided.safe  # the excess is within this budget, the bound is not
    assert cut.evaluate(COSTS) == result
    assert len(asked) == 2  # once for each certificate, not once for each evaluation


def test_few_costs_between_the_atoms_have_no_discrepancy():
    assert certificate(min_interior=8).evaluate(COSTS).interior_discrepancy == 0.0
    assert certificate(min_interior=7).evaluate(COSTS).interior_discrepancy > 0.0


@pytest.mark.parametrize(("over", "delta"), [(0, 0.05), (1, 0.05), (3, 0.2)])
def test_confident_is_the_exact_bound_for_a_hard_risk_and_the_means_for_a_soft_one(over, delta):
    costs = np.array([25.0] * over + [1.0] * (20 - over))
    hard = certificate(decision="confident", risk=Exceedance(0.5), delta=delta, stein_factor=None)
    assert hard.evaluate(costs).bound == pytest.approx(stats.beta.ppf(1.0 - delta, over + 1, 20 - over))
    soft = certificate(decision="confident", delta=delta, stein_factor=None)
    risks = np.clip(costs / 20.0, 0.0, 1.0)
    assert soft.evaluate(costs).bound == mean_upper(risks, delta)
    assert mean_upper(risks, delta) > mean_upper(risks, 2.0 * delta)
