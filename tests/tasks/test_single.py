import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from steingate.errors import InputError
from steingate.tasks.single import SafetyEnv
from steingate.tasks.vector import SafetyVectorEnv

SOME = ["SafetyPointGoal2-v0", "SafetyCarGoal1-v0", "SafetyPointCircle2-v0", "SafetyAntVelocity-v1"]


@pytest.mark.parametrize("name", SOME)
def test_gymnasiums_checker_has_nothing_to_say(name):
    """Warnings are errors in this test suite."""
    check_env(gymnasium.make(f"steingate/{name}").unwrapped, skip_render_check=True)


@pytest.mark.parametrize("name", SOME)
def test_one_environment_is_the_batch_of_one(name):
    env, batch = SafetyEnv(name), SafetyVectorEnv(name, 1)
    obs, info = env.reset(seed=3)
    many, _ = batch.reset(seed=3)
    assert np.array_equal(obs, many[0])
    rng = np.random.default_rng(0)
    for _ in range(8):
        action = rng.uniform(-1, 1, env.task.action_size) * env.task.action_bound
        obs, reward, terminated, truncated, info = env.step(action)
        many, rewards, *_, infos = batch.step(action[None])
        assert np.array_equal(obs, many[0])
        assert reward == rewards[0]
        assert type(reward) is float
        assert type(terminated) is type(truncated) is bool
        assert (type(info["cost"]), type(info["goals"]), type(info["goal_met"])) == (float, int, bool)
        assert info["cost"] == infos["cost"][0]


def test_made_by_gymnasium_it_ends_after_its_episode_length():
    env = gymnasium.make("steingate/SafetyPointCircle0-v0")
    assert env.spec.max_episode_steps == 500
    env.reset(seed=0)
    for k in range(500):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        assert truncated == (k == 499)
        assert not terminated
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(env.action_space.sample())
    env.reset()
    env.step(env.action_space.sample())


def test_bad_actions_are_named():
    env = SafetyEnv("SafetyPointGoal1-v0")
    env.reset(seed=0)
    with pytest.raises(InputError, match="shape"):
        env.step(np.zeros(3))
    with pytest.raises(InputError, match="finite"):
        env.step([np.nan, 0.0])


def test_snapshot_and_restore():
    env = SafetyEnv("SafetyCarGoal1-v0")
    env.reset(seed=0)
    obs, *_ = env.step(np.ones(2))
    saved = env.snapshot()
    after = env.step(np.ones(2))[0]
    assert np.array_equal(env.restore(saved), obs)
    assert np.array_equal(env.step(np.ones(2))[0], after)


def test_closing_twice_is_fine():
    env = SafetyEnv("SafetyCarGoal1-v0")
    env.reset(seed=0)
    env.close()
    env.close()
    with pytest.raises(gymnasium.error.ClosedEnvironmentError):
        env.reset()


def test_an_unknown_option_is_named_through_gymnasium():
    with pytest.raises(InputError, match=r"'SafetyPointGoal1-v0' has no option 'foo': it takes threads"):
        gymnasium.make("steingate/SafetyPointGoal1-v0", foo=3)
    with pytest.raises(InputError, match=r"'SafetyPointGoal1-v0' has no option 'foo': it takes threads"):
        gymnasium.make_vec("steingate/SafetyPointGoal1-v0", num_envs=2, foo=3)
