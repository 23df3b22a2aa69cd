"""Certificates as values: equal, frozen, kept in files, and what does not change their verdict."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steingate.certificates.certificate import Certificate
from steingate.certificates.reference import Beta, Density
from steingate.certificates.risk import Hinge, Sigmoid
from steingate.errors import InputError

PRESETS = ("paper", "released", "certified", "confident")


@pytest.fixture(scope="module")
def released():
    return Certificate.preset("released", limit=25.0)


def test_certificates_are_frozen_and_comparable(released):
    with pytest.raises(dataclasses.FrozenInstanceError):
        released.budget = 0.5
    assert released == Certificate.preset("released", limit=25.0)
    assert released != Certificate.preset("released", limit=26.0)


def test_numbers_of_any_real_type_give_plain_results():
    made = Certificate.preset(
        "certified", limit=np.float32(25.0), budget=np.float32(0.125), delta=np.float64(0.05)
    )
    plain = Certificate.preset("certified", limit=25, budget=0.125)
    assert made == plain
    result = made.evaluate(np.arange(30, dtype=np.int16))
    assert type(result.limit) is type(result.budget) is type(result.scale) is float
    assert result == plain.evaluate([float(cost) for cost in range(30)])


class OwnRisk:
    """A risk of a user's that cannot be a key of a cache."""

    __hash__ = None

    def __eq__(self, other):
        return isinstance(other, OwnRisk)

    def __call__(self, x):
        return Sigmoid()(x)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_risk_that_cannot_be_hashed_works(preset):
    costs = [1.0, 20.0, 45.0]
    own = Certificate.preset(preset, limit=25.0, risk=OwnRisk()).evaluate(costs)
    same = Certificate.preset(preset, limit=25.0, risk=Sigmoid()).evaluate(costs)
    assert own.bound == pytest.approx(same.bound, rel=1e-6)


costs_lists = st.lists(st.floats(0.0, 100.0), min_size=1, max_size=25)


@settings(max_examples=40, deadline=None)
@given(costs_lists, st.randoms(use_true_random=False), st.sampled_from(PRESETS))
def test_order_does_not_matter(costs, random, preset):
    made = Certificate.preset(preset, limit=25.0)
    shuffled = list(costs)
    random.shuffle(shuffled)
    one, two = made.evaluate(costs), made.evaluate(shuffled)
    assert one.bound == pytest.approx(two.bound, rel=1e-9, abs=1e-12)
    assert one.interior_discrepancy == pytest.approx(two.interior_discrepancy, rel=1e-7, abs=1e-7)
    assert (one.zero_mass, one.one_mass) == (two.zero_mass, two.one_mass)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0.1, 45.0), min_size=2, max_size=20), st.integers(0, 6), st.sampled_from(PRESETS))
def test_adding_violations_at_fixed_interior_never_lowers_the_bound(costs, violations, preset):
    """More of the zero-cost episodes become violations; the interior and the number of episodes stay."""
    made = Certificate.preset(preset, limit=25.0)
    bounds = [
        made.evaluate([*costs, *[0.0] * (6 - count), *[80.0] * count]).bound for count in (violations, 6)
    ]
    assert bounds[1] >= bounds[0] - 1e-12


@settings(max_examples=40, deadline=None)
@given(costs_lists, st.sampled_from([0.001, 0.04, 3.0, 1e6]), st.sampled_from(PRESETS))
def test_costs_and_limit_scale_together(costs, factor, preset):
    one = Certificate.preset(preset, limit=25.0).evaluate(costs)
    two = Certificate.preset(preset, limit=25.0 * factor).evaluate(np.array(costs) * factor)
    # An episode on the edge of an atom may fall on either side of it after rounding.
    edges = np.array([0.0, 0.005, 25.0, 49.995, 50.0])
    if (
        np.abs(np.subtract.outer(costs, edges)).min(initial=1.0, where=np.subtract.outer(costs, edges) != 0)
        < 1e-9
    ):
        return
    assert one.bound == pytest.approx(two.bound, rel=1e-7, abs=1e-9)
    assert one.empirical_risk == pytest.approx(two.empirical_risk, rel=1e-7, abs=1e-9)


# In files


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"budget": 0.05, "delta": 0.01, "zero_mass": 0.1},
        {"risk": "sigmoid:0.4,0.1"},
        {"reference": "Beta(1, 10)", "min_interior": 3},
    ],
)
def test_a_plain_dict_and_back(preset, options):
    made = Certificate.from_dict({"preset": preset, "limit": 25, **options})
    assert made == Certificate.preset(preset, limit=25.0, **options)
    values = made.to_dict()
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    again = Certificate.from_dict(values)
    assert again == made
    assert again.to_dict() == values
    assert {name: values[name] for name in options} == options
    costs = [0.0, 3.0, 22.0, 27.0, 60.0]
    assert again.evaluate(costs) == made.evaluate(costs)


def test_texts_stand_for_numbers_too():
    by_text = Certificate.from_dict(
        {"preset": "confident", "limit": "25", "budget": "5e-2", "zero_mass": "0"}
    )
    assert by_text == Certificate.preset("confident", limit=25.0, budget=0.05)


def test_a_certificate_without_a_preset_goes_through_a_dict():
    made = Certificate(limit=25.0, risk=Hinge(0.2), reference=Beta(2, 7), decision="confident")
    values = made.to_dict()
    assert (values["preset"], values["risk"], values["reference"]) == ("custom", "hinge:0.2", "Beta(2, 7)")
    assert Certificate.from_dict(values) == made


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"preset": "confident"}, "no limit"),
        ({"preset": "confidant", "limit": 25}, "no preset 'confidant'"),
        ({"limit": 25, "budgte": 0.1}, r"'budgte' \(did you mean budget\?\)"),
        ({"preset": "confident", "limit": 25, "risk": "exceedence:0.5"}, "did you mean exceedance"),
        ({"preset": "confident", "limit": "a lot"}, "limit is 'a lot'"),
    ],
)
def test_dicts_that_are_no_certificate_are_refused(values, named):
    with pytest.raises(InputError, match=named):
        Certificate.from_dict(values)


def test_what_has_no_name_is_refused_in_a_dict():
    own = Density(log_pdf=lambda x: np.log(x) + 4 * np.log1p(-x), name="mine")
    with pytest.raises(InputError, match="has no name in a file"):
        Certificate.preset("released", limit=25.0, reference=own).to_dict()
