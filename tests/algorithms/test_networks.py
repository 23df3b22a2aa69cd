import numpy as np
import pytest

from steingate.algorithms.common.networks import forward, init_network, init_policy, value


def test_initial_parameters_fill_the_fan_in_interval():
    params = init_policy(np.random.default_rng(0), 60, 2)
    assert [w.shape for w in params["w"]] == [(60, 64), (64, 64), (64, 2)]
    for weight, bias in zip(params["w"], params["b"], strict=True):
        bound = 1 / np.sqrt(weight.shape[0])
        assert weight.dtype == bias.dtype == np.float32
        assert np.abs(weight).max() <= bound
        assert np.abs(bias).max() <= bound
        # Uniform, not normal: the standard deviation of U(-1, 1) is 1/sqrt(3).
        assert np.std(weight) == pytest.approx(bound / np.sqrt(3), rel=0.15)
    assert np.abs(params["w"][0]).max() > 0.99 / np.sqrt(60)
    np.testing.assert_array_equal(params["log_std"], np.zeros(2, np.float32))


def test_network_output_against_numpy():
    rng = np.random.default_rng(1)
    params = init_network(rng, 5, (7, 6), 3)
    obs = rng.normal(size=(11, 5)).astype(np.float32)
    hidden = np.tanh(np.tanh(obs @ params["w"][0] + params["b"][0]) @ params["w"][1] + params["b"][1])
    expected = hidden @ params["w"][2] + params["b"][2]
    np.testing.assert_allclose(forward(params, obs), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(value(params, obs), expected[:, 0], rtol=1e-5, atol=1e-6)
