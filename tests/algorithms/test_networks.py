import jax
import numpy as np
import pytest
from scipy import integrate, stats
from steingate.algorithms.common.heads import gaussian_kl, gaussian_log_prob, log_prob, mean_kl_per_dim

from steingate.algorithms.common.networks import init_critic, init_policy, mean, value


def test_initial_values_fill_the_fan_in_interval():
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


def test_the_first_deviation_changes_nothing_else():
    plain, loud = (init_policy(np.random.default_rng(3), 4, 2, (8,), first_std=std) for std in (1.0, 2.0))
    np.testing.assert_allclose(np.exp(loud["log_std"]), [2.0, 2.0], rtol=1e-6)
    for name in ("w", "b"):
        for one, two in zip(plain[name], loud[name], strict=True):
            np.testing.assert_array_equal(one, two)


def test_the_same_generator_state_gives_the_same_parameters():
    one, two = (init_critic(np.random.default_rng(3), 4, (8,)) for _ in range(2))
    jax.tree.map(np.testing.assert_array_equal, one, two)
    assert one["w"][-1].shape == (8, 1)


def test_network_output_against_plain_numpy():
    rng = np.random.default_rng(1)
    params = init_policy(rng, 5, 3, (7, 6))
    obs = rng.normal(size=(11, 5)).astype(np.float32)
    hidden = np.tanh(np.tanh(obs @ params["w"][0] + params["b"][0]) @ params["w"][1] + params["b"][1])
    expected = hidden @ params["w"][2] + params["b"][2]
    np.testing.assert_allclose(mean(params, obs), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(value(params, obs), expected[:, 0], rtol=1e-5, atol=1e-6)


def test_log_density_sums_over_action_dimensions():
    rng = np.random.default_rng(2)
    mu, act, log_std = rng.normal(size=(9, 3)), rng.normal(size=(9, 3)), rng.normal(size=3)
    expected = stats.norm.logpdf(act, mu, np.exp(log_std)).sum(axis=1)
    np.testing.assert_allclose(gaussian_log_prob(mu, log_std, act), expected, rtol=1e-5)
    params = {**init_policy(rng, 4, 3, (5,)), "log_std": log_std.astype(np.float32)}
    obs = rng.normal(size=(9, 4)).astype(np.float32)
    expected = stats.norm.logpdf(act, mean(params, obs), np.exp(log_std)).sum(axis=1)
    np.testing.assert_allclose(log_prob(params, obs, act), expected, rtol=1e-5)


def test_divergence_against_numerical_integration():
    old, new = stats.norm(0.3, np.exp(-0.2)), stats.norm(-0.5, np.exp(0.4))
    expected, _ = integrate.quad(lambda y: old.pdf(y) * (old.logpdf(y) - new.logpdf(y)), -10, 10)
    found = gaussian_kl(np.array([[0.3]]), np.array([-0.2]), np.array([[-0.5]]), np.array([0.4]))
    assert float(found[0, 0]) == pytest.approx(expected, rel=1e-5)


def test_mean_divergence_is_the_usual_one_over_the_action_dimension():
    rng = np.random.default_rng(4)
    old, new = init_policy(rng, 4, 3, (5,)), init_policy(rng, 4, 3, (5,))
    new["log_std"] = np.array([0.1, -0.3, 0.2], np.float32)
    obs = rng.normal(size=(20, 4)).astype(np.float32)
    each = gaussian_kl(mean(old, obs), old["log_std"], mean(new, obs), new["log_std"])
    usual = np.asarray(each).sum(axis=1).mean()
    assert float(mean_kl_per_dim(old, new, obs)) == pytest.approx(usual / 3, rel=1e-5)
    assert float(mean_kl_per_dim(old, old, obs)) == 0.0
