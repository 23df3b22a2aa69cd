"""References, risk functions, and their texts: SciPy, closed forms, both directions, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import beta as beta_function
from scipy.special import expit
from tests.certificates.risks import Hinge, Power

from steingate.certificates.reference import Beta, HybridReference, LogitNormal
from steingate.certificates.risk import Exceedance, Sigmoid, check_risk
from steingate.certificates.text_forms import from_text, to_text
from steingate.errors import InputError

X = np.array([1e-5, 1e-3, 0.05, 0.3, 0.5, 0.77, 0.99, 1.0 - 1e-5])
INTERIORS = [Beta(2, 5), Beta(1, 10), Beta(0.5, 0.7), Beta(2.3, 0.6), LogitNormal(-1, 0.8), LogitNormal(0.5, 2.5)]


def ids(interior):
    return repr(interior)


@pytest.mark.parametrize(("a", "b"), [(2, 5), (1, 10), (0.5, 0.7), (40, 3)])
def test_beta_density_is_scipys(a, b):
    np.testing.assert_allclose(Beta(a, b).pdf(X), stats.beta(a, b).pdf(X), rtol=1e-11)


def test_logit_normal_density_is_the_change_of_variables():
    expected = stats.norm(-1, 0.8).pdf(np.log(X / (1 - X))) / (X * (1 - X))
    np.testing.assert_allclose(LogitNormal(-1, 0.8).pdf(X), expected, rtol=1e-9)


@pytest.mark.parametrize("interior", INTERIORS, ids=ids)
def test_scores_are_derivatives(interior):
    step = 1e-4 * np.minimum(X, 1 - X)
    slope = (np.log(interior.pdf(X + step)) - np.log(interior.pdf(X - step))) / ((X + step) - (X - step))
    np.testing.assert_allclose(interior.score(X), slope, rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(
        interior.logit_score(X), X * (1 - X) * interior.score(X) + 1 - 2 * X, rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("interior", INTERIORS, ids=ids)
def test_density_in_logit_has_mass_one_and_matches_the_density(interior):
    low, high = interior.logit_range
    mass = sum(
        integrate.quad(lambda t: float(np.exp(interior.logit_log_pdf(t))), *part, epsabs=1e-11, limit=500)[0]
        for part in ((low, -3.0), (-3.0, 3.0), (3.0, high))
    )
    assert mass == pytest.approx(1.0, abs=1e-9)
    t = np.linspace(-8, 8, 9)
    x = expit(t)
    np.testing.assert_allclose(interior.logit_log_pdf(t), np.log(interior.pdf(x) * x * (1 - x)), atol=1e-9)


def test_published_reference_risks():
    assert HybridReference(Beta(2, 5)).expectation(Sigmoid()) == pytest.approx(0.113048, abs=5e-7)
    assert HybridReference(Beta(1, 10)).expectation(Sigmoid()) == pytest.approx(0.00123, abs=5e-6)
    assert HybridReference(Beta(2, 6.506)).expectation(Sigmoid()) == pytest.approx(0.05, abs=5e-5)


@pytest.mark.parametrize(("a", "b"), [(2, 5), (1, 10), (0.3, 0.2), (300, 500), (1e6, 2e6)])
def test_means_under_beta_have_closed_forms(a, b):
    reference = HybridReference(Beta(a, b))
    law = stats.beta(a, b)
    assert reference.expectation(Power(1.0)) == pytest.approx(a / (a + b), abs=1e-11)
    assert reference.expectation(Exceedance(0.37)) == pytest.approx(law.sf(0.37), abs=1e-8 if a > 1e3 else 1e-11)
    tail = a / (a + b) * stats.beta(a + 1, b).sf(0.37) - 0.37 * law.sf(0.37)
    assert reference.expectation(Hinge(0.37)) == pytest.approx(tail / 0.63, abs=1e-8 if a > 1e3 else 1e-11)
    if a < 1e3:
        moment = beta_function(a + 2.5, b) / beta_function(a, b)
        assert reference.expectation(Power(2.5)) == pytest.approx(moment, abs=1e-11)


@pytest.mark.parametrize("width", [1e-6, 1e-3, 0.02, 0.5])
def test_sigmoid_mean_agrees_with_adaptive_quadrature(width):
    risk, law = Sigmoid(0.4, width), stats.beta(2, 5)
    points = [0.4 - 30 * width, 0.4 - 3 * width, 0.4, 0.4 + 3 * width, 0.4 + 30 * width]
    points = [p for p in points if 0 < p < 1]
    expected = integrate.quad(lambda x: float(risk(x)) * law.pdf(x), 0, 1, points=points, epsabs=1e-12, limit=2000)[0]
    assert HybridReference(Beta(2, 5)).expectation(risk) == pytest.approx(expected, abs=1e-10)


def test_atoms_enter_with_their_masses():
    reference = HybridReference(Beta(2, 5), zero_mass=0.3, one_mass=0.2)
    assert reference.interior_mass == pytest.approx(0.5)
    inner = HybridReference(Beta(2, 5)).expectation(Sigmoid())
    expected = 0.3 * Sigmoid()(0.0) + 0.2 * Sigmoid()(1.0) + 0.5 * inner
    assert reference.expectation(Sigmoid()) == pytest.approx(float(expected), abs=1e-14)
    assert HybridReference(Beta(2, 5), 0.25, 0.75).expectation(Power(1.0)) == 0.75


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Beta(0, 5), "shape a is 0"),
        (lambda: Beta(2, float("inf")), "shape b is inf"),
        (lambda: Beta("a", 2), "shape a is 'a'"),
        (lambda: Beta(2, np.ones(3)), "shape b is array"),
        (lambda: LogitNormal(None, 1), "mu is None"),
        (lambda: LogitNormal(0, "x"), "sigma is 'x'"),
        (lambda: LogitNormal(float("nan"), 1), "mu is nan"),
        (lambda: LogitNormal(0, -1), "sigma is -1"),
        (lambda: HybridReference(Beta(), 0.7, 0.4), "add up to more than 1"),
        (lambda: HybridReference(Beta(), -0.1), "zero_mass is -0.1"),
        (lambda: HybridReference(Beta(), 0.0, float("nan")), "one_mass is nan"),
    ],
)
def test_bad_references_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


# Risk functions

thresholds = st.floats(0.0, 0.99)
risks = st.one_of(
    st.builds(Sigmoid, thresholds, st.floats(1e-5, 10.0)),
    st.builds(Exceedance, thresholds),
)


def test_values():
    assert Sigmoid()(0.5) == 0.5
    assert Sigmoid(0.5, 0.02)(0.54) == pytest.approx(1 / (1 + np.exp(-2.0)), rel=1e-12)
    np.testing.assert_array_equal(Exceedance(0.5)([0.4, 0.5, 0.6]), [0.0, 0.0, 1.0])


@settings(deadline=None)
@given(risks)
def test_every_risk_passes_the_check_and_splits_inside(risk):
    assert check_risk(risk) is risk
    assert all(0.0 < point < 1.0 for point in getattr(risk, "breaks", ()))


def test_narrow_sigmoid_saturates_without_overflow():
    np.testing.assert_array_equal(Sigmoid(0.5, 1e-300)([0.0, 1.0]), [0.0, 1.0])


@pytest.mark.parametrize(
    ("threshold", "width"), [(0.5, 0.0), (1.5, 0.02), (0.5, float("nan")), (0.5, float("inf")), (-0.1, 0.02)]
)
def test_bad_parameters_are_refused(threshold, width):
    with pytest.raises(InputError, match=r"risk (threshold|width) is"):
        Sigmoid(threshold, width)


@pytest.mark.parametrize(
    ("risk", "message"),
    [
        (lambda x: 1.0 - x, "falls"),
        (lambda x: 2.0 * x, "within"),
        (lambda x: x - 0.1, "within"),
        (lambda x: x * np.nan, "within"),
        (lambda x: np.where(np.abs(x - 0.5) < 0.01, 0.0, x), "falls"),
        (lambda x: 0.5, "one value per cost"),
        ("sigmoid", "function"),
    ],
)
def test_bad_risks_are_refused(risk, message):
    with pytest.raises(InputError, match=message):
        check_risk(risk)


# Texts


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
