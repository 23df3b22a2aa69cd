import numpy as np
import pytest

from steingate.errors import InputError
from steingate.gates.nearness import Nearness


def test_only_numbers_bounded_by_0_and_1_are_repeated():
    nearness = Nearness.of([-np.inf, 0.0, 0.0, 0.0], [np.inf, 1.0, 2.0, 1.0], (2.0, 3.0))
    assert (nearness.where, nearness.added) == ((1, 3), 4)
    obs = np.array([[5.0, 0.5, 1.5, 0.1], [-5.0, 1.0, 0.0, 0.0]])
    expected = [[5.0, 0.5, 1.5, 0.1, 0.25, 0.01, 0.125, 0.001], [-5.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0]]
    np.testing.assert_allclose(nearness(obs), expected)
    np.testing.assert_allclose(nearness(obs[0]), expected[0])


def test_rounding_beyond_the_bounds_is_clipped():
    np.testing.assert_allclose(Nearness((0,), (36.0,))([-1e-9]), [-1e-9, 0.0])


def test_a_power_must_be_positive():
    with pytest.raises(InputError, match="power"):
        Nearness((0,), (0.0,))
