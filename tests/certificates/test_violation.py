"""The exact bound on the violation probability: SciPy's opinion, coverage, and the numbers of episodes."""

import json

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, binomtest

from steingate.certificates.violation import certify, clopper_pearson_upper, episodes_needed
from steingate.errors import InputError


@pytest.mark.parametrize(("k", "n", "confidence"), [(0, 29, 0.95), (1, 46, 0.95), (7, 30, 0.99), (30, 30, 0.9)])
def test_clopper_pearson_solves_the_binomial_equation(k, n, confidence):
    upper = clopper_pearson_upper(k, n, confidence)
    if k == n:
        assert upper == 1.0
    else:
        assert binom.cdf(k, n, upper) == pytest.approx(1 - confidence, rel=1e-9)
    interval = binomtest(k, n).proportion_ci(2 * confidence - 1, "exact")
    assert upper == pytest.approx(interval.high, abs=1e-9)


def test_a_confidence_close_to_one():
    expected = brentq(lambda p: binom.logcdf(1, 400, p) - np.log(1e-12), 1e-3, 0.9)
    assert clopper_pearson_upper(1, 400, 1 - 1e-12) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("n", [5, 29, 46, 100])
def test_the_error_probability_is_exactly_bounded(n):
    """The error is a sum over the n + 1 counts."""
    bounds = np.array([certify([30.0] * k + [10.0] * (n - k), 25.0).bound for k in range(n + 1)])
    for p in bounds[:-1] + 1e-9:
        assert binom.cdf(np.flatnonzero(bounds < p)[-1], n, p) <= 0.05 + 1e-9
    certified = binom.cdf(np.flatnonzero(bounds <= 0.1)[-1], n, 0.1) if bounds[0] <= 0.1 else 0.0
    assert certified <= 0.05


@pytest.mark.parametrize("limit", [0.0, 0.1, 25.0])
def test_violations_are_counted_on_the_costs_themselves(limit):
    """Dividing by a scale first would round: a cost equal to the limit is no violation, the next float is."""
    costs = [limit] * 57 + [np.nextafter(limit, np.inf)] * 3
    result = certify(costs, limit)
    assert (result.violations, result.episodes, result.violation_rate) == (3, 60, 0.05)
    assert result.bound == clopper_pearson_upper(3, 60)


def test_all_numbers_of_a_result():
    result = certify([30.0] * 4 + [3.0] * 96, limit=25, risk=0.05, confidence=0.99)
    assert result.bound == clopper_pearson_upper(4, 100, 0.99)
    assert not result.certified
    assert (result.mean_cost, result.max_cost, result.limit) == (4.08, 30.0, 25.0)
    values = result.to_dict()
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert values["bound"] == result.bound
    assert values["more_episodes"] == episodes_needed(0.05, 0.99, 4) - 100
    assert certify([1e308] * 4, 1.0).mean_cost == 1e308


@pytest.mark.parametrize(
    ("violations", "within", "more", "advice"),
    [
        (0, 29, 0, "This holds for independent episodes of one policy"),
        (0, 5, 24, "Too few episodes: 29 with no violation would be enough. Run new episodes, and fix"),
        (1, 29, 16, "Too few episodes: 46 with at most 1 violation would"),
        (2, 38, 21, "61 with at most 2 violations would"),
        (90, 10, None, "The violation probability is above 10 %: lower the cost"),
        (1, 4, None, "5 episodes cannot tell: the violation rate is above 10 %, but not significantly."),
    ],
)
def test_the_text_says_what_to_do(violations, within, more, advice):
    result = certify([30.0] * violations + [3.0] * within, 25.0)
    assert result.more_episodes == more
    assert result.advice.startswith(advice) or advice in result.advice
    assert str(result) == f"{result.summary} {result.advice}"
    words = {True: "Certified", False: "Not certified", None: "Undecided"}
    assert result.summary.startswith(f"{words[result.outcome]} for 10 %: ")
    assert (result.outcome is True, result.outcome is False) == (more == 0, violations == 90)
    if more:
        planned = [30.0] * violations + [3.0] * (within + more)
        assert certify(planned, 25.0).certified
        assert not certify(planned[:-1], 25.0).certified


@pytest.mark.parametrize(
    ("risk", "violations", "episodes"), [(0.10, 0, 29), (0.05, 0, 59), (0.10, 1, 46), (0.05, 1, 93)]
)
def test_episodes_needed(risk, violations, episodes):
    assert episodes_needed(risk, 0.95, violations) == episodes
    assert binom.cdf(violations, episodes, risk) <= 0.05 < binom.cdf(violations, episodes - 1, risk)


def test_an_exact_quotient_is_not_rounded_up():
    assert episodes_needed(0.5, 0.75) == 2
    assert episodes_needed(1e-7) == pytest.approx(np.log(20) / 1e-7, rel=1e-3)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: certify([1.0, -1.0], 25.0), "-1.0 at position 1"),
        (lambda: certify([1.0], -1.0), "limit is -1.0"),
        (lambda: certify([1.0], "25"), "limit is '25'"),
        (lambda: certify([1.0], 25.0, risk=0.0), "risk is 0.0"),
        (lambda: certify([1.0], 25.0, confidence=1.0), "confidence is 1.0"),
        (lambda: clopper_pearson_upper(0, 0), "number of episodes is 0"),
        (lambda: episodes_needed(0.0), r"risk is 0\.0"),
        (lambda: episodes_needed(0.1, 0.95, -1), "number of violations is -1"),
        (lambda: clopper_pearson_upper(4, 3), "number of violations is 4"),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(InputError, match=named):
        call()
