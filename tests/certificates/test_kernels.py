"""Kernels: derivatives by finite differences, positive definiteness, and the released length."""

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steingate.certificates.kernels import KERNELS, Kernel, released_length
from steingate.errors import InputError

lengths = st.floats(1e-3, 10.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rbf", np.exp(-0.5 * 2.25)),
        ("matern52", (1 + sqrt(5) * 1.5 + 5 * 2.25 / 3) * np.exp(-sqrt(5) * 1.5)),
        ("imq", 1 / sqrt(3.25)),
    ],
)
def test_values_at_one_and_a_half_lengths(name, value):
    kernel = Kernel(name, 0.2)
    np.testing.assert_allclose(kernel([0.3, -0.3, 0.0]), [value, value, 1.0], rtol=1e-14)


@pytest.mark.parametrize("name", KERNELS)
@settings(deadline=None)
@given(length=lengths, z=st.floats(-6.0, 6.0))
def test_derivatives_are_derivatives(name, length, z):
    kernel = Kernel(name, length)
    d, step = z * length, 1e-4 * length
    k, k1, k2 = kernel.derivatives(np.array([d]))
    assert k[0] == pytest.approx(float(kernel(d)), rel=1e-14)
    assert k1[0] * length == pytest.approx(float(kernel(d + step) - kernel(d - step)) / 2e-4, abs=1e-7)
    slopes = kernel.derivatives(np.array([d - step, d + step]))[1]
    # The third derivative of matern52 jumps at 0, which costs the difference one order of accuracy there.
    assert k2[0] * length**2 == pytest.approx(
        (slopes[1] - slopes[0]) * length / 2e-4, abs=1e-3 if abs(z) < 1e-3 else 1e-6
    )


@pytest.mark.parametrize("name", KERNELS)
@settings(deadline=None)
@given(length=lengths)
def test_curvature_is_minus_the_second_derivative_at_zero(name, length):
    kernel = Kernel(name, length)
    assert kernel.curvature == pytest.approx(-float(kernel.derivatives(np.zeros(1))[2][0]), rel=1e-13)


@pytest.mark.parametrize("name", KERNELS)
@settings(deadline=None)
@given(length=lengths, points=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=25))
def test_gram_matrices_are_positive_semidefinite(name, length, points):
    x = np.array(points)
    assert np.linalg.eigvalsh(Kernel(name, length)(x[:, None] - x)).min() > -1e-12 * x.size


def test_released_length_of_the_published_vectors():
    assert released_length([0.1, 0.2, 0.3, 0.5]) ** 2 == pytest.approx(0.0248534, abs=5e-8)
    assert released_length([0.1, 0.1]) ** 2 == pytest.approx(0.0025, abs=1e-15)
    x = [0.04, 0.08, 0.12, 0.16, 0.20, 0.24, 0.28, 0.40]
    assert released_length(x) ** 2 == pytest.approx(0.00655372, abs=5e-9)


@settings(deadline=None)
@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=30), st.floats(1e-3, 0.2))
def test_released_length_is_the_rule_by_definition(points, floor):
    n = len(points)
    squares = sorted((points[i] - points[j]) ** 2 for i in range(n) for j in range(i))
    median = squares[(len(squares) - 1) // 2]
    expected = sqrt(max(median / max(log(n + 1), 1.0), floor**2))
    assert released_length(points, floor) == pytest.approx(expected, rel=1e-14)


def test_one_sample_gets_the_floor():
    assert released_length([0.3], 0.07) == 0.07


@pytest.mark.parametrize(
    ("name", "length"), [("rbf", 0.0), ("rbf", float("nan")), ("imq", -1.0), ("rbf", 1e-200), ("cauchy", 1.0)]
)
def test_bad_kernels_are_refused(name, length):
    with pytest.raises(InputError, match="kernel"):
        Kernel(name, length)
