"""Options with unusable values are refused by name."""

import numpy as np
import pytest

from steingate.certificates.certificate import Certificate
from steingate.certificates.kernels import Kernel
from steingate.certificates.reference import Beta, HybridReference, LogitNormal
from steingate.certificates.risk import Hinge
from steingate.errors import InputError


class HalfDensity:
    """What looks like a density but has no logit_score."""

    def log_pdf(self, x):
        return 0.0 * x

    pdf = score = sample = log_pdf


@pytest.mark.parametrize("limit", [-1e-300, -1.0, float("nan"), float("inf"), "25", None, True, 1j])
def test_bad_limits_are_named(limit):
    with pytest.raises(InputError, match="limit is"):
        Certificate.preset("released", limit=limit)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"budget": 0.0}, "budget is 0.0"),
        ({"budget": 1.0}, "budget is 1.0"),
        ({"budget": -0.1}, "budget is -0.1"),
        ({"budget": float("nan")}, "budget is nan"),
        ({"delta": 0.0}, "delta is 0.0"),
        ({"delta": 1.0}, "delta is 1.0"),
        ({"alpha": 2.0}, "alpha is 2.0"),
        ({"zero_mass": 0.6, "one_mass": 0.6}, "0.6 and one_mass 0.6"),
        ({"zero_mass": -0.1}, "zero_mass is -0.1"),
        ({"one_mass": 1.1}, "one_mass is 1.1"),
        ({"scale_multiplier": 0.0}, "scale_multiplier is 0.0"),
        ({"stein_factor": -1.0}, "stein_factor is -1.0"),
        ({"discrete_weight": float("inf")}, "discrete_weight is inf"),
        ({"kernel": "gauss"}, "kernel is 'gauss'; choose rbf, matern52 or imq"),
        ({"kernel_length": 0.0}, "kernel_length is 0.0"),
        ({"operator": "stein"}, "operator is 'stein'"),
        ({"guard": "maybe"}, "guard is 'maybe'"),
        ({"decision": "luck"}, "decision is 'luck'"),
        ({"interior_statistic": "mmd"}, "interior_statistic is 'mmd'"),
        ({"reference": "beta"}, "reference is 'beta'"),
        ({"reference": 5.0}, "reference is 5.0"),
        ({"risk_threshold": 1.5}, "1.5"),
        ({"risk_width": 0.0}, "0.0"),
        ({"risk": Hinge(), "risk_width": 0.1}, "not both"),
        ({"risk": lambda x: 1.0 - x}, "nondecreasing"),
        ({"risk": 3}, "risk"),
        ({"decision": "excess"}, "kernel_length"),
        ({"stein_factor": None}, "stein_factor explicitly"),
        ({"budgett": 0.1}, r"\(did you mean budget\?\)"),
        ({"risk_threshold": "a"}, "risk threshold is 'a'"),
        ({"risk_width": None}, "risk width is None"),
        ({"guard": np.ones(3)}, "guard is array"),
        ({"interior_weighted": "no"}, "interior_weighted is 'no'"),
        ({"min_interior": 2.5}, "min_interior is 2.5"),
        ({"reference": Beta}, "reference is <class"),
        ({"reference": HalfDensity()}, "reference is <"),
        ({"reference": HybridReference(Beta(), 0.1), "zero_mass": 0.2}, "not both"),
        ({"kernel": Kernel("rbf", 0.1), "kernel_length": 0.2}, "not both"),
        ({"decision": "confident"}, "no use for guard 'released'"),
        ({"zzz": 0.1}, "has no option 'zzz'"),
    ],
)
def test_bad_options_are_named(overrides, words):
    with pytest.raises(InputError, match=words):
        Certificate.preset("released", limit=25.0, **overrides)


def test_a_kernel_without_valid_factor_is_refused_with_a_way_out():
    for overrides in ({"kernel": "rbf"}, {"kernel": "imq"}, {"reference": LogitNormal(-1, 1)}):
        with pytest.raises(InputError, match=r"choose another kernel.*give stein_factor explicitly"):
            Certificate.preset("certified", limit=25.0, **overrides)
    assert Certificate.preset("certified", limit=25.0, kernel="rbf", stein_factor=0.5).stein_factor == 0.5
