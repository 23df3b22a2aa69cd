"""The rule confident: its formula, its coverage for whole certificates, and how many episodes it needs."""

import json

import numpy as np
import pytest
from scipy.stats import beta as scipy_beta
from scipy.stats import binom

from steingate.certificates.bounds import clopper_pearson_upper
from steingate.certificates.certificate import Certificate
from steingate.certificates.confidence import ConfidenceRule
from steingate.certificates.mean_bound import mean_upper
from steingate.certificates.plan import episodes_needed
from steingate.certificates.reference import Beta, LogitNormal
from steingate.certificates.risk import Exceedance, Hinge, Power, Sigmoid

SOFT = Certificate.preset("confident", limit=25.0, risk=Sigmoid())
HARD = Certificate.preset("confident", limit=25.0)

CASES = {
    "atom just above the budget": lambda rng, n: np.where(rng.random(n) < 0.101, 60.0, 0.0),
    "interior just above the budget": lambda rng, n: np.where(rng.random(n) < 0.101, 40.0, 10.0),
    "half risk": lambda rng, n: np.where(rng.random(n) < 0.202, 25.0, 5.0),
    "certain small risk": lambda rng, n: np.full(n, 25.0 + np.log(0.101 / 0.899)),
    "reference": lambda rng, n: 50.0 * rng.beta(2.0, 5.0, n),
    "heavy mixture": lambda rng, n: np.where(rng.random(n) < 0.4, 0.0, 70.0 * rng.beta(1.0, 4.0, n)),
}


def two_point(share, high, low):
    """Return the risk of a share of episodes at one cost and the rest at another."""
    return share * Sigmoid()(min(high / 50.0, 1.0)) + (1.0 - share) * Sigmoid()(low / 50.0)


