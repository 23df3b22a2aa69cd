import numpy as np

from steingate.algorithms.common.networks import init_critic, value
from steingate.algorithms.common.recipe import Returns
from steingate.gates.base import Episodes
from steingate.training.batch import few_values, many_values, to_batch, values
from steingate.training.rollout import Carry, Rollout
from steingate.training.rollout_kernels import RUNNING, TERMINATED, TRUNCATED


def rollout(steps=9, envs=3, dim=4, seed=0):
    rng = np.random.default_rng(seed)
    ends = rng.choice([RUNNING, RUNNING, TERMINATED, TRUNCATED], (steps, envs)).astype(np.uint8)
    ends[-1] = [RUNNING, TERMINATED, TRUNCATED]
    at = np.flatnonzero(ends.ravel() == TRUNCATED)
    return Rollout(
        obs=rng.normal(size=(steps + 1, envs, dim)).astype(np.float32),
        act=rng.normal(size=(steps, envs, 2)).astype(np.float32),
        logp=rng.normal(size=(steps, envs)).astype(np.float32),
        rewards=rng.normal(size=(steps, 2, envs)),
        ends=ends,
        finals=rng.normal(size=(len(at), dim)).astype(np.float32),
        final_at=at,
        episodes=Episodes(np.zeros(0), np.zeros(0), np.zeros(0, np.int64)),
        finished_at=np.zeros((0, 2), np.int64),
        carry=Carry(np.zeros((envs, dim), np.float32), np.zeros((envs, 3))),
    )


def critics(dim=4):
    return init_critic(np.random.default_rng(1), dim, (8,)), init_critic(np.random.default_rng(2), dim, (8,))


def slow_advantages(r, critic, stream, discount, lam):
    """Advantages by the sum over each path, from the table of ways a path can end."""
    steps, envs = r.ends.shape
    advantage = np.zeros((steps, envs))
    for e in range(envs):
        v = np.asarray(value(critic, r.obs[:, e]), np.float64)
        for t in range(steps):
            weight = 1.0
            for k in range(t, steps):
                end = r.ends[k, e]
                if end == TERMINATED:
                    after = 0.0
                elif end == TRUNCATED:
                    row = np.flatnonzero(r.final_at == k * envs + e)[0]
                    after = float(value(critic, r.finals[row : row + 1])[0])
                else:
                    after = v[k + 1]
                advantage[t, e] += weight * (r.rewards[k, stream, e] + discount * after - v[k])
                if end != RUNNING:
                    break
                weight *= discount * lam
    return advantage


def test_every_way_a_path_can_end():
    r, both = rollout(), critics()
    cfg = Returns(discount=0.9, lam=0.8, cost_discount=0.95, cost_lam=0.7, cost_adv_lam=0.7)
    batch, targets, log = to_batch(r, both, cfg)
    reward = slow_advantages(r, both[0], 0, 0.9, 0.8).ravel()
    cost = slow_advantages(r, both[1], 1, 0.95, 0.7).ravel()
    np.testing.assert_allclose(batch.adv, (reward - reward.mean()) / (reward.std() + 1e-8), atol=1e-5)
    np.testing.assert_allclose(batch.cost_adv, cost - cost.mean(), atol=1e-5)
    flat = r.obs[:-1].reshape(-1, 4)
    np.testing.assert_allclose(targets[0], reward + np.asarray(value(both[0], flat)), atol=1e-5)
    np.testing.assert_allclose(targets[1], cost + np.asarray(value(both[1], flat)), atol=1e-5)
    np.testing.assert_array_equal(batch.obs, flat)
    np.testing.assert_array_equal(batch.act, r.act.reshape(-1, 2))
    np.testing.assert_array_equal(batch.logp, r.logp.ravel())
    np.testing.assert_allclose(log["critic/reward_error"], np.sqrt(np.mean(reward**2)), rtol=1e-5)
    explained = 1.0 - cost.var() / targets[1].var()
    np.testing.assert_allclose(log["critic/cost_explained"], explained, rtol=1e-4)


def test_a_perfect_critic_explains_everything():
    r = rollout()
    r = r._replace(rewards=np.zeros_like(r.rewards), ends=np.full_like(r.ends, TERMINATED))
    zero = {"w": (np.zeros((4, 1), np.float32),), "b": (np.zeros(1, np.float32),)}
    batch, targets, log = to_batch(r, (zero, zero), Returns())
    assert not batch.adv.any()
    assert not targets.any()
    assert log["critic/reward_error"] == 0.0
    assert log["critic/cost_explained"] == 0.0  # nothing to explain, and no division by nothing


def test_few_rows_have_the_values_of_many():
    both, obs = critics(), np.random.default_rng(3).normal(size=(70, 4)).astype(np.float32)
    whole = values(both, obs)
    for rows in (1, 2, 63, 64, 65):
        np.testing.assert_allclose(few_values(both, obs[:rows]), whole[:, :rows], rtol=1e-5, atol=1e-6)


def test_padding_to_blocks_or_to_a_power_of_two_gives_the_same_bits():
    both, obs = critics(), np.random.default_rng(4).normal(size=(2501, 4)).astype(np.float32)
    for rows in (1, 64, 84, 1003, 2501):
        np.testing.assert_array_equal(many_values(both, obs[:rows]), few_values(both, obs[:rows]))


def test_a_rollout_is_padded_by_less_than_a_block(monkeypatch):
    from steingate.training import batch

    real, sizes = batch.values, []
    monkeypatch.setattr(batch, "values", lambda both, obs: sizes.append(len(obs)) or real(both, obs))
    to_batch(rollout(steps=99), critics(), Returns())
    assert sizes[0] == 320  # 300 rows; the next power of two is 512
