import numpy as np
import pytest

from steingate.algorithms.common.advantages import (
    MARGIN,
    MAX_LOG_ODDS,
    gae,
    overconfidence_penalty,
    saturation_penalty,
    standardize,
)


def test_recorded_vector():
    column = np.array([[1.0], [0.0], [2.0]])
    values = np.array([[0.5], [0.4], [0.3], [0.2]])
    none = np.zeros((3, 1), bool)
    advantage, target = gae(column, values, none, none, np.zeros((3, 1)))
    np.testing.assert_allclose(advantage[:, 0], [2.477986, 1.682069, 1.898], atol=1e-6)
    np.testing.assert_allclose(target[:, 0], [2.977986, 2.082069, 2.198], atol=1e-6)
    np.testing.assert_allclose(standardize(advantage)[0][:, 0], [1.364694, -1.003605, -0.361089], atol=1e-6)


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


NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def at_nodes(mean, std):
    """Penalty of one action dimension at the quadrature nodes of its noise."""
    act = (mean + std * NODES)[:, None]
    return saturation_penalty(act, NODES[:, None], np.log([std]))


@pytest.mark.parametrize("std", [0.3, 2.0])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_no_penalty_up_to_one_deviation_outside_the_range(std, sign):
    edge = 1.0 + MARGIN * std
    for mean in (0.0, 0.9, 1.0, 1.0 + 0.99 * MARGIN * std):
        assert not at_nodes(sign * mean, std).any()
    assert np.abs(at_nodes(sign * (edge + 0.1), std)).max() > 0.0


@pytest.mark.parametrize(("mean", "std"), [(3.0, 0.4), (-5.0, 0.4), (9.0, 2.0), (-1.9, 0.3)])
def test_the_policy_gradient_is_that_of_half_the_squared_excess(mean, std):
    def half_square(m):
        return 0.5 * max((abs(m) - 1.0) / std - MARGIN, 0.0) ** 2

    found = at_nodes(mean, std)
    step = 1e-6
    slope = (half_square(mean + step) - half_square(mean - step)) / (2.0 * step)
    assert WEIGHTS @ found == pytest.approx(0.0, abs=1e-9)
    assert WEIGHTS @ (found * NODES / std) == pytest.approx(slope, rel=1e-5)  # d log p / d mean
    assert WEIGHTS @ (found * (NODES**2 - 1.0)) == pytest.approx(0.0, abs=1e-9)  # d log p / d log std


def test_the_penalty_adds_over_action_dimensions():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((5, 3, 2)).astype(np.float32)
    log_std = np.log([0.4, 0.8])
    mean = np.array([4.0, -6.0])
    act = (mean + np.exp(log_std) * noise).astype(np.float32)
    apart = sum(saturation_penalty(act[..., [k]], noise[..., [k]], log_std[[k]]) for k in (0, 1))
    found = saturation_penalty(act, noise, log_std)
    assert found.shape == (5, 3)
    np.testing.assert_allclose(found, apart, rtol=1e-6)


def for_every_action(logits):
    """Penalty and probability of each discrete action."""
    logits = np.asarray(logits, np.float64)
    act = np.arange(len(logits))[:, None].astype(np.float32)
    odds = np.exp(logits - logits.max())
    return overconfidence_penalty(act, np.tile(logits, (len(logits), 1))), odds / odds.sum()


def test_no_penalty_up_to_a_probability_of_98_percent():
    assert 1.0 / (1.0 + np.exp(-MAX_LOG_ODDS)) == pytest.approx(0.98)
    assert not for_every_action([0.0, 1.0, -1.0])[0].any()
    assert not for_every_action([MAX_LOG_ODDS - 1e-6, 0.0])[0].any()
    assert np.abs(for_every_action([MAX_LOG_ODDS + 0.1, 0.0])[0]).max() > 0.0


@pytest.mark.parametrize("logits", [[6.0, 0.0], [-8.0, 2.0, 1.0, 9.0], [0.0, 30.0, 0.0], [12.0, -0.1, -5.0]])
def test_moments_and_gradient_of_the_overconfidence_penalty(logits):
    penalty, p = for_every_action(logits)
    top = int(np.argmax(logits))
    others_p = np.delete(p, top).sum()
    excess = np.log(p[top] / others_p) - np.log(49.0)
    assert p @ penalty == pytest.approx(0.0, abs=1e-9 * excess)
    assert p @ penalty**2 == pytest.approx(excess**2, rel=1e-6)
    # The gradient in the logits; the score of an action is its indicator minus p.
    slope = np.array([np.sum(p * penalty * ((np.arange(len(p)) == k) - p[k])) for k in range(len(p))])
    assert slope[top] == pytest.approx(excess * np.sqrt(p[top] * others_p), rel=1e-6)
    others = np.delete(np.arange(len(p)), top)
    np.testing.assert_allclose(slope[others] / p[others], slope[others[0]] / p[others[0]], rtol=1e-6)


def test_probabilities_that_underflow():
    assert np.isfinite(for_every_action([2000.0, 0.0])[0]).all()
    assert np.isfinite(for_every_action([3.0])[0]).all()  # the only action
