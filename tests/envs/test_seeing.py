from inspect import getattr_static

import numpy as np
import pytest
from gymnasium.spaces import Box
from steingate.gates.account import Account, Remaining, Spent

from steingate.envs.lidar_features import Seeing
from steingate.envs.make import make_vec
from steingate.envs.safety_state import Augmented
from steingate.training.environment import Saved
from steingate.training.video import RenderedEnv

TASK, LIDAR = "SafetyPointGoal1-v0", slice(12, 60)


def test_every_observation_gets_the_powers_of_its_lidar_and_the_rest_stays():
    plain, near = (make_vec(TASK, 2, max_episode_steps=3) for _ in range(2))
    near = Seeing(near, (4.0, 36.0))
    assert near.single_observation_space == Box(
        np.append(plain.single_observation_space.low, np.zeros(96)),
        np.append(plain.single_observation_space.high, np.ones(96)),
        dtype=np.float64,
    )

    def expected(obs):
        return np.concatenate([obs, obs[:, LIDAR] ** 4, obs[:, LIDAR] ** 36], axis=1)

    np.testing.assert_allclose(near.reset(seed=[1, 2])[0], expected(plain.reset(seed=[1, 2])[0]))
    ended = 0
    for _ in range(4):
        action = np.full((2, 2), 0.3)
        obs, reward, _, truncated, info = plain.step(action)
        shown, same, _, _, more = near.step(action)
        np.testing.assert_allclose(shown, expected(obs))
        np.testing.assert_array_equal(reward, same)
        if truncated.any():
            ended += 1
            np.testing.assert_allclose(more["final_obs"], expected(info["final_obs"]))
    assert ended == 1
    plain.close()
    near.close()


def test_a_snapshot_brings_the_powers_back_beneath_an_account():
    envs = Augmented(Seeing(make_vec(TASK, 2), (4.0,)), Account(Remaining(25.0, 1.0)))
    envs.set_budget(0.5)
    envs.reset(seed=[1, 2])
    before = envs.step(np.full((2, 2), 0.3))[0].copy()
    state = envs.snapshot()
    envs.step(np.full((2, 2), -0.3))
    np.testing.assert_array_equal(envs.restore(state), before)
    assert before.shape == (2, 60 + 48 + 1)
    assert before[:, -1] == pytest.approx(0.5)
    envs.close()


@pytest.mark.parametrize(("task", "last"), [("SafetyPointCircle1-v0", 28), ("SafetyCarCircle1-v0", 40)])
def test_places_tell_where_the_agent_is(task, last):
    envs = Seeing(make_vec(task, 4), places=True)
    envs.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(100):
        obs = envs.step(rng.uniform(-1.0, 1.0, (4, 2)))[0]
    assert obs.shape == (4, last + 6)
    x, y = envs.simulation.q[:, :2].T
    # The center of the circle, seen from the agent, along -y and to the left of that.
    np.testing.assert_allclose(6.0 * obs[:, -4:-2], np.column_stack([y, -x]), atol=0.02)
    assert np.hypot(x, y).min() > 0.1
    envs.close()


def test_places_are_those_of_each_observation_at_the_end_and_after_going_back():
    envs = Seeing(make_vec("SafetyPointCircle1-v0", 2, max_episode_steps=3), places=True)
    envs.reset(seed=[1, 2])
    envs.step(np.full((2, 2), 0.3))
    before = envs.step(np.full((2, 2), 0.3))[0].copy()
    state = envs.snapshot()
    info = envs.step(np.full((2, 2), 0.3))[4]
    np.testing.assert_array_equal(info["final_obs"], envs.sight(info["final_obs"][:, :28]))
    assert np.abs(info["final_obs"][:, 28:]).min() > 0.0
    np.testing.assert_array_equal(envs.restore(state), before)
    envs.close()


@pytest.mark.parametrize("wrap", [lambda e: Seeing(e), lambda e: Augmented(e, Account(Spent(25.0)))])
def test_wrappers_have_by_name_what_the_trainer_and_films_ask_for(wrap):
    """Newer Pythons do not count what __getattr__ finds."""
    envs = wrap(make_vec("SafetyPointCircle1-v0", 1))
    for protocol in (Saved, RenderedEnv):
        assert isinstance(envs, protocol)
        for name in protocol.__protocol_attrs__ if hasattr(protocol, "__protocol_attrs__") else ():
            getattr_static(envs, name)
    for name in ("num_envs", "single_action_space", "current_env", "metadata", "render", "snapshot", "close"):
        getattr_static(envs, name)
    envs.close()


def test_an_environment_without_a_lidar_shows_what_it_did():
    envs = Seeing(make_vec("SafetyHalfCheetahVelocity-v1", 1), (4.0,), places=True)
    assert envs.reset(seed=0)[0].shape == (1, 17)
    envs.close()
