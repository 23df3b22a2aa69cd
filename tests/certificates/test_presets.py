"""Presets: their fields, the reference and factor they solve for, and overrides."""

import numpy as np
import pytest

from steingate.certificates.certificate import Certificate
from steingate.certificates.kernels import Kernel, stein_kernel
from steingate.certificates.reference import Beta, Density, HybridReference, LogitNormal
from steingate.certificates.risk import Exceedance, Sigmoid
from steingate.errors import InputError


@pytest.fixture(scope="module")
def released():
    return Certificate.preset("released", limit=25.0)


@pytest.fixture(scope="module")
def certified():
    return Certificate.preset("certified", limit=25.0)


@pytest.fixture(scope="module")
def confident():
    return Certificate.preset("confident", limit=25.0)


def test_preset_fields():
    expected = {
        "paper": ("rbf", None, "langevin", 1.0, 0.0, False, "paper", "bound", 2),
        "released": ("rbf", None, "langevin", 2.0, 1e-4, True, "released", "bound", 2),
        "certified": ("matern52", 0.2, "weighted", 2.0, 1e-4, True, "none", "excess", 1),
        "confident": ("matern52", 0.2, "weighted", 2.0, 1e-4, True, "none", "confident", 1),
    }
    for name, fields in expected.items():
        made = Certificate.preset(name, limit=25.0)
        got = (
            made.kernel,
            made.kernel_length,
            made.operator,
            made.scale_multiplier,
            made.zero_tol,
            made.interior_weighted,
            made.guard,
            made.decision,
            made.min_interior,
        )
        assert got == fields
        assert made.one_tol == made.zero_tol
        assert (made.zero_mass, made.one_mass, made.discrete_weight, made.budget) == (0.0, 0.0, 1.0, 0.10)
        assert (made.min_bandwidth, made.interior_clip) == (0.05, 1e-5)
        assert made.interior_statistic == "ksd"
        assert made.risk == (Exceedance(0.5) if name == "confident" else Sigmoid(0.5, 0.02))
        assert made.preset_name == name
        if name in ("paper", "released"):
            assert made.reference == Beta(2.0, 5.0)
            assert made.stein_factor == 0.10


def test_reference_risk_of_the_published_reference_is_above_the_published_budget(released):
    assert released.reference_risk == pytest.approx(0.113048, abs=5e-7)
    assert not released.attainable
    assert not Certificate.preset("paper", limit=25.0).attainable
    assert Certificate.preset("released", limit=25.0, reference=Beta(1, 10)).reference_risk == pytest.approx(
        0.00123, abs=5e-6
    )


def test_ours_solve_the_reference_for_half_the_budget(certified):
    assert certified.reference.a == 2.0
    assert certified.reference.b == pytest.approx(6.506, abs=5e-4)
    for budget in (0.01, 0.05, 0.1, 0.3, 0.9):
        made = Certificate.preset("certified", limit=25.0, budget=budget)
        assert made.reference_risk == pytest.approx(budget / 2, rel=1e-9)
        assert made.attainable
    with_atoms = Certificate.preset("certified", limit=25.0, zero_mass=0.3, one_mass=0.01)
    assert with_atoms.reference_risk == pytest.approx(0.05, rel=1e-9)
    with pytest.raises(InputError, match="half of the budget"):
        Certificate.preset("certified", limit=25.0, one_mass=0.2)


def test_ours_use_the_smallest_valid_factor_and_the_published_one_has_none(released, certified, confident):
    assert certified.stein_factor == certified.required_factor
    assert confident.stein_factor is None  # none is known for a step, and none is needed
    assert released.required_factor is None
    fixed = Certificate.preset("certified", limit=25.0, reference=Beta(2, 5))
    assert fixed.stein_factor == pytest.approx(0.476, abs=5e-4)
    published = Certificate.preset("certified", limit=25.0, reference=Beta(2, 5), stein_factor=0.10)
    assert published.required_factor == pytest.approx(0.476, abs=5e-4)
    assert not {check.name: check for check in published.checks}["factor"].holds


