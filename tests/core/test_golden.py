"""The preset ``released`` against 150 recorded cases of the original implementation."""

import json
from pathlib import Path

import pytest

from steingate.core.certificate import Certificate
from steingate.core.reference import Beta

CASES = json.loads((Path(__file__).parents[1] / "data" / "certificate_released.json").read_text())
NAMES = {
    "reference_risk": "reference_risk",
    "zero_mass": "zero_mass",
    "one_mass": "one_mass",
    "ksd": "interior_discrepancy",
    "empirical_risk": "empirical_risk",
    "stein_bound": "stein_bound",
    "bound": "bound",
}


def evaluate(case):
    certificate = Certificate.preset(
        "released", limit=case["limit"], reference=Beta(case["alpha"], case["beta"]), budget=case["budget"]
    )
    return certificate.evaluate(case["costs"])


def test_there_are_150_cases_of_every_kind():
    assert len(CASES) == 150
    assert {len(case["costs"]) for case in CASES} >= {1, 16, 300}
    for flag in ("guarded", "safe"):
        assert 30 < sum(case[flag] for case in CASES) < 120
    assert any(case["safe"] and not case["guarded"] for case in CASES)


@pytest.mark.parametrize("index", range(0, 150, 10))
def test_released_reproduces_the_recorded_cases(index):
    for case in CASES[index : index + 10]:
        result = evaluate(case)
        for recorded, ours in NAMES.items():
            assert getattr(result, ours) == pytest.approx(case[recorded], rel=1e-8, abs=1e-300), recorded
        assert result.guarded is case["guarded"]
        assert result.safe is case["safe"]
        assert result.samples == len(case["costs"])
