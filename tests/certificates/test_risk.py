"""Risk functions: values, range, monotony, and what the checker refuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steingate.certificates.risk import Exceedance, Sigmoid, check_risk
from steingate.errors import InputError

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
