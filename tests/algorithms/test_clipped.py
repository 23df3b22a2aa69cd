import jax
import numpy as np
import pytest
from steingate.algorithms.common.base import Batch, priced
from steingate.algorithms.common.clipped import clipped_step, followed
from steingate.algorithms.common.heads import log_prob
from steingate.algorithms.common.minibatches import minibatch_order
from steingate.algorithms.common.sizes import Clipped
from steingate.gates.base import Decision, Mode
from tests.algorithms.problems import problem

from steingate.algorithms.common.networks import mean
from steingate.errors import InputError


def plain_loop(params, batch, adv, cfg, seed, epoch, weight=None):
    """The same passes written out with a gradient function and Adam's textbook update."""
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=(epoch, 1000))))
    order = minibatch_order(rng, len(batch.obs), cfg.passes)
    leaves, tree = jax.tree.flatten(params)

    def loss(params, rows):
        ratio = jax.numpy.exp(log_prob(params, batch.obs[rows], batch.act[rows]) - batch.logp[rows])
        capped = jax.numpy.clip(ratio, 1 - cfg.clip, 1 + cfg.clip)
        gain = jax.numpy.minimum(ratio * adv[rows], capped * adv[rows])
        w = np.ones(len(rows)) if weight is None else weight[rows]
        return -(gain * w).sum() / w.sum()

    gradient = jax.grad(loss)
    m = [np.zeros_like(leaf) for leaf in leaves]
    v = [np.zeros_like(leaf) for leaf in leaves]
    t = 0
    for rows in order:
        for start in range(0, len(rows), cfg.batch_size):
            now = jax.tree.unflatten(tree, leaves)
            g = [np.asarray(x) for x in jax.tree.leaves(gradient(now, rows[start : start + cfg.batch_size]))]
            norm = np.sqrt(sum((x**2).sum() for x in g))
            g = [x * min(1.0, cfg.max_grad_norm / (norm + 1e-6)) for x in g]
            t += 1
            m = [0.9 * a + 0.1 * b for a, b in zip(m, g, strict=True)]
            v = [0.999 * a + 0.001 * b**2 for a, b in zip(v, g, strict=True)]
            rate = cfg.rate(epoch)
            leaves = [
                x - rate * (a / (1 - 0.9**t)) / (np.sqrt(b / (1 - 0.999**t)) + 1e-8)
                for x, a, b in zip(leaves, m, v, strict=True)
            ]
    return jax.tree.unflatten(tree, leaves)


@pytest.mark.parametrize("mode", [Mode.IMPROVE, Mode.RECOVER])
def test_passes_against_a_plain_loop(mode):
    params, batch = problem()
    weight = np.where(np.arange(300) % 7 == 0, 5.0, 1.0).astype(np.float32)
    batch = batch._replace(weight=weight)
    cfg = Clipped(passes=3, max_kl=9.0, learning_rate=3e-3, max_grad_norm=0.05)
    step = clipped_step(cfg, seed=4)
    decision = Decision(mode, price=0.5)
    moved, state, log = step.move(step.init(params), params, batch, decision)
    adv = (batch.adv - 0.5 * batch.cost_adv) / 1.5 if mode == Mode.IMPROVE else -batch.cost_adv
    expected = plain_loop(params, batch, adv, cfg, 4, 0, weight)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=3e-5), moved, expected)
    assert log["step/passes"] == step.passes(state) == 3
    assert state.adam.steps == 3 * 5


def test_the_pass_that_exceeds_the_divergence_is_the_last_and_is_kept():
    params, batch = problem()
    free = clipped_step(Clipped(passes=6, max_kl=1e9, learning_rate=1e-2))
    bound = clipped_step(Clipped(passes=6, max_kl=0.02, learning_rate=1e-2))
    _, _, unbound = free.move(free.init(params), params, batch, Decision(Mode.IMPROVE))
    moved, _, log = bound.move(bound.init(params), params, batch, Decision(Mode.IMPROVE))
    assert unbound["step/passes"] == 6
    assert 1 <= log["step/passes"] < 6
    assert log["step/kl"] > 0.02
    mu_old, mu_new = np.asarray(mean(params, batch.obs)), np.asarray(mean(moved, batch.obs))
    old, new = np.exp(params["log_std"]), np.exp(moved["log_std"])
    kl = np.log(new / old) - 0.5 + (old**2 + (mu_old - mu_new) ** 2) / (2 * new**2)
    assert log["step/kl"] == pytest.approx(kl.sum(axis=1).mean(), rel=1e-4)  # summed over dimensions
    shape = {"learning_rate": 1e-2, "max_kl": 1e9, "passes": 6}
    one_less = clipped_step(Clipped(**{**shape, "max_kl": log["step/kl"] * 0.999}))
    same, _, again = one_less.move(one_less.init(params), params, batch, Decision(Mode.IMPROVE))
    assert again["step/passes"] == log["step/passes"]  # a bound just below is exceeded by the same pass
    jax.tree.map(np.testing.assert_array_equal, same, moved)


def test_the_learning_rate_falls_to_zero_over_the_run():
    cfg = Clipped(learning_rate=4e-4)
    assert [cfg.rate(k, 4) for k in range(6)] == pytest.approx([4e-4, 3e-4, 2e-4, 1e-4, 0.0, 0.0])
    assert cfg.rate(99) == 4e-4
    assert Clipped(learning_rate=4e-4, decay=False).rate(3, 4) == 4e-4


def test_the_state_goes_on_and_moves_repeat():
    params, batch = problem()
    step = clipped_step(Clipped(passes=2), seed=1, epochs=5)
    first, state, _ = step.move(step.init(params), params, batch, Decision(Mode.IMPROVE))
    one = step.move(state, first, batch, Decision(Mode.IMPROVE))
    two = step.move(state, first, batch, Decision(Mode.IMPROVE))
    jax.tree.map(np.testing.assert_array_equal, one[0], two[0])
    assert (one[1].epoch, one[1].adam.steps) == (2, 20)
    other = clipped_step(Clipped(passes=2), seed=2, epochs=5)
    changed, _, _ = other.move(other.init(params), params, batch, Decision(Mode.IMPROVE))
    assert not np.array_equal(changed["w"][0], first["w"][0])


def test_what_each_decision_follows():
    _, batch = problem()
    for decision, expected in (
        (Decision(Mode.IMPROVE), batch.adv),
        (Decision(Mode.RECOVER), -batch.cost_adv),
        (Decision(Mode.BALANCE, 0.1), batch.adv),
        (Decision(Mode.BALANCE, -0.1), -batch.cost_adv),
        (Decision(Mode.IMPROVE, price=3.0), (batch.adv - 3 * batch.cost_adv) / 4),
    ):
        np.testing.assert_allclose(followed(batch, decision), expected, rtol=1e-6)


def test_prices_in_the_same_unit_are_those_of_a_penalized_reward():
    rng = np.random.default_rng(0)
    reward, cost = rng.normal(scale=7.0, size=(2, 50))
    reward, cost = reward - reward.mean(), cost - cost.mean()
    batch = Batch(None, None, None, reward / reward.std(), cost, scale=reward.std())
    np.testing.assert_allclose(priced(batch, 0.5, same_unit=True), (reward - 0.5 * cost) / 1.5)


@pytest.mark.parametrize("bad", [{"clip": 0.0}, {"passes": 0}, {"max_kl": -1.0}])
def test_impossible_sizes_are_refused_by_name(bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        Clipped(**bad)
