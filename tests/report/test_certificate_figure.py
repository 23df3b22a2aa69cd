"""Figures of certificates: what they draw, the formats they write, and what they refuse."""

import sys

import numpy as np
import pytest

from steingate import certify
from steingate.certificates.formatting import upper
from steingate.certificates.reference import Beta, LogitNormal
from steingate.certificates.risk import Exceedance
from steingate.certificates.stein import SteinCertificate
from steingate.errors import InputError, MissingExtraError
from steingate.report.certificate_figure import stein_figure, violation_figure
from steingate.report.plot_style import save_figure

COSTS = np.concatenate([np.zeros(10), np.linspace(2.0, 40.0, 80), np.full(10, 70.0)])


def bars(axes):
    return [patch.get_height() for patch in axes.patches if patch.get_height() > 0]


@pytest.mark.parametrize(
    ("costs", "limit"), [(COSTS, 25.0), (COSTS, 0.0), ([0.0], 0.0), ([25.0] * 40, 25.0), ([1.0, 1e6], 25.0)]
)
def test_violations_are_the_bars_beyond_the_limit(costs, limit):
    result = certify(costs, limit)
    figure = violation_figure(result, costs)
    (panel,) = figure.axes
    within, violations = (patch.get_data() for patch in panel.patches)
    assert within.values.sum() == result.episodes - result.violations
    assert violations.values.sum() == result.violations
    assert within.edges[-1] == violations.edges[0] == pytest.approx(limit)
    assert f"with 95 % confidence at most {upper(result.bound)} do" in figure.texts[1].get_text()


@pytest.mark.parametrize("preset", ["paper", "released", "corrected"])
def test_the_stacked_bars_are_the_terms_of_the_bound(preset):
    certificate = SteinCertificate.from_name(preset, 25.0)
    result = certificate.evaluate(COSTS)
    figure = stein_figure(result, COSTS)
    zero, interior, one, terms = figure.axes
    assert bars(zero)[0] == pytest.approx(result.zero_mass)
    assert bars(one)[0] == pytest.approx(result.one_mass)
    stacked = [result.reference_risk, result.discrete_term, result.interior_term]
    assert bars(terms)[:3] == pytest.approx(stacked)
    assert any(np.allclose(line.get_ydata(), result.budget) for line in terms.lines)
    assert terms.get_ylim()[1] > max(sum(stacked), result.budget)
    # The histogram holds the interior mass.
    values, edges, _ = interior.patches[0].get_data()
    assert (values * np.diff(edges)).sum() == pytest.approx(result.interior_mass)
    assert ("OPEN" if result.is_open else "CLOSED") in [text.get_text() for text in figure.texts]


@pytest.mark.parametrize("costs", [[0.0], [80.0], COSTS])
def test_unusual_certificates_can_be_drawn(costs):
    for options in (
        {"reference": Beta(0.5, 0.5), "risk_function": Exceedance(0.7)},
        {"reference": LogitNormal(-1.0, 0.5), "zero_mass": 0.2, "one_mass": 0.05},
        {"reference": Beta(2.0, 1.0), "risk_function": np.square, "cost_scale": 25.0},
    ):
        result = SteinCertificate.from_name("released", 25.0, **options).evaluate(costs)
        stein_figure(result, costs).draw_without_rendering()


def test_refusals(tmp_path, monkeypatch):
    result = certify(COSTS, 25.0)
    with pytest.raises(InputError, match=r"figure\.jpg.*\.png, \.svg or \.pdf"):
        save_figure(violation_figure(result, COSTS), tmp_path / "figure.jpg")
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"Plotting needs.*\[plot\]"):
        violation_figure(result, COSTS)