def test_overrides():
    kernel = Kernel("matern52", 0.1)
    made = Certificate.preset(
        "released",
        limit=10.0,
        reference=LogitNormal(-1.0, 0.8),
        zero_mass=0.2,
        one_mass=0.05,
        scale_multiplier=1.5,
        risk_threshold=0.6,
        risk_width=0.05,
        kernel=kernel,
        operator="weighted",
        stein_factor=0.7,
        discrete_weight=1.2,
        budget=0.3,
        delta=0.01,
        guard=False,
    )
    assert made.risk == Sigmoid(0.6, 0.05)
    assert (made.kernel, made.kernel_length, made.guard) == ("matern52", 0.1, "none")
    hybrid = HybridReference(LogitNormal(-1.0, 0.8), 0.2, 0.05)
    assert made.reference_risk == pytest.approx(hybrid.expectation(Sigmoid(0.6, 0.05)))
    costs = [0.0, 3.0, 7.0, 12.0, 20.0]
    result = made.evaluate(costs)
    x = np.array([0.2, 7 / 15, 0.8])
    u = stein_kernel(x, x, LogitNormal(-1.0, 0.8), kernel, "weighted")
    assert result.interior_discrepancy == pytest.approx(np.sqrt(u.mean()))
    assert result.discrete_discrepancy == pytest.approx(0.2 - 0.05)
    expected = made.reference_risk + 1.2 * 0.15 + 0.7 * 0.6 * np.sqrt(u.mean())
    assert result.bound == pytest.approx(expected)
    assert Certificate.preset("released", limit=1.0, reference=hybrid).zero_mass == 0.2
    assert Certificate.preset("paper", limit=1.0, guard=True).guard == "released"
    assert Certificate.preset("paper", limit=1.0, guard=None).guard == "none"


def test_shortcuts_change_the_risk_of_the_preset():
    def made(preset, **given):
        return Certificate.preset(preset, limit=25.0, **given).risk

    assert made("confident", risk_threshold=0.6) == Exceedance(0.6)
    assert made("confident", risk_threshold=0.6, risk_width=0.1) == Sigmoid(0.6, 0.1)
    assert made("confident", risk_width=0.1) == Sigmoid(0.5, 0.1)
    assert made("released", risk_threshold=0.6) == Sigmoid(0.6, 0.02)
    assert made("confident", risk="sigmoid") == Sigmoid()


def test_any_density_serves_as_reference(released):
    own = Density(log_pdf=lambda x: np.log(x) + 4 * np.log1p(-x), name="mine")
    costs = np.linspace(1.0, 30.0, 20)
    result = Certificate.preset("released", limit=25.0, reference=own).evaluate(costs)
    assert result.stein_bound == pytest.approx(released.evaluate(costs).stein_bound, rel=1e-6)


def test_unknown_presets_are_named():
    with pytest.raises(InputError, match=r"no preset \[\]"):
        Certificate.preset([], 25.0)
    with pytest.raises(
        InputError, match="no preset 'certifed'; choose paper, released, certified or confident"
    ):
        Certificate.preset("certifed", limit=25.0)


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("Beta(1, 10)", Beta(1.0, 10.0)),
        (" Beta( 2.5,5e0 ) ", Beta(2.5, 5.0)),
        ("LogitNormal(-1.0833, 0.9307)", LogitNormal(-1.0833, 0.9307)),
    ],
)
def test_a_reference_may_be_text(text, reference):
    by_text = Certificate.preset("released", limit=25.0, reference=text)
    assert by_text == Certificate.preset("released", limit=25.0, reference=reference)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Beta", "reference is 'Beta'"),
        ("Gamma(1, 2)", "reference is 'Gamma"),
        ("Beta(1, 2, 3)", "write Beta"),
        ("Beta(1, 2e)", "with two numbers"),
        ("Beta(-1, 2)", "shape a is -1.0"),
        ("LogitNormal(0, 0)", "sigma is 0.0"),
        ("__import__('os')", "reference is"),
    ],
)
def test_text_that_names_no_reference_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        Certificate.preset("released", limit=25.0, reference=text)
