"""Networks against NumPy; Gaussian and categorical policies against SciPy and numerical integration."""

import jax
import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import rel_entr, softmax

from steingate.algorithms.common.networks import (
    ActionDistribution,
    action_distribution,
    forward,
    init_network,
    init_policy,
    log_prob,
    value,
)

ACTIONS = 4


def categorical(seed=0, rows=9):
    """Two categorical policies, observations and actions."""
    rng = np.random.default_rng(seed)
    params, other = (init_policy(rng, 3, ACTIONS, (5, 6), discrete=True) for _ in range(2))
    near = jax.tree.map(lambda a, b: (0.8 * a + 0.2 * b).astype(np.float32), params, other)
    obs = rng.normal(size=(rows, 3)).astype(np.float32)
    return params, near, obs, rng.integers(ACTIONS, size=(rows, 1)).astype(np.float32)


def test_gaussian_log_density_sums_over_action_dimensions():
    rng = np.random.default_rng(2)
    log_std, act = rng.normal(size=3).astype(np.float32), rng.normal(size=(9, 3))
    params = {**init_policy(rng, 4, 3, (5,)), "log_std": log_std}
    obs = rng.normal(size=(9, 4)).astype(np.float32)
    expected = stats.norm.logpdf(act, forward(params, obs), np.exp(log_std)).sum(axis=1)
    np.testing.assert_allclose(log_prob(params, obs, act), expected, rtol=1e-5)


def test_gaussian_kl_against_numerical_integration():
    old, new = stats.norm(0.3, np.exp(-0.2)), stats.norm(-0.5, np.exp(0.4))
    expected, _ = integrate.quad(lambda y: old.pdf(y) * (old.logpdf(y) - new.logpdf(y)), -10, 10)
    near = ActionDistribution(np.array([[-0.5, 0.3]]), np.array([0.4, -0.2]))
    found = ActionDistribution(np.array([[0.3, 0.3]]), np.array([-0.2, -0.2])).kl(near)
    np.testing.assert_allclose(found, [[expected, 0.0]], rtol=1e-5, atol=1e-7)


def test_categorical_log_probability_against_scipy():
    params, _, obs, act = categorical()
    p = softmax(np.asarray(forward(params, obs), np.float64), axis=1)
    expected = [
        stats.rv_discrete(values=(range(ACTIONS), row)).logpmf(int(a)) for row, a in zip(p, act[:, 0], strict=True)
    ]
    np.testing.assert_allclose(log_prob(params, obs, act), expected, rtol=2e-6)


def test_categorical_kl_against_scipy():
    params, near, obs, _ = categorical()
    old, new = (softmax(np.asarray(forward(one, obs), np.float64), axis=1) for one in (params, near))
    expected = rel_entr(old, new).sum(axis=1)
    found = action_distribution(params, obs).kl(action_distribution(near, obs))
    assert found.shape == (len(obs), 1)
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-5, atol=3e-7)  # rounding of log-probabilities
    assert not action_distribution(params, obs).kl(action_distribution(params, obs)).any()


def test_actions_of_probability_zero_leave_the_kl_finite():
    sure, other = (ActionDistribution(np.array([[0.0, low]], np.float32), None) for low in (-500.0, -200.0))
    assert float(sure.kl(other)[0, 0]) == 0.0
    assert np.isfinite(other.kl(sure)).all()
    assert float(sure.log_prob(np.array([[1.0]]))[0]) == -500.0


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
