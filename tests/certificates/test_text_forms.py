"""Risks, densities and numbers as text: both ways, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steingate.certificates.reference import Beta, LogitNormal
from steingate.certificates.risk import Exceedance, Sigmoid
from steingate.certificates.text_forms import from_text, to_text
from steingate.errors import InputError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("exceedance:0.5", Exceedance(0.5)),
        ("sigmoid:0.5,0.02", Sigmoid()),
        ("Beta(1, 10)", Beta(1.0, 10.0)),
        ("LogitNormal(-1.0833, 0.9307)", LogitNormal(-1.0833, 0.9307)),
        ("matern52", "matern52"),
    ],
)
def test_there_and_back(text, value):
    assert from_text(text) == value
    assert to_text(value) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("exceedance: .50", Exceedance(0.5)),
        ("-0.125", -0.125),
        ("true", True),
        ("none", None),
        (" Beta( 2.5,5e0 ) ", Beta(2.5, 5.0)),
    ],
)
def test_other_ways_of_writing_a_value(text, value):
    assert from_text(text) == value
    assert type(from_text(text)) is type(value)


@given(st.floats(0.0, 0.999), st.floats(1e-3, 10.0))
def test_every_risk_and_density_survives(threshold, width):
    for value in (Sigmoid(threshold, width), Exceedance(threshold), Beta(width, 2.0), LogitNormal(threshold, width)):
        assert from_text(to_text(value)) == value


def test_names_of_modules(monkeypatch, tmp_path):
    (tmp_path / "own_forms.py").write_text(
        "import numpy as np\n"
        "from steingate.certificates.reference import Beta\n"
        "def squared(x):\n    return np.asarray(x) ** 2\n"
        "class Wedge(Beta):\n    pass\n"
        "wedge = Wedge(2, 2)\n"
        "class Holder:\n    @staticmethod\n    def cubed(x):\n        return np.asarray(x) ** 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for text in ("own_forms:squared", "own_forms:wedge", "own_forms:Holder.cubed"):
        assert to_text(text) == text
        assert from_text(text) is from_text(text)
    assert to_text(from_text("own_forms:squared")) == "own_forms:squared"
    assert isinstance(from_text("own_forms:wedge"), Beta)
    with pytest.raises(InputError, match=r"has no 'sqared' \(did you mean squared\?\)"):
        from_text("own_forms:sqared")


def test_stored_data_imports_nothing(monkeypatch, tmp_path):
    (tmp_path / "trap.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="not imported for stored data"):
        from_text("trap:function", imports=False)
    assert from_text("Beta(2, 5)", imports=False) == Beta(2, 5)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("exceedence: 0.5", r"no risk function or density 'exceedence: 0.5' \(did you mean exceedance\?\)"),
        ("exceedance:-1", "risk threshold is -1.0"),
        ("Gamma(1, 2)", "no risk function or density 'Gamma"),
        ("Beta(1, 2, 3)", "cannot be read; write Beta"),
        ("Beta(-1, 2)", "shape a is -1.0"),
        ("__import__('os')", "no risk function or density"),
        ("no_such_module_here:thing", "No module named 'no_such_module_here'"),
        ("sigmoyd:half", r"No module named 'sigmoyd' \(did you mean sigmoid\?\)"),
    ],
)
def test_texts_that_name_nothing_are_refused(text, named):
    with pytest.raises(InputError, match=named):
        from_text(text)


@pytest.mark.parametrize("value", [lambda x: x, object()])
def test_values_without_a_name_are_refused(value):
    with pytest.raises(InputError, match="has no name in a file"):
        to_text(value)
