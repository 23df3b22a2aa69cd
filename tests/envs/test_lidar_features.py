import numpy as np
import pytest
from gymnasium.spaces import Box
from tests.training.fakes import small

from steingate.algorithms.base import EnvParams
from steingate.envs.make import make_vec
from steingate.envs.wrappers import LidarFeatureWrapper, SafetyStateWrapper

TASK, LIDAR = "SafetyPointGoal1-v0", slice(12, 60)


def test_powers_are_appended_to_every_observation():
    plain, envs = (make_vec(TASK, 2, max_episode_steps=3) for _ in range(2))
    envs = LidarFeatureWrapper(envs, (4.0, 36.0))
    low, high = plain.single_observation_space.low, plain.single_observation_space.high
    bounds = np.append(low, np.zeros(96)), np.append(high, np.ones(96))
    assert envs.single_observation_space == Box(*bounds, dtype=np.float64)

    def expected(obs):
        return np.concatenate([obs, obs[:, LIDAR] ** 4, obs[:, LIDAR] ** 36], axis=1)

    np.testing.assert_allclose(envs.reset(seed=[1, 2])[0], expected(plain.reset(seed=[1, 2])[0]))
    ends = []
    for _ in range(4):
        action = np.full((2, 2), 0.3)
        obs, reward, _, truncated, info = plain.step(action)
        found, same_reward, _, _, found_info = envs.step(action)
        np.testing.assert_allclose(found, expected(obs))
        np.testing.assert_array_equal(reward, same_reward)
        ends.append(truncated.all())
        if truncated.any():
            np.testing.assert_allclose(found_info["final_obs"], expected(info["final_obs"]))
    assert ends == [False, False, True, False]


def test_snapshots_restore_features_and_safety_state():
    cfg = small("allowance")
    envs = LidarFeatureWrapper(make_vec(TASK, 2), (4.0,))
    envs = SafetyStateWrapper(envs, cfg.algo, cfg.context, EnvParams(0.5))
    envs.reset(seed=[1, 2])
    envs.z[:] = -0.25
    before = envs.step(np.full((2, 2), 0.3))[0].copy()
    snapshot = envs.snapshot()
    envs.step(np.full((2, 2), -0.3))
    envs.z[:] = 0.0
    np.testing.assert_array_equal(envs.restore(snapshot), before)
    assert before.shape == (2, 60 + 48 + 1)


@pytest.mark.parametrize(("task", "size"), [("SafetyPointCircle1-v0", 28), ("SafetyCarCircle1-v0", 40)])
def test_position_relative_to_the_circle(task, size):
    envs = LidarFeatureWrapper(make_vec(task, 4), positions=True)
    envs.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(100):
        obs = envs.step(rng.uniform(-1.0, 1.0, (4, 2)))[0]
    assert obs.shape == (4, size + 6)
    x, y = envs.simulation.q[:, :2].T
    # The center of the circle relative to the agent, along -y and to the left of that.
    np.testing.assert_allclose(6.0 * obs[:, -4:-2], np.column_stack([y, -x]), atol=0.02)
    assert np.hypot(x, y).min() > 0.1
