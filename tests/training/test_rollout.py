import numpy as np
import pytest
from tests.training.fakes import normalize, statistics
from tests.training.probes import Constant, Walk

from steingate.algorithms.common.networks import forward, init_policy, log_prob
from steingate.envs.make import make_vec
from steingate.errors import RunError
from steingate.policies.normalizer import Stats, init_stats
from steingate.training.rollout import collect
from steingate.training.rollout_kernels import FROZEN, OFF, TERMINATED, TRUNCATED, UPDATE, observe, push_rows
from steingate.training.stop import RolloutStoppedError


def rng(seed=0):
    return np.random.default_rng(seed)


def setup(num_envs=3, steps=40, env=Walk, hidden=(16, 8), **options):
    envs = make_vec(env, num_envs, copy=False, **options)
    obs_dim, act_dim = envs.single_observation_space.shape[0], envs.single_action_space.shape[0]
    policy = init_policy(rng(1), obs_dim, act_dim, hidden)
    policy["log_std"] = np.full(act_dim, -0.3, np.float32)
    noise = rng(2).standard_normal((steps, num_envs, act_dim), dtype=np.float32)
    return envs, policy, init_stats(obs_dim), noise


def slow_collect(num_envs, policy, seen, noise, seeds, env=Walk):
    """A rollout with one environment after the other; the rows ``seen`` before belong to the statistics."""
    envs = [env() for _ in range(num_envs)]
    raw = np.array([e.reset(seed=s)[0] for e, s in zip(envs, seeds, strict=True)])
    low, high = envs[0].action_space.low, envs[0].action_space.high
    rows = {name: [] for name in ("obs", "act", "reward", "cost", "end", "final")}
    totals, episodes = np.zeros((num_envs, 3)), []
    seen = np.concatenate([seen, raw])
    obs = normalize(statistics(seen), raw).astype(np.float32)
    for t in range(len(noise)):
        act = np.asarray(forward(policy, obs)) + np.exp(policy["log_std"]) * noise[t]
        command = low + (high - low) * (act.astype(np.float64) + 1.0) / 2.0
        results = [e.step(np.clip(c, low, high)) for e, c in zip(envs, command, strict=True)]
        ended = np.array([a[2] or a[3] for a in results])
        finals = np.array([a[0] for a in results])
        rows["obs"].append(obs)
        rows["act"].append(act)
        rows["reward"].append([a[1] for a in results])
        rows["cost"].append([a[4]["cost"] for a in results])
        rows["end"].append([TERMINATED if a[2] else TRUNCATED if a[3] else 0 for a in results])
        raw = np.array([e.reset()[0] if end else a[0] for e, a, end in zip(envs, results, ended, strict=True)])
        seen = np.concatenate([seen, finals[ended]])
        rows["final"] += [
            (t * num_envs + i, normalize(statistics(seen), finals[i]))
            for i in range(num_envs)
            if results[i][3] and not results[i][2]
        ]
        seen = np.concatenate([seen, raw])
        obs = normalize(statistics(seen), raw).astype(np.float32)
        for i, a in enumerate(results):
            totals[i] += a[1], a[4]["cost"], 1
            if ended[i]:
                episodes.append((t, i, *totals[i]))
                totals[i] = 0
    return {**rows, "last": obs, "episodes": np.array(episodes), "stats": statistics(seen), "totals": totals}


def test_against_a_loop_over_environments():
    envs, policy, _, noise = setup(steps=60)
    seen = rng(5).normal(size=(20, 3))
    rollout, after = collect(envs, policy, statistics(seen), noise, seeds=[5, 6, 7])
    slow = slow_collect(3, policy, seen, noise, [5, 6, 7])
    np.testing.assert_allclose(rollout.obs[:-1], slow["obs"], atol=1e-5)
    np.testing.assert_allclose(rollout.obs[-1], slow["last"], atol=1e-5)
    np.testing.assert_allclose(rollout.act, slow["act"], atol=1e-5)
    np.testing.assert_allclose(rollout.rewards[:, 0], slow["reward"], atol=1e-5)
    np.testing.assert_allclose(rollout.rewards[:, 1], slow["cost"], atol=1e-5)
    np.testing.assert_array_equal(rollout.ends, slow["end"])
    assert {TERMINATED, TRUNCATED} <= set(rollout.ends.ravel().tolist())
    np.testing.assert_array_equal(rollout.final_at, [place for place, _ in slow["final"]])
    np.testing.assert_allclose(rollout.finals, [final for _, final in slow["final"]], atol=1e-5)
    np.testing.assert_array_equal(rollout.finished_at, slow["episodes"][:, :2])
    np.testing.assert_allclose(rollout.episodes.ret, slow["episodes"][:, 2], atol=1e-5)
    np.testing.assert_allclose(rollout.episodes.cost, slow["episodes"][:, 3], atol=1e-5)
    np.testing.assert_array_equal(rollout.episodes.length, slow["episodes"][:, 4])
    np.testing.assert_allclose(rollout.carry.totals, slow["totals"], atol=1e-5)
    assert after.count == slow["stats"].count
    np.testing.assert_allclose(after.mean, slow["stats"].mean, atol=1e-6)
    np.testing.assert_allclose(after.m2, slow["stats"].m2, rtol=1e-5)