def scaled_beta(a, b, top):
    """Return the risk of ``top`` times a Beta variable, by quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(4000)
    u = 0.5 * (1.0 + nodes)
    return 0.5 * weights @ (scipy_beta.pdf(u, a, b) * Sigmoid()(np.minimum(top * u / 50.0, 1.0)))


TRUTHS = {
    "atom just above the budget": two_point(0.101, 60.0, 0.0),
    "interior just above the budget": two_point(0.101, 40.0, 10.0),
    "half risk": two_point(0.202, 25.0, 5.0),
    "certain small risk": 0.101,
    "reference": scaled_beta(2.0, 5.0, 50.0),
    "heavy mixture": 0.4 * Sigmoid()(0.0) + 0.6 * scaled_beta(1.0, 4.0, 70.0),
}


@pytest.mark.parametrize("case", CASES)
def test_the_true_risks_are_exact_and_above_the_budget(case):
    draws = CASES[case](np.random.default_rng(99), 400_000)
    risks = Sigmoid()(np.minimum(draws / 50.0, 1.0))
    assert risks.mean() == pytest.approx(TRUTHS[case], abs=5.0 * risks.std() / np.sqrt(risks.size) + 1e-12)
    assert TRUTHS[case] > 0.1


def failures(case, n, repeats, seed):
    """Return how often the bound is below the true risk, and how often the gate opens over budget."""
    rng = np.random.default_rng(seed)
    draws = [Sigmoid()(np.minimum(CASES[case](rng, n) / 50.0, 1.0)) for _ in range(repeats)]
    different, times = np.unique(np.sort(draws, axis=1), axis=0, return_counts=True)
    bounds = np.array([SOFT.confidence.upper(risks) for risks in different])
    return times[bounds < TRUTHS[case]].sum(), times[bounds <= SOFT.budget].sum()


def assert_covered(count, repeats, delta):
    """Fail when the count contradicts an error probability of delta (at one in a million)."""
    smallest = 1.0 - clopper_pearson_upper(repeats - count, repeats, 1e-6) if count else 0.0
    assert smallest <= delta, f"{count} of {repeats}"


def test_the_bound_that_the_simulations_use_is_that_of_the_result():
    for case, draw in CASES.items():
        costs = draw(np.random.default_rng(4), 30)
        risks = Sigmoid()(np.minimum(costs / 50.0, 1.0))
        assert SOFT.evaluate(costs).bound == SOFT.confidence.upper(risks), case


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("n", [12, 40])
def test_the_soft_bound_covers(case, n):
    below, opened = failures(case, n, 300, seed=n)
    assert_covered(below, 300, SOFT.delta)
    assert_covered(opened, 300, SOFT.delta)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("n", [5, 29, 100])
def test_the_soft_bound_covers_in_ten_thousand_draws(case, n):
    below, opened = failures(case, n, 10_000, seed=n)
    assert_covered(below, 10_000, SOFT.delta)
    assert_covered(opened, 10_000, SOFT.delta)


@pytest.mark.parametrize("n", [5, 29, 46, 100])
def test_the_error_of_the_default_is_exactly_bounded(n):
    """Episodes are over the limit or not, so the error is a sum over the n + 1 counts."""
    bounds = np.array([HARD.evaluate([30.0] * k + [10.0] * (n - k)).bound for k in range(n + 1)])
    for p in bounds[:-1] + 1e-9:
        assert binom.cdf(np.flatnonzero(bounds < p)[-1], n, p) <= 0.05 + 1e-9
    opened = binom.cdf(np.flatnonzero(bounds <= 0.1)[-1], n, 0.1) if bounds[0] <= 0.1 else 0.0
    assert opened <= 0.05


# Against the formulas


@pytest.mark.parametrize("delta", [0.05, 0.01])
@pytest.mark.parametrize("over", [0, 1, 7, 60])
def test_the_default_is_the_exact_bound_on_episodes_over_the_limit(over, delta):
    made = Certificate.preset("confident", limit=25.0, delta=delta)
    assert made.risk == Exceedance(0.5)
    costs = [25.0] * (60 - over) + [25.0 + 1e-6] * over
    result = made.evaluate(costs)
    assert result.empirical_risk == over / 60
    assert result.bound == result.decision_value == clopper_pearson_upper(over, 60, delta)
    assert result.violation_bound == result.bound
    assert (result.decided_by, result.delta, result.valid) == ("direct_confidence", delta, True)


@pytest.mark.parametrize("risk", [Sigmoid(), Hinge(0.3), Power(2.0)])
@pytest.mark.parametrize("delta", [0.05, 0.01])
def test_any_other_risk_has_the_whole_of_delta_for_its_mean(risk, delta):
    """All of delta goes into one bound, no more and no less: nothing else is claimed that needs a share."""
    costs = np.linspace(0.0, 40.0, 50)
    made = Certificate.preset("confident", limit=25.0, risk=risk, delta=delta, budget=0.3)
    result = made.evaluate(costs)
    assert result.bound == mean_upper(risk(costs / 50.0), delta)
    assert result.bound != pytest.approx(mean_upper(risk(costs / 50.0), 0.99 * delta), rel=1e-6)


def test_the_bound_is_cut_at_the_risk_of_the_largest_cost():
    rule = ConfidenceRule.build(lambda x: 0.4 * np.asarray(x), 0.1, 0.05)
    assert rule.upper(np.array([0.4])) == 0.4


# How many episodes


@pytest.mark.parametrize(("budget", "episodes"), [(0.10, 29), (0.05, 59), (0.01, 299)])
def test_confident_needs_exactly_the_episodes_that_n_can_support(budget, episodes):
    made = Certificate.preset("confident", limit=25.0, budget=budget)
    assert made.evaluate(np.zeros(episodes)).safe
    short = made.evaluate(np.zeros(episodes - 1))
    assert not short.safe
    assert short.more_episodes == 1
    assert short.shut_by == "samples"
    assert "1 more" in short.diagnosis
    assert made.evaluate(np.zeros(5)).more_episodes == episodes - 5


@pytest.mark.parametrize("made", [SOFT, HARD])
def test_more_episodes_is_the_smallest_number_that_opens_the_gate(made):
    costs = np.concatenate([np.linspace(1, 20, 25), [30.0, 60.0]])
    shut = made.evaluate(costs)
    more = shut.more_episodes
    assert more > 0
    assert made.evaluate(np.concatenate([costs, np.zeros(more)])).safe
    assert not made.evaluate(np.concatenate([costs, np.zeros(more - 1)])).safe


def test_more_episodes_are_counted_only_when_asked_for(monkeypatch):
    asked = []
    monkeypatch.setattr(ConfidenceRule, "more_episodes", lambda self, risks: asked.append(risks.size) or 7)
    result = HARD.evaluate(np.zeros(10))
    assert (result.safe, result.bound, asked) == (False, clopper_pearson_upper(0, 10, 0.05), [])
    assert result.more_episodes == result.more_episodes == 7
    assert asked == [10]


@pytest.mark.parametrize("made", [SOFT, HARD])
def test_a_sample_over_the_budget_is_promised_nothing(made):
    """388 clean episodes more would open the gate here; a policy like this one will not deliver them."""
    result = made.evaluate([60.0] * 25 + [0.0] * 25)
    assert result.more_episodes is None
    assert "more episodes of this policy would not help" in result.diagnosis
    assert not any(word in result.diagnosis for word in ("388", "without any risk"))


def test_the_advice_is_to_plan_or_to_watch():
    text = HARD.evaluate(np.zeros(10)).diagnosis
    assert "19 more without any risk, 29 in all" in text
    assert "fixed before looking" in text
    assert "steingate monitor" in text


def test_more_episodes_of_a_small_budget_are_counted_not_made():
    made = Certificate.preset("confident", limit=25.0, budget=1e-7, reference=Beta(2, 60), risk=Sigmoid())
    assert made.evaluate(np.zeros(5)).more_episodes == pytest.approx(np.log(20) / 1e-7, rel=1e-3)
    exact = Certificate.preset("confident", limit=25.0, budget=1e-4)
    once = np.r_[np.zeros(20_000), 30.0]
    assert exact.evaluate(once).more_episodes == episodes_needed(1e-4, 0.05, 1) - 20_001


@pytest.mark.parametrize(("violations", "episodes"), [(0, 29), (1, 46), (2, 61), (3, 76)])
def test_episodes_that_the_default_needs(violations, episodes):
    costs = [40.0] * violations + [3.0] * (episodes - violations)
    assert HARD.evaluate(costs).safe
    assert not HARD.evaluate(costs[:-1]).safe


@pytest.mark.parametrize(
    "overrides",
    [
        {"risk": Exceedance(0.5)},
        {"risk": Hinge(0.5)},
        {"reference": LogitNormal(-2, 0.5)},
        {"kernel": "rbf"},
        {"kernel": "imq"},
        {"kernel_length": None},
    ],
)
def test_confident_needs_no_factor(overrides):
    """Neither reference nor kernel enter, so where no factor is valid the verdict stands all the same."""
    made = Certificate.preset("confident", limit=25.0, **overrides)
    result = made.evaluate(np.linspace(0.0, 20.0, 60))
    assert result.safe
    assert result.valid
    assert result.stein_factor is result.interior_term is result.stein_bound is None
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False)) == result.to_dict()
    assert [check.name for check in made.checks] == ["sample", "size", "risk"]
