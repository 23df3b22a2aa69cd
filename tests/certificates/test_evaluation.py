"""One evaluation: every term from the costs, the excess rule, and the numbers of the published code."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steingate.certificates.certificate import Certificate
from steingate.certificates.kernels import Kernel, released_length, stein_kernel
from steingate.certificates.presets import half_budget_reference
from steingate.certificates.reference import Beta
from steingate.certificates.risk import Exceedance, Hinge, Power
from steingate.errors import InputError

PRESETS = ("paper", "released", "certified", "confident")


@pytest.fixture(scope="module")
def released():
    return Certificate.preset("released", limit=25.0)


@pytest.fixture(scope="module")
def certified():
    return Certificate.preset("certified", limit=25.0)


def test_options_that_the_paper_leaves_open():
    costs = [5.0, 9.0, 14.0, 21.0, 0.0, 60.0]
    base = {"limit": 25.0, "guard": "none"}
    plain = Certificate.preset("released", **base).evaluate(costs)
    squared = Certificate.preset("released", interior_statistic="ksd_squared", **base).evaluate(costs)
    assert squared.interior_discrepancy == pytest.approx(plain.interior_discrepancy**2)
    assert squared.interior_term == pytest.approx(0.1 * 4 / 6 * plain.interior_discrepancy**2)
    unweighted = Certificate.preset("released", interior_weighted=False, **base).evaluate(costs)
    assert unweighted.interior_term == pytest.approx(plain.interior_term * 6 / 4)
    x = np.array([0.1, 0.18, 0.28, 0.42])
    u = stein_kernel(x, x, Beta(2, 5), Kernel("rbf", released_length(x)), "langevin")
    assert plain.interior_discrepancy == pytest.approx(np.sqrt(u.mean()))


def test_paper_and_code_guard_differ_only_by_the_reference_atom():
    costs = [10.0] * 99 + [60.0]
    shared = {"limit": 25.0, "one_mass": 0.02, "reference": Beta(2, 5)}
    assert Certificate.preset("released", **shared).evaluate(costs).guarded
    assert not Certificate.preset("released", guard="paper", **shared).evaluate(costs).guarded
    assert Certificate.preset("released", guard_slack=-0.1, limit=25.0).evaluate([24.0] * 4).guarded is False


def test_paper_normalizes_by_the_limit():
    paper = Certificate.preset("paper", limit=25.0)
    result = paper.evaluate([0.0, 12.5, 25.0, 100.0])
    assert result.scale == 25.0
    assert (result.zero_mass, result.one_mass, result.interior_mass) == (0.25, 0.5, 0.25)
    assert result.empirical_risk == pytest.approx((0.0 + 0.5 + 1.0 + 1.0) / 4, abs=1e-9)
    assert result.interior_discrepancy == 0.0  # one interior sample counts as none there
    # Without tolerance at the ends, clipping keeps the score finite.
    assert np.isfinite(paper.evaluate([1e-12, 24.999999999, 3.0]).bound)


def null_discrepancies(certificate, n, repeats, seed):
    rng = np.random.default_rng(seed)
    samples = (50.0 * certificate.interior.sample(rng, n) for _ in range(repeats))
    return np.array([certificate.evaluate(costs).interior_discrepancy for costs in samples])


@pytest.mark.parametrize(
    ("n", "quantiles", "repeats"),
    [(16, (1.76, 3.08, 6.00), 4000), (40, (1.3, 2.3, 4.0), 3000), (1000, (0.40, 0.62, 0.98), 150)],
)
def test_noise_of_the_released_discrepancy_under_its_own_reference(released, n, quantiles, repeats):
    found = np.quantile(null_discrepancies(released, n, repeats, seed=n), [0.05, 0.5, 0.95])
    assert found == pytest.approx(quantiles, rel=0.15 if n == 1000 else 0.08)
    # Noise alone times the published factor is several times the budget at the sizes of training.
    if n == 16:
        assert 0.10 * found[1] == pytest.approx(0.31, abs=0.02)


@pytest.mark.parametrize(("n", "median"), [(16, 0.173), (40, 0.114), (200, 0.050), (1000, 0.023)])
def test_noise_of_the_certified_interior_term(n, median):
    made = Certificate.preset("certified", limit=25.0, reference=Beta(2, 5), decision="bound")
    found = np.median(made.factor * null_discrepancies(made, n, 1500 if n < 100 else 400, seed=n))
    assert found == pytest.approx(median, rel=0.07)


def test_vectors_of_the_released_discrepancy(released):
    for x, expected in (
        ([0.1, 0.2, 0.3, 0.5], 1.592516),
        ([0.1, 0.1], 20.75727),
        ([0.04, 0.08, 0.12, 0.16, 0.20, 0.24, 0.28, 0.40], 2.804695),
    ):
        assert released.evaluate(50.0 * np.array(x)).interior_discrepancy == pytest.approx(
            expected, abs=5.1e-7 if expected < 10 else 5.1e-6
        )


@pytest.mark.parametrize(("n", "clear"), [(8, 0), (16, 1), (32, 3), (40, 4)])
def test_clear_exceedances_the_released_gate_allows(released, n, clear):
    assert released.evaluate([2.0] * (n - clear) + [40.0] * clear).safe
    assert not released.evaluate([2.0] * (n - clear - 1) + [40.0] * (clear + 1)).safe


def test_excess_removes_what_noise_explains_and_no_more(certified):
    rng = np.random.default_rng(8)
    opened = [certified.evaluate(50.0 * certified.interior.sample(rng, 40)).safe for _ in range(300)]
    assert np.mean(opened) > 0.9  # samples of the reference pass, but for the tail of the noise
    result = certified.evaluate(50.0 * certified.interior.sample(rng, 40))
    assert result.decided_by in ("excess", "mean_risk")
    expected = max(result.interior_discrepancy - result.null_quantile, 0.0)
    assert result.excess_discrepancy == pytest.approx(expected)
    value = certified.reference_risk + result.discrete_term + certified.factor * expected
    assert result.decision_value == pytest.approx(max(value, result.empirical_risk))
    assert result.bound == result.stein_bound
    far = certified.evaluate(50.0 * rng.beta(6.0, 3.0, 40))
    assert not far.safe


def test_certified_stays_shut_on_two_episodes_one_of_which_violates(certified):
    result = certified.evaluate([30.0, 10.0])
    assert result.empirical_risk == pytest.approx(0.497, abs=5e-4)
    assert not result.safe
    assert result.decision_value == result.empirical_risk
    assert result.decided_by == "mean_risk"
    assert result.shut_by == "interior"
    assert result.bound == result.stein_bound > result.decision_value


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.floats(0.0, 80.0), st.floats(20.0, 30.0)), min_size=1, max_size=12))
def test_certified_never_opens_when_the_mean_risk_is_over_the_budget(certified, costs):
    result = certified.evaluate(costs)
    excess = certified.reference_risk + result.discrete_term
    excess += certified.factor * result.interior_mass * result.excess_discrepancy
    assert result.decision_value == pytest.approx(max(excess, result.empirical_risk), rel=1e-12)
    assert not (result.safe and result.empirical_risk > result.budget)


def test_at_true_risk_one_fifth_certified_opens_no_more_often_than_the_mean(certified):
    """Taking the noise off without a floor opens four times as many samples of 16 as their mean does."""
    rng, law = np.random.default_rng(0), half_budget_reference(0.4, certified.risk, 0.0, 0.0)
    results = [certified.evaluate(50.0 * law.sample(rng, 16)) for _ in range(400)]
    without_floor = [
        certified.reference_risk + certified.factor * result.interior_mass * result.excess_discrepancy
        for result in results
    ]
    assert np.mean(np.array(without_floor) <= certified.budget) > 0.35
    by_mean = np.mean([result.empirical_risk <= result.budget for result in results])
    assert np.mean([result.safe for result in results]) <= by_mean < 0.25


def test_larger_samples_leave_less_to_noise(certified):
    rng = np.random.default_rng(1)
    quantiles = [
        certified.evaluate(50.0 * certified.interior.sample(rng, n)).null_quantile
        for n in (16, 40, 200, 1000)
    ]
    assert quantiles == sorted(quantiles, reverse=True)
    assert certified.evaluate([0.0, 0.0]).null_quantile == 0.0


def test_risk_functions_other_than_the_sigmoid():
    for risk in (Power(2.0), Hinge(0.3), Exceedance(0.5)):
        made = Certificate.preset("released", limit=25.0, risk=risk)
        result = made.evaluate([1.0, 20.0, 45.0])
        assert result.empirical_risk == pytest.approx(np.mean(risk(np.array([0.02, 0.4, 0.9]))))
    smooth = Certificate.preset("certified", limit=25.0, risk=Power(2.0), budget=0.3)
    assert smooth.attainable
    assert smooth.stein_factor > 0


def test_a_million_costs():
    rng = np.random.default_rng(0)
    costs = np.where(rng.random(1_000_000) < 0.1, 0.0, 60.0 * rng.beta(2.0, 6.0, 1_000_000))
    for preset in PRESETS:
        result = Certificate.preset(preset, limit=25.0).evaluate(costs)
        assert result.samples == 1_000_000
        assert np.isfinite(result.bound)


def test_extreme_costs_neither_overflow_nor_vanish():
    for limit in (1e-290, 1e290):
        for preset in PRESETS:
            result = Certificate.preset(preset, limit=limit).evaluate([0.0, 1e-300, 1e300, 1e-5, 7.0])
            assert np.isfinite(result.bound)
            assert result.one_mass >= 0.2
    with pytest.raises(InputError, match="out of range"):
        Certificate.preset("released", limit=1e308)


def test_one_and_two_episodes_work_everywhere():
    for preset in PRESETS:
        made = Certificate.preset(preset, limit=25.0)
        for costs in ([0.0], [10.0], [60.0], [10.0, 10.0], [0.0, 60.0]):
            assert np.isfinite(made.evaluate(costs).bound)


@pytest.mark.parametrize(
    "costs", [[], [float("nan")], [-1.0], [float("inf")], [[1.0]], ["x"], [True], [1j], [None], 3.0]
)
def test_bad_costs_never_get_a_verdict(costs):
    for preset in PRESETS:
        with pytest.raises(InputError):
            Certificate.preset(preset, limit=25.0).evaluate(costs)
