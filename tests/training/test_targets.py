import numpy as np
import pytest

from steingate.algorithms.base import AdvantageConfig, CostAdvantageConfig, Episodes, RunContext
from steingate.algorithms.common.critics import init_critics, values
from steingate.algorithms.common.networks import value
from steingate.algorithms.cpo import CPO
from steingate.training.rollout import Carry, Rollout
from steingate.training.rollout_kernels import RUNNING, TERMINATED, TRUNCATED
from steingate.training.targets import compute_targets

CONTEXT = RunContext()


def make_rollout(steps=9, envs=3, dim=4, seed=0):
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


def make_critics(dim=4):
    return init_critics(np.random.default_rng(1), np.random.default_rng(2), dim, (8,))


def slow_advantages(r, critic, rewards, gamma, gae_lambda):
    """Advantages by the sum over each path, with the table of the ways in which a path can end."""
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
                advantage[t, e] += weight * (rewards[k, e] + gamma * after - v[k])
                if end != RUNNING:
                    break
                weight *= gamma * gae_lambda
    return advantage.ravel()


def slow_costs(r, before, transform):
    """Increments of the transformed cost, one episode after the other."""
    costs = r.rewards[:, 1].copy()
    for e in range(costs.shape[1]):
        total = before[e]
        for t in range(len(costs)):
            after = total + r.rewards[t, 1, e]
            costs[t, e] = transform(after) - transform(total)
            total = after if r.ends[t, e] == RUNNING else 0.0
    return costs


BEFORE = np.array([0.5, -0.2, 1.0])  # cost of the running episodes


@pytest.mark.parametrize(("transform", "before"), [(None, BEFORE), (np.tanh, BEFORE), (np.tanh, None)])
def test_every_way_a_path_can_end(transform, before):
    class Algorithm(CPO):
        def cost_transform(self, context, state):
            return transform

    r, critics = make_rollout(), make_critics()
    algorithm = Algorithm(advantages=AdvantageConfig(0.9, 0.8), cost_advantages=CostAdvantageConfig(0.95, 0.7, 0.3))
    batch, targets, metrics = compute_targets(r, critics, algorithm, CONTEXT, None, before)
    costs = (
        r.rewards[:, 1] if transform is None else slow_costs(r, np.zeros(3) if before is None else before, transform)
    )
    reward = slow_advantages(r, critics.reward, r.rewards[:, 0], 0.9, 0.8)
    error = slow_advantages(r, critics.cost, costs, 0.95, 0.7)
    cost = slow_advantages(r, critics.cost, costs, 0.95, 0.3)
    np.testing.assert_allclose(batch.adv, (reward - reward.mean()) / (reward.std() + 1e-8), atol=1e-5)
    np.testing.assert_allclose(batch.cost_adv, cost - cost.mean(), atol=1e-5)
    assert batch.adv_std == pytest.approx(reward.std(), rel=1e-5)
    obs = r.obs[:-1].reshape(-1, 4)
    np.testing.assert_allclose(targets[0], reward + np.asarray(value(critics.reward, obs)), atol=1e-5)
    np.testing.assert_allclose(targets[1], error + np.asarray(value(critics.cost, obs)), atol=1e-5)
    np.testing.assert_array_equal(batch.obs, obs)
    np.testing.assert_array_equal(batch.act, r.act.reshape(-1, 2))
    np.testing.assert_array_equal(batch.logp, r.logp.ravel())
    np.testing.assert_allclose(metrics["Value/RewardError"], np.sqrt(np.mean(reward**2)), rtol=1e-5)
    explained = 1.0 - error.var() / targets[1].var()
    np.testing.assert_allclose(metrics["Value/CostExplained"], explained, rtol=1e-4)


def test_perfect_critics_leave_no_advantage():
    r = make_rollout()
    r = r._replace(rewards=np.zeros_like(r.rewards), ends=np.full_like(r.ends, TERMINATED))
    zero = {"w": (np.zeros((4, 1), np.float32),), "b": (np.zeros(1, np.float32),)}
    critics = make_critics()._replace(reward=zero, cost=zero)
    batch, targets, metrics = compute_targets(r, critics, CPO(), CONTEXT, None)
    assert not batch.adv.any()
    assert not targets.any()
    assert metrics["Value/RewardError"] == metrics["Value/CostExplained"] == 0.0


def test_values_do_not_depend_on_the_number_of_rows_or_the_padding():
    critics, obs = make_critics(), np.random.default_rng(4).normal(size=(2501, 4)).astype(np.float32)
    whole = values(critics, obs)
    np.testing.assert_allclose(whole[0], value(critics.reward, obs), rtol=1e-5, atol=1e-6)
    for rows in (1, 64, 84, 1003, 2501):
        found = values(critics, obs[:rows])
        np.testing.assert_array_equal(found, whole[:, :rows])
        np.testing.assert_array_equal(values(critics, obs[:rows], varying=True), found)


def test_the_deviation_is_that_of_the_clipped_advantages():
    """Corrected RCPO multiplies by it, to penalize cost in the units of the reward."""
    r, critics = make_rollout(), make_critics()
    r.rewards[0, 0, 0] = 1e3
    batch, _, _ = compute_targets(r, critics, CPO(advantages=AdvantageConfig(0.9, 0.8, 1.0)), CONTEXT, None)
    reward = slow_advantages(r, critics.reward, r.rewards[:, 0], 0.9, 0.8)
    centered = reward - reward.mean()
    clipped = np.clip(centered, *(sign * np.quantile(np.abs(centered), 0.9) for sign in (-1.0, 1.0)))
    assert batch.adv_std == pytest.approx(clipped.std(), rel=1e-5)
    assert batch.adv_std < 0.1 * reward.std()
    np.testing.assert_allclose(batch.adv * batch.adv_std, clipped - clipped.mean(), atol=1e-4)
