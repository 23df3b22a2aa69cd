"""Risks, densities and numbers as text: both ways, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steingate.certificates.reference import Beta, Density, LogitNormal
from steingate.certificates.risk import Exceedance, Hinge, Power, Sigmoid
from steingate.certificates.text_forms import from_plain, from_text, to_plain, to_text
from steingate.errors import InputError

PAIRS = [
    ("exceedance:0.5", Exceedance(0.5)),
    ("hinge:0.25", Hinge(0.25)),
    ("power:2", Power(2.0)),
    ("sigmoid:0.5,0.02", Sigmoid()),
    ("Beta(1, 10)", Beta(1.0, 10.0)),
    ("LogitNormal(-1.0833, 0.9307)", LogitNormal(-1.0833, 0.9307)),
    ("2", 2),
    ("-0.125", -0.125),
    ("true", True),
    ("false", False),
    ("matern52", "matern52"),
    ("none", "none"),
]


@pytest.mark.parametrize(("text", "value"), PAIRS)
def test_there_and_back(text, value):
    assert from_text(text) == value
    assert type(from_text(text)) is type(value)
    assert to_text(value) == text


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("power:2.0", "power:2"),
        ("2.0", "2"),
        ("2e0", "2"),
        (" Beta( 2.5,5e0 ) ", "Beta(2.5, 5)"),
        ("sigmoid", "sigmoid:0.5,0.02"),
        ("sigmoid:0.4", "sigmoid:0.4,0.02"),
        ("exceedance", "exceedance:0.5"),
    ],
)
def test_two_ways_of_writing_one_value(text, same):
    assert from_text(text) == from_text(same)
    assert to_text(from_text(text)) == same


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_survives(number):
    assert from_text(to_text(number)) == number


@given(st.floats(0.0, 0.999), st.floats(1e-6, 10.0), st.floats(0.01, 50.0))
def test_every_risk_and_density_survives(threshold, width, shape):
    for value in (Sigmoid(threshold, width), Hinge(threshold), Power(shape), Beta(shape, width)):
        assert from_text(to_text(value)) == value


def test_names_of_modules(monkeypatch, tmp_path):
    (tmp_path / "own_forms.py").write_text(
        "import numpy as np\n"
        "from steingate import Density\n"
        "def squared(x):\n    return np.asarray(x) ** 2\n"
        "wedge = Density(log_pdf=lambda x: np.log(x) + np.log1p(-x), name='wedge')\n"
        "class Holder:\n    @staticmethod\n    def cubed(x):\n        return np.asarray(x) ** 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for text in ("own_forms:squared", "own_forms:wedge", "own_forms:Holder.cubed"):
        value = from_text(text)
        assert to_text(value) == text
        assert from_text(to_text(value)) is value
    assert isinstance(from_text("own_forms:wedge"), Density)
    import own_forms

    assert to_text(own_forms.squared) == "own_forms:squared"
    with pytest.raises(InputError, match=r"has no 'sqared' \(did you mean squared\?\)"):
        from_text("own_forms:sqared")


def test_plain_values_are_those_of_json():
    assert [to_plain(value) for value in (None, True, 2, 0.5, "rbf", Beta(1, 2))] == [
        None,
        True,
        2,
        0.5,
        "rbf",
        "Beta(1, 2)",
    ]
    assert type(to_plain(np.float64(0.5))) is float
    assert [from_plain(value) for value in (None, 2, "2", "hinge:0.5")] == [None, 2, 2, Hinge(0.5)]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("exceedence:0.5", r"no risk 'exceedence' \(did you mean exceedance\?\)"),
        ("hinge:a,b", "write numbers"),
        ("hinge:0.1,0.2", "write numbers"),
        ("power:", "write numbers"),
        ("power:-1", "exponent is -1.0"),
        ("Gamma(1, 2)", "no density 'Gamma'"),
        ("beta(1, 2)", r"did you mean Beta\?"),
        ("Beta(1)", "two numbers"),
        ("Beta(1, 2, 3)", "two numbers"),
        ("Beta(1, 2e)", "two numbers"),
        ("Beta(-1, 2)", "shape a is -1.0"),
        ("LogitNormal(0, 0)", "sigma is 0.0"),
        ("__import__('os')", "no density"),
        ("no_such_module_here:thing", "No module named 'no_such_module_here'"),
        ("hinged:half", r"No module named 'hinged' \(did you mean hinge\?\)"),
        ("math:no_such", "has no 'no_such'"),
    ],
)
def test_texts_that_name_nothing_are_refused(text, named):
    with pytest.raises(InputError, match=named):
        from_text(text)


@pytest.mark.parametrize("value", [lambda x: x, Density(score=lambda x: 1 / x - 1 / (1 - x)), object()])
def test_values_without_a_name_are_refused(value):
    with pytest.raises(InputError, match="has no name in a file"):
        to_text(value)
