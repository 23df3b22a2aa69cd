"""The certificate's figure: what it draws, the formats it writes, and what it refuses."""

import sys

import numpy as np
import pytest

from steingate.certificates.certificate import Certificate
from steingate.certificates.reference import Beta, Density, LogitNormal
from steingate.certificates.risk import Exceedance, Power
from steingate.errors import InputError, MissingExtraError
from steingate.report.certificate_figure import certificate_figure, save_certificate_figure

COSTS = np.concatenate([np.zeros(10), np.linspace(2.0, 40.0, 80), np.full(10, 70.0)])


def bars(axes):
    return [(patch.get_y(), patch.get_height()) for patch in axes.patches if patch.get_height() > 0]


@pytest.mark.parametrize("preset", ["paper", "released", "certified", "confident"])
def test_bars_are_the_terms_of_the_bound(preset):
    certificate = Certificate.preset(preset, limit=25.0)
    result = certificate.evaluate(COSTS)
    figure = certificate_figure(certificate, COSTS)
    zero, interior, _, one, terms = figure.axes
    assert bars(zero)[0][1] == pytest.approx(result.zero_mass)
    assert bars(one)[0][1] == pytest.approx(result.one_mass)
    heights = [height for _, height in bars(terms)]
    stacked = [result.reference_risk, result.discrete_term, result.interior_term]
    if preset == "confident":
        stacked = [result.bound]
    assert heights[: len(stacked)] == pytest.approx(stacked)
    assert any(np.allclose(line.get_ydata(), result.budget) for line in terms.lines)
    assert max(top for top in terms.get_ylim()) > max(sum(stacked), result.budget)
    # The histogram holds the interior mass, the curve the reference's.
    values, edges, _ = interior.patches[0].get_data()
    assert (values * np.diff(edges)).sum() == pytest.approx(result.interior_mass)
    texts = [text.get_text() for text in figure.texts]
    assert ("OPEN" if result.safe else "CLOSED") in texts


@pytest.mark.parametrize(
    "overrides",
    [
        {"reference": Beta(0.5, 0.5)},
        {"reference": LogitNormal(-1.0, 0.5), "zero_mass": 0.2, "one_mass": 0.05},
        {"reference": Density(log_pdf=lambda x: np.log(x), name="wedge")},
        {"risk": Exceedance(0.7)},
        {"risk": Power(2.0)},
        {"scale_multiplier": 1.0},
        {"decision": "confident", "guard": "none", "stein_factor": None},
    ],
)
@pytest.mark.parametrize("costs", [[0.0], [5.0] * 16, [80.0], COSTS])
def test_every_configuration_can_be_drawn(tmp_path, overrides, costs):
    certificate = Certificate.preset("released", limit=25.0, **overrides)
    save_certificate_figure(certificate, costs, tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").stat().st_size > 10_000


def test_the_same_figure_gives_the_same_file(tmp_path):
    certificate = Certificate.preset("released", limit=25.0)
    for name in ("a.svg", "b.svg"):
        save_certificate_figure(certificate, COSTS, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_refusals(tmp_path, monkeypatch):
    certificate = Certificate.preset("released", limit=25.0)
    with pytest.raises(InputError, match=r"figure\.jpg.*\.png, \.svg or \.pdf"):
        save_certificate_figure(certificate, COSTS, tmp_path / "figure.jpg")
    with pytest.raises(InputError, match="no costs"):
        certificate_figure(certificate, [])
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"Plotting needs.*\[plot\]"):
        certificate_figure(certificate, COSTS)
