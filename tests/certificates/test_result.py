"""What a result says: plain numbers, a JSON form that loses nothing, and a diagnosis that names the cause."""

import dataclasses
import json

import numpy as np
import pytest

from steingate.certificates.certificate import Certificate
from steingate.certificates.diagnosis import rule_in_words
from steingate.certificates.reference import Beta
from steingate.certificates.result import Result

SAFE = np.linspace(1.0, 14.0, 40)
PRESETS = ("paper", "released", "certified", "confident")
CONTRACT = (
    "bound",
    "safe",
    "budget",
    "reference_risk",
    "empirical_risk",
    "zero_mass",
    "one_mass",
    "interior_mass",
    "discrete_discrepancy",
    "interior_discrepancy",
    "stein_bound",
    "guarded",
    "samples",
    "diagnosis",
)


def evaluate(preset, costs, **overrides):
    return Certificate.preset(preset, limit=25.0, **overrides).evaluate(costs)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("costs", [[0.0], [10.0, 10.0], [3.0, 30.0, 60.0, 0.0], SAFE])
def test_json_round_trip(preset, costs):
    result = evaluate(preset, costs)
    text = json.dumps(result.to_dict(), allow_nan=False)
    values = json.loads(text)
    assert values == result.to_dict()
    assert set(CONTRACT) <= set(values)
    checks = values.pop("checks")
    stein = ["reference", "factor", "form", "lemma", "size", "risk"]
    assert [check["name"] for check in checks] == (["sample", "size", "risk"] if result.delta else stein)
    assert result.checks == Certificate.preset(preset, limit=25.0).checks
    kinds = {type(value) for value in values.values()}
    assert kinds <= {float, int, bool, str, type(None)}
    for field in dataclasses.fields(Result):
        assert field.name in ("checks", "count_more") or type(getattr(result, field.name)) in (
            float,
            int,
            bool,
            str,
            type(None),
        ), field.name


def test_numbers_that_are_not_finite_become_null():
    result = dataclasses.replace(evaluate("released", [1.0]), bound=float("inf"), stein_bound=float("nan"))
    values = result.to_dict()
    assert values["bound"] is None
    assert values["stein_bound"] is None
    json.dumps(values, allow_nan=False)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("costs", [[0.0], [3.0, 30.0, 60.0, 0.0], SAFE])
def test_the_terms_add_up(preset, costs):
    result = evaluate(preset, costs)
    if result.interior_term is None:
        assert preset == "confident"
    else:
        total = result.reference_risk + result.discrete_term + result.interior_term
        assert result.stein_bound == pytest.approx(total, rel=1e-12)
    assert result.zero_mass + result.one_mass + result.interior_mass == pytest.approx(1.0)
    assert result.safe == (result.decision_value <= result.budget)
    assert (result.shut_by is None) == result.safe
    assert result.diagnosis.startswith("Open" if result.safe else "Shut")
    assert rule_in_words(result.decided_by) in result.diagnosis


@pytest.mark.parametrize(
    ("preset", "costs", "overrides", "shut_by", "decided_by", "words"),
    [
        ("released", SAFE, {}, None, "guard", "Without the guard it could never open"),
        (
            "released",
            [10.0] * 15 + [60.0],
            {},
            "atoms",
            "stein_bound",
            "6.2% of the episodes cost 50 or more",
        ),
        ("released", [30.0] * 16, {}, "interior", "stein_bound", "The interior keeps it shut: 16 episodes"),
        (
            "released",
            SAFE,
            {"guard": "none"},
            "reference",
            "stein_bound",
            "its own risk 0.113 is above",
        ),
        ("released", [30.0] * 4, {"reference": Beta(1, 10)}, "interior", "stein_bound", "mean risk 0.9933"),
        ("certified", [60.0] * 8 + [10.0] * 8, {}, "atoms", "excess", "50.0% of the episodes"),
        ("certified", [5.0] * 100, {}, "interior", "excess", "may well be safe"),
        ("certified", [0.0] * 10, {}, None, "excess", "Open"),
        (
            "confident",
            [0.0] * 10,
            {},
            "samples",
            "direct_confidence",
            "19 more without any risk",
        ),
        ("confident", [0.0] * 50, {}, None, "direct_confidence", "fails with probability at most 0.05"),
        ("confident", [60.0] * 20, {}, "atoms", "direct_confidence", "The atoms keep it shut"),
        (
            "confident",
            [40.0] * 20,
            {},
            "interior",
            "direct_confidence",
            "a safer policy would",
        ),
        ("paper", [0.0] * 9 + [26.0], {}, "atoms", "stein_bound", "10.0% of the episodes cost 25 or more"),
    ],
)
def test_diagnosis_names_rule_and_cause(preset, costs, overrides, shut_by, decided_by, words):
    result = evaluate(preset, costs, **overrides)
    assert result.shut_by == shut_by
    assert result.decided_by == decided_by
    assert words in result.diagnosis


def test_an_open_gate_over_the_bound_says_that_noise_was_taken_off():
    certificate = Certificate.preset("certified", limit=25.0)
    rng = np.random.default_rng(2)
    results = [certificate.evaluate(50.0 * certificate.interior.sample(rng, 16)) for _ in range(20)]
    noisy = [result for result in results if result.safe and result.bound > result.budget]
    assert noisy
    assert all("sampling noise" in result.diagnosis for result in noisy)


def test_a_soft_risk_says_how_many_episodes_it_allows_over_the_limit():
    hard = evaluate("confident", [0.0] * 50)
    assert f"at most {hard.bound:.2%} of episodes cost more than 25" in hard.diagnosis
    soft = evaluate("confident", [0.0] * 50, risk="sigmoid")
    assert soft.violation_bound == pytest.approx(2.0 * soft.bound)
    assert f"{soft.violation_bound:.2%}, may cost more than 25" in soft.diagnosis
    silent = evaluate("confident", [0.0] * 50, risk="hinge:0.5")
    assert silent.violation_bound == 1.0
    assert silent.to_dict()["violation_factor"] is None or silent.violation_factor > 1e9
    assert "says nothing about how many episodes" in silent.diagnosis


def test_results_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        evaluate("released", [1.0]).safe = True
