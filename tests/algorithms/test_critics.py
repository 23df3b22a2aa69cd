import jax
import numpy as np
import pytest
from steingate.algorithms.common.sizes import CriticFit

from steingate.algorithms.common.critics import Adam, fit_critic, init_adam, minibatch_order
from steingate.algorithms.common.networks import init_critic, value
from steingate.errors import InputError


def gradient(params, obs, target, penalty):
    """Loss and its gradient by hand, in float64."""
    (w1, w2, w3), (b1, b2, b3) = params["w"], params["b"]
    h1 = np.tanh(obs @ w1 + b1)
    h2 = np.tanh(h1 @ w2 + b2)
    error = (h2 @ w3 + b3)[:, 0] - target
    back = (2 * error / len(error))[:, None]
    back2 = back @ w3.T * (1 - h2**2)
    back1 = back2 @ w2.T * (1 - h1**2)
    slope = [obs.T @ back1, h1.T @ back2, h2.T @ back, back1.sum(0), back2.sum(0), back.sum(0)]
    flat = [*params["w"], *params["b"]]
    loss = np.mean(error**2) + penalty * sum((p**2).sum() for p in flat)
    return loss, [g + 2 * penalty * p for g, p in zip(slope, flat, strict=True)]


def plain_adam(params, obs, target, order, cfg, steps=0, moments=None):
    """The fit as a Python loop over minibatches."""
    flat = [np.asarray(p, np.float64) for p in (*params["w"], *params["b"])]
    first, second = moments or ([np.zeros_like(p) for p in flat], [np.zeros_like(p) for p in flat])
    losses = []
    for permutation in order:
        for start in range(0, len(permutation), cfg.batch_size):
            rows = permutation[start : start + cfg.batch_size]
            current = {"w": flat[:3], "b": flat[3:]}
            loss, g = gradient(current, obs[rows].astype(np.float64), target[rows], cfg.penalty)
            losses.append(loss)
            norm = np.sqrt(sum((part**2).sum() for part in g))
            g = [part * min(1.0, cfg.max_grad_norm / (norm + 1e-6)) for part in g]
            steps += 1
            first = [0.9 * m + 0.1 * part for m, part in zip(first, g, strict=True)]
            second = [0.999 * v + 0.001 * part**2 for v, part in zip(second, g, strict=True)]
            flat = [
                p - cfg.learning_rate * (m / (1 - 0.9**steps)) / (np.sqrt(v / (1 - 0.999**steps)) + 1e-8)
                for p, m, v in zip(flat, first, second, strict=True)
            ]
    return flat, np.mean(losses)


def problem(samples=70, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    obs = rng.normal(size=(samples, 3)).astype(np.float32)
    target = (scale * (obs @ [0.5, -1.0, 0.2] + 0.3)).astype(np.float32)
    return init_critic(rng, 3, (8, 6)), obs, target, rng


@pytest.mark.parametrize("scale", [1.0, 300.0])  # with 300 every gradient is clipped
def test_fit_against_a_plain_adam_loop(scale):
    params, obs, target, rng = problem(scale=scale)
    cfg = CriticFit(batch_size=16)  # 70 = 4 * 16 + 6: the last minibatch is incomplete
    order = minibatch_order(rng, 70, 4)
    fitted, adam, log = fit_critic(params, init_adam(params), obs, target, order, cfg)
    expected, loss = plain_adam(params, obs, target, order, cfg)
    for ours, theirs in zip((*fitted["w"], *fitted["b"]), expected, strict=True):
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, theirs, atol=2e-5)
    assert adam.steps == 4 * 5
    assert log["loss"] == pytest.approx(loss, rel=1e-5)


def test_a_second_fit_goes_on_where_the_first_stopped():
    params, obs, target, rng = problem()
    cfg = CriticFit(batch_size=16)
    order = minibatch_order(rng, 70, 6)
    at_once, adam, _ = fit_critic(params, init_adam(params), obs, target, order, cfg)
    half, middle, _ = fit_critic(params, init_adam(params), obs, target, order[:3], cfg)
    in_two, adam_two, _ = fit_critic(half, middle, obs, target, order[3:], cfg)
    jax.tree.map(np.testing.assert_array_equal, at_once, in_two)
    jax.tree.map(np.testing.assert_array_equal, adam, adam_two)
    assert isinstance(adam_two, Adam)


def test_a_linear_target_is_learned():
    params, obs, target, rng = problem(samples=1000)
    adam, cfg = init_adam(params), CriticFit(learning_rate=1e-2, penalty=0.0)
    for _ in range(4):
        order = minibatch_order(rng, 1000, 10)
        params, adam, log = fit_critic(params, adam, obs, target, order, cfg)
    error = np.asarray(value(params, obs)) - target
    assert np.mean(error**2) < 0.01 * target.var()
    assert log["loss"] < 0.02 * target.var()


def test_the_penalty_shrinks_biases_too():
    params, obs, _, rng = problem()
    params["b"] = tuple(b + 1.0 for b in params["b"])
    order = minibatch_order(rng, 70, 40)
    sizes = []
    for penalty in (0.0, 1.0):
        cfg = CriticFit(penalty=penalty, learning_rate=1e-2)
        fitted, _, _ = fit_critic(params, init_adam(params), obs, np.asarray(value(params, obs)), order, cfg)
        sizes.append(sum(float(np.sum(b**2)) for b in fitted["b"]))
    assert sizes[1] < 0.95 * sizes[0]


def test_batches_smaller_than_a_minibatch_are_fitted():
    params, obs, target, rng = problem(samples=5)
    cfg = CriticFit()
    order = minibatch_order(rng, 5, 3)
    fitted, adam, _ = fit_critic(params, init_adam(params), obs, target, order, cfg)
    expected, _ = plain_adam(params, obs, target, order, cfg)
    np.testing.assert_allclose(fitted["w"][0], expected[0], atol=1e-5)
    assert adam.steps == 3


def test_each_pass_sees_every_sample_once_in_its_own_order():
    order = minibatch_order(np.random.default_rng(0), 200, 5)
    np.testing.assert_array_equal(np.sort(order, axis=1), np.tile(np.arange(200), (5, 1)))
    assert len({tuple(row) for row in order}) == 5
    np.testing.assert_array_equal(order, minibatch_order(np.random.default_rng(0), 200, 5))
    assert order.dtype == np.int32


@pytest.mark.parametrize("bad", [{"batch_size": 0}, {"learning_rate": 0.0}, {"penalty": -1.0}])
def test_impossible_settings_are_refused_by_name(bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        CriticFit(**bad)