@pytest.mark.parametrize("offset", [3.0, 1e6])
def test_statistics_of_batches_are_those_of_all_rows(offset):
    count, mean, m2 = np.zeros(1, np.int64), np.zeros(4), np.zeros(4)
    batches = [offset + rng(size).normal(size=(size, 4)) for size in (1, 7, 0, 2, 40, 1)]
    for batch in batches:
        push_rows(count, mean, m2, batch, np.ones(len(batch), np.bool_), np.zeros((2, 4)))
    whole = statistics(np.concatenate(batches))
    assert count[0] == whole.count == 51
    np.testing.assert_allclose(mean, whole.mean, rtol=1e-12)
    np.testing.assert_allclose(m2, whole.m2, rtol=1e-8)


def normalized(mode, stats, numbers):
    """The numbers after normalization, one after the other."""
    obs, one, no_ends = np.zeros((1, 1, 1), np.float32), np.ones(1, np.bool_), np.zeros(0, np.uint8)
    found = []
    for number in numbers:
        lists = np.zeros((0, 1), np.float32), np.zeros(0, np.int64), np.zeros(2, np.int64)
        assert observe(0, mode, np.array([[number]]), one, *stats, obs, *lists, no_ends, np.zeros((2, 1))) == -1
        found.append(obs.item())
    return found


def test_recorded_stream():
    stats = np.zeros(1, np.int64), np.zeros(1), np.zeros(1)
    found = normalized(UPDATE, stats, [1.0, 2.0, 4.0, 4.0])
    np.testing.assert_allclose(found, [1.0, 0.70711, 1.09109, 0.83333], atol=5e-6)


def test_constant_features_are_divided_by_the_floor_and_clipped():
    found = normalized(FROZEN, (np.array([5]), np.array([2.0]), np.zeros(1)), [2.02, 2.5, -9.0])
    np.testing.assert_allclose(found, [2.0, 5.0, -5.0], rtol=1e-6)


def test_log_probabilities():
    envs, policy, stats, noise = setup()
    rollout, _ = collect(envs, policy, stats, noise, seeds=[1, 2, 3])
    expected = log_prob(policy, rollout.obs[:-1].reshape(-1, 3), rollout.act.reshape(-1, 2))
    np.testing.assert_allclose(rollout.logp.ravel(), expected, atol=1e-4)


def test_statistics_can_be_frozen_or_unused():
    envs, policy, _, noise = setup()
    stats = Stats(100, np.array([0.5, 1.0, 7.0]), np.array([99.0, 99.0 * 4, 0.0]))
    rollout, after = collect(envs, policy, stats, noise, mode=FROZEN, seeds=[1, 2, 3])
    first, _ = Walk().reset(seed=1)
    np.testing.assert_allclose(rollout.obs[0, 0], (first - [0.5, 1.0, 7.0]) / [1.0, 2.0, 0.01], rtol=1e-6)
    assert after.count == 100
    np.testing.assert_array_equal(after.mean, stats.mean)
    raw, after = collect(envs, policy, stats, noise, mode=OFF, seeds=[1, 2, 3])
    np.testing.assert_allclose(raw.obs[0, 0], first, rtol=1e-6)
    assert after.count == 100


def test_a_continued_rollout_equals_a_longer_one():
    envs, policy, stats, noise = setup(steps=50)
    whole, end = collect(envs, policy, stats, noise, seeds=[1, 2, 3])
    first, middle = collect(envs, policy, stats, noise[:23], seeds=[1, 2, 3])
    given = first.carry.obs.copy(), first.carry.totals.copy(), middle.mean.copy()
    second, later = collect(envs, policy, middle, noise[23:], carry=first.carry)
    for before, after in zip(given, (first.carry.obs, first.carry.totals, middle.mean), strict=True):
        np.testing.assert_array_equal(before, after)  # arguments are not modified
    np.testing.assert_array_equal(np.concatenate([first.act, second.act]), whole.act)
    np.testing.assert_array_equal(np.concatenate([first.obs[:-1], second.obs]), whole.obs)
    np.testing.assert_array_equal(np.concatenate([first.episodes.ret, second.episodes.ret]), whole.episodes.ret)
    np.testing.assert_array_equal(later.m2, end.m2)
    np.testing.assert_array_equal(second.carry.totals, whole.carry.totals)


def test_final_observations_are_checked():
    class LastBad(Constant):
        def step(self, action):
            obs, *rest = super().step(action)
            return (obs * np.nan if rest[2] else obs), *rest

    envs, policy, stats, noise = setup(env=LastBad)
    with pytest.raises(RunError, match="gave a final observation that is not finite at step 30;"):
        collect(envs, policy, stats, noise, seeds=[1, 2, 3])


def test_a_request_to_stop_abandons_the_rollout():
    envs, policy, stats, noise = setup()
    asked = iter([False] * 5 + [True])
    with pytest.raises(RolloutStoppedError):
        collect(envs, policy, stats, noise, seeds=[1, 2, 3], stop=lambda: next(asked))
