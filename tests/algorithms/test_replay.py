import numpy as np
import pytest
from steingate.algorithms.common.heads import log_prob
from steingate.algorithms.common.replay import episode_memory, replay_extremes
from steingate.algorithms.common.sizes import Replay
from steingate.gates.tail import pareto_quantile

from steingate.algorithms.common.networks import init_policy


def test_transitions_above_the_fitted_extreme_count_five_times():
    adv = np.random.default_rng(0).normal(size=(500, 8))
    followed, weight, log = replay_extremes(adv, Replay(everywhere=True))
    np.testing.assert_array_equal(followed, adv.ravel())
    threshold, _ = pareto_quantile(adv.ravel(), 90.0, 0.5, False)
    assert log["replay/threshold"] == pytest.approx(threshold, rel=1e-3)
    np.testing.assert_array_equal(weight, np.where(adv.ravel() >= log["replay/threshold"], 5.0, 1.0))
    assert log["replay/share"] == pytest.approx(0.05, abs=0.01)  # the upper half of the upper tenth
    assert weight.dtype == np.float32


def test_copies_enter_the_mean_of_the_reward_surrogate_alone():
    adv = np.random.default_rng(0).normal(size=(500, 8))
    followed, weight, log = replay_extremes(adv, Replay())
    assert weight is None
    stored = np.concatenate([adv.ravel(), np.repeat(adv[adv >= log["replay/threshold"]], 4)])
    assert followed.mean() == pytest.approx(stored.mean())
    assert (np.sign(followed) == np.sign(adv.ravel())).all()


def test_published_looks_at_the_last_hundred_of_the_last_environment():
    rng = np.random.default_rng(1)
    adv = rng.normal(size=(400, 3))
    adv[-100:, 2] *= 10.0
    _, _, log = replay_extremes(adv, Replay().resolved(published=True))
    expected, _ = pareto_quantile(adv[-100:, 2], 90.0, 0.5, True)
    assert log["replay/threshold"] == pytest.approx(expected)
    short = rng.normal(size=(30, 4))  # fewer steps than the buffer: it reaches into the environments before
    _, _, log = replay_extremes(short, Replay().resolved(published=True))
    seen = np.concatenate([short[-10:, 0], short[:, 1], short[:, 2], short[:, 3]])
    assert log["replay/threshold"] == pytest.approx(pareto_quantile(seen, 90.0, 0.5, True)[0])


def test_advantages_without_spread():
    _, weight, log = replay_extremes(np.zeros((10, 2)), Replay(everywhere=True))
    assert log["replay/threshold"] == 0.0
    assert set(weight) == {5.0}


def rollout(ends, seed=0, obs_dim=2, act_dim=1):
    """Random steps; ``ends`` is (T, E) of flags."""
    ends = np.asarray(ends, bool)
    rng = np.random.default_rng(seed)
    obs = rng.normal(size=(*ends.shape, obs_dim)).astype(np.float32)
    act = rng.normal(size=(*ends.shape, act_dim)).astype(np.float32)
    logp = rng.normal(size=ends.shape).astype(np.float32)
    return obs, act, logp, np.argwhere(ends)


def ratio_of(params, obs, act, logp):
    return float(np.sum(np.asarray(log_prob(params, obs, act), np.float64) - logp))


def test_episodes_of_any_length_and_number_of_environments_are_remembered():
    memory = episode_memory(capacity=4)
    policy = init_policy(np.random.default_rng(0), 2, 1, (4,))
    ends = np.zeros((9, 3), bool)
    ends[[2, 8], 0] = ends[5, 1] = True  # lengths 3, 6 in environment 0, 6 in environment 1, none in 2
    obs, act, logp, places = rollout(ends)
    ratio, state = memory.recall(memory.init(3, 2, 1), policy, (obs, act, logp), places, False)
    np.testing.assert_array_equal(ratio, 0.0)
    np.testing.assert_array_equal(state.lengths, [3, 6, 6])
    later = rollout(np.eye(2, 3, dtype=bool), seed=1)
    ratio, state = memory.recall(state, policy, later[:3], later[3], False)
    # One of the five is forgotten; the two new ones are last and have ratio 0.
    np.testing.assert_array_equal(state.lengths, [6, 6, 1, 2])
    expected = [
        ratio_of(policy, obs[:6, 1], act[:6, 1], logp[:6, 1]),
        ratio_of(policy, obs[3:9, 0], act[3:9, 0], logp[3:9, 0]),
        0.0,
        0.0,
    ]
    np.testing.assert_allclose(ratio, expected, rtol=1e-5)


def test_an_episode_that_outlives_its_rollout_is_remembered_whole():
    memory = episode_memory(capacity=5)
    policy = init_policy(np.random.default_rng(0), 2, 1, (4,))
    first = rollout(np.zeros((4, 2), bool))
    ends = np.zeros((4, 2), bool)
    ends[1, 1] = True
    second = rollout(ends, seed=1)
    for carries, length in ((True, 6), (False, 2)):
        _, state = memory.recall(memory.init(2, 2, 1), policy, first[:3], first[3], carries)
        assert len(state.lengths) == 0
        _, state = memory.recall(state, policy, second[:3], second[3], carries)
        np.testing.assert_array_equal(state.lengths, [length])
        none = rollout(np.zeros((1, 2), bool), seed=2)
        ratio, state = memory.recall(state, policy, none[:3], none[3], carries)
        path = [
            np.concatenate([a[:, 1], b[:2, 1]]) if carries else b[:2, 1]
            for a, b in zip(first[:3], second[:3], strict=True)
        ]
        assert ratio[0] == pytest.approx(ratio_of(policy, *path), rel=1e-5)


def test_more_new_episodes_than_are_remembered():
    memory = episode_memory(capacity=3)
    policy = init_policy(np.random.default_rng(0), 2, 1, (4,))
    four = rollout(np.ones((4, 2), bool))
    ratio, state = memory.recall(memory.init(2, 2, 1), policy, four[:3], four[3], False)
    np.testing.assert_array_equal(ratio, np.zeros(3))
    np.testing.assert_array_equal(state.lengths, [1, 1, 1])
    assert len(state.steps.logp) == 3
