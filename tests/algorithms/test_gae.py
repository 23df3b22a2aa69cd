import numpy as np
import pytest

from steingate.algorithms.common.gae import close_paths, gae, standardize
from steingate.errors import InputError


def test_recorded_vector():
    column = np.array([[1.0], [0.0], [2.0]])
    values = np.array([[0.5], [0.4], [0.3]])
    none = np.zeros((3, 1), bool)
    ends, bootstrap = close_paths(none, none, np.zeros((3, 1)), np.array([0.2]))
    advantage, target = gae(column, values, ends, bootstrap)
    np.testing.assert_allclose(advantage[:, 0], [2.477986, 1.682069, 1.898], atol=1e-6)
    np.testing.assert_allclose(target[:, 0], [2.977986, 2.082069, 2.198], atol=1e-6)
    np.testing.assert_allclose(standardize(advantage)[0][:, 0], [1.364694, -1.003605, -0.361089], atol=1e-6)


def test_a_path_without_an_end_is_refused():
    with pytest.raises(InputError, match="last row"):
        gae(np.zeros((2, 1)), np.zeros((2, 1)), np.zeros((2, 1), bool), np.zeros((2, 1)))


def test_reward_advantages_are_standardized():
    a = np.array([1.0, 2.0, 6.0])
    standard, std = standardize(a)
    assert standard.std() == pytest.approx(1.0, abs=1e-7)
    assert std == pytest.approx(np.sqrt(14.0 / 3.0))
    np.testing.assert_array_equal(standardize(np.full(4, 3.0))[0], np.zeros(4))


def test_clipped_advantages():
    """The outlier is clipped at 3 times the 90th percentile; the deviation is that of the clipped advantages."""
    a = np.concatenate([np.linspace(-1.0, 1.0, 99), [-500.0]])
    centered = a - a.mean()
    low, high = np.sort(np.abs(centered))[89:91]
    bound = 3.0 * (0.9 * low + 0.1 * high)
    clipped = np.clip(centered, -bound, bound)
    standard, std = standardize(a, 3.0)
    np.testing.assert_allclose(standard, (clipped - clipped.mean()) / clipped.std(), rtol=1e-6)
    assert std == pytest.approx(clipped.std())
    np.testing.assert_allclose(standard * std, clipped - clipped.mean(), rtol=1e-6)
    assert standard[:-1].std() > 5 * standardize(a)[0][:-1].std()  # the outlier does not set the scale
    np.testing.assert_allclose(standardize(a, 1e9)[0], standardize(a)[0], rtol=1e-9)
