"""Native tasks as Gymnasium environments: interface, determinism, episodes, snapshots, refused arguments."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from tests.training.probes import Walk

from steingate.envs.make import make_vec
from steingate.errors import InputError
from steingate.tasks.catalog import TASKS
from steingate.tasks.environments import SafetyEnv, SafetyVectorEnv

SOME = ["SafetyPointGoal2-v0", "SafetyCarGoal2-v0", "SafetyCarCircle1-v0", "SafetyHopperVelocity-v1"]
SOME += ["SafetyHumanoidVelocity-v1"]
GOAL1 = "SafetyPointGoal1-v0"


def actions(env, steps, seed=0):
    """Return random actions (steps, N, a); those of environment i do not depend on N."""
    bound = env.task.action_bound
    rngs = [np.random.default_rng([seed, i]) for i in range(env.num_envs)]
    return np.stack([rng.uniform(-bound, bound, (steps, env.task.action_size)) for rng in rngs], axis=1)


def run(env, steps=60, seed=5, act=None):
    """Return all results of some steps as one array (steps, N, k)."""
    if seed is not None:
        env.reset(seed=seed)
    rows = []
    for action in actions(env, steps) if act is None else act:
        obs, reward, terminated, truncated, info = env.step(action)
        rows.append(np.column_stack([obs, reward, terminated, truncated, info["cost"], info["goals"]]))
    return np.array(rows)


@pytest.mark.parametrize("name", TASKS)
def test_every_task_runs_within_its_spaces(name):
    env = SafetyVectorEnv(name, 3, threads=1)
    obs, info = env.reset(seed=0)
    assert env.observation_space.contains(obs)
    for action in actions(env, 5):
        obs, reward, terminated, truncated, info = env.step(action)
        assert env.observation_space.contains(obs)
        assert reward.shape == terminated.shape == truncated.shape == (3,)
        assert terminated.dtype == truncated.dtype == bool
        names = {"cost", "goal_met", "goals", *env.task.cost_parts}
        assert {key for key in info if not key.startswith(("_", "final"))} == names
        assert all(info[key].shape == (3,) and info[f"_{key}"].all() for key in names)
        worst = np.max([info[part] for part in env.task.cost_parts], axis=0, initial=0.0)
        assert np.array_equal(info["cost"], np.broadcast_to(worst, 3))
    env.close()


@pytest.mark.parametrize("name", SOME)
def test_results_do_not_depend_on_threads_and_neighbors(name):
    many = run(SafetyVectorEnv(name, 6, threads=1, max_episode_steps=40))
    assert np.array_equal(many, run(SafetyVectorEnv(name, 6, threads=3, max_episode_steps=40)))
    few = run(SafetyVectorEnv(name, 2, threads=2, max_episode_steps=40))
    assert np.array_equal(many[:, :2], few)
    act = actions(SafetyVectorEnv(name, 6), 60)[:, 3:4]
    alone = run(SafetyVectorEnv(name, 1, max_episode_steps=40), seed=[8], act=act)
    assert np.array_equal(many[:, 3:4], alone)


def test_seeds():
    env = SafetyVectorEnv(GOAL1, 3)
    first, _ = env.reset(seed=0)
    second, _ = env.reset()
    assert not np.array_equal(first, second)
    assert np.array_equal(first, env.reset(seed=[0, 1, 2])[0])
    assert np.array_equal(env.reset()[0], second)
    one, other = (SafetyVectorEnv(GOAL1, 2).reset()[0] for _ in range(2))
    assert not np.array_equal(one, other)
    with pytest.raises(InputError, match="4 seeds for 3"):
        env.reset(seed=[1, 2, 3, 4])


@pytest.mark.parametrize("seed", [1.5, True, "12", [True, False], [1.0, 2.0], [-1, 2], -3])
def test_seeds_are_non_negative_integers(seed):
    """In all environments."""
    for env in (make_vec(Walk, 2), SafetyVectorEnv(GOAL1, 2)):
        with pytest.raises(InputError, match=r"Seed .* cannot be used: give a non-negative integer"):
            env.reset(seed=seed)


@pytest.mark.parametrize(("name", "physics"), [*((name, "auto") for name in SOME), ("SafetyCarGoal2-v0", "mujoco")])
def test_restoring_a_snapshot_repeats_every_bit(name, physics):
    env = SafetyVectorEnv(name, 4, physics=physics, max_episode_steps=50)
    act = actions(env, 80)
    run(env, act=act[:30])
    if name == "SafetyPointGoal2-v0":  # two agents in front of a vase, so that vases move
        nav = env.simulation
        ahead = np.stack([np.cos(nav.q[:2, 2]), np.sin(nav.q[:2, 2])], axis=1)
        nav.q[:2, :2] = nav.vase_q[:2, 0, :2] - 0.3 * ahead
        run(env, seed=None, act=np.ones((6, 4, 2)) * [1.0, 0.0])
    saved = env.snapshot()
    assert all(array.dtype.kind in "iuf" for array in saved.values())
    expected = run(env, seed=None, act=act[30:])
    assert np.array_equal(env.restore(saved), saved["obs"])
    assert np.array_equal(run(env, seed=None, act=act[30:]), expected)
    fresh = SafetyVectorEnv(name, 4, physics=physics, max_episode_steps=50, threads=1)
    fresh.restore(saved)
    assert np.array_equal(run(fresh, seed=None, act=act[30:]), expected)


def test_truncation_resets_within_the_step():
    env, free = SafetyVectorEnv(GOAL1, 3, max_episode_steps=10), SafetyVectorEnv(GOAL1, 3)
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    env.reset(seed=1)
    free.reset(seed=1)
    act = actions(env, 10)
    for k in range(10):
        obs, reward, terminated, truncated, info = env.step(act[k])
        free_obs, free_reward, _, _, free_info = free.step(act[k])
        assert truncated.all() == (k == 9)
        assert ("final_obs" in info) == (k == 9)
        assert np.array_equal(reward, free_reward)
    assert not terminated.any()
    assert np.array_equal(info["final_obs"], free_obs)
    assert info["_final_obs"].all()
    assert info["_final_info"].all()
    assert np.array_equal(info["final_info"]["cost"], free_info["cost"])
    assert np.array_equal(info["cost"], free_info["cost"])
    following, _ = free.reset()
    assert np.array_equal(obs, following)
    assert not np.array_equal(obs, free_obs)


def test_only_environments_whose_episode_ended_are_reset():
    env = SafetyVectorEnv(GOAL1, 3, max_episode_steps=6)
    env.reset(seed=0)
    env.step(np.zeros((3, 2)))
    env.reset(options={"reset_mask": np.array([False, True, False])})
    for _ in range(4):
        env.step(np.zeros((3, 2)))
    before = env.snapshot()["simulation/q"]
    obs, _, _, truncated, info = env.step(np.zeros((3, 2)))
    assert truncated.tolist() == [True, False, True]
    assert info["_final_obs"].tolist() == [True, False, True]
    assert np.array_equal(env.snapshot()["elapsed"], [0, 5, 0])
    assert np.allclose(env.snapshot()["simulation/q"][1], before[1], atol=1e-6)
    assert np.array_equal(obs[1], info["final_obs"][1])


def test_termination_ends_episodes_of_velocity_tasks():
    env = SafetyVectorEnv("SafetyHopperVelocity-v1", 4)
    env.reset(seed=0)
    ended = 0
    for action in actions(env, 200):
        obs, _, terminated, truncated, info = env.step(action)
        assert not truncated.any()
        if terminated.any():
            ended += terminated.sum()
            assert np.array_equal(info["_final_obs"], terminated)
            height, angle = info["final_obs"][terminated, 0], info["final_obs"][terminated, 1]
            assert ((height <= 0.7) | (np.abs(angle) >= 0.2)).all()
            assert np.all(np.abs(obs[terminated, 0] - 1.25) < 0.006)
    assert ended > 4


def test_goals_are_counted_per_episode():
    env = SafetyVectorEnv("SafetyPointGoal0-v0", 1, max_episode_steps=3)
    env.reset(seed=0)
    for goals in (1, 2, 3):
        env.simulation.xy[0, 1] = env.simulation.q[0, :2]
        info = env.step(np.zeros((1, 2)))[4]
        assert (info["goal_met"][0], info["goals"][0]) == (True, goals)
    assert info["final_info"]["goals"][0] == 3
    assert env.step(np.zeros((1, 2)))[4]["goals"][0] == 0


def test_nan_is_refused_and_changes_nothing():
    env = SafetyVectorEnv("SafetyCarGoal1-v0", 3)
    env.reset(seed=0)
    before = env.snapshot()
    bad = np.zeros((3, 2))
    bad[1, 0] = np.nan
    with pytest.raises(InputError, match="environment 1"):
        env.step(bad)
    after = env.snapshot()
    assert all(np.array_equal(before[key], after[key]) for key in before)
    hopper = SafetyVectorEnv("SafetyHopperVelocity-v1", 2)
    hopper.reset(seed=0)
    with pytest.raises(InputError, match="environment 0"):  # the reward depends on the action as given
        hopper.step(np.full((2, 3), np.inf))


@pytest.mark.parametrize("name", [GOAL1, "SafetyCarCircle1-v0"])
def test_actions_out_of_range_are_clipped(name):
    env, twin = SafetyVectorEnv(name, 2), SafetyVectorEnv(name, 2)
    act = 3 * actions(env, 20)
    act[3, 1] = np.inf
    given = act.copy()
    assert np.array_equal(run(env, act=act), run(twin, act=np.clip(act, -1, 1)))
    assert np.array_equal(act, given)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"num_envs": 0}, "num_envs"),
        ({"physics": "bullet"}, "bullet"),
        ({"layout_stream": "other"}, "other"),
        ({"render_mode": "human"}, "human"),
        ({"autoreset_mode": AutoresetMode.NEXT_STEP}, "autoreset_mode"),
        ({"env_id": "SafetyPointPush1-v0"}, "There is no native task 'SafetyPointPush1-v0'"),
        ({"foo": 3}, "'SafetyPointGoal1-v0' has no option 'foo': it takes threads, physics"),
    ],
)
def test_wrong_options_are_named(options, word):
    with pytest.raises(InputError, match=word):
        SafetyVectorEnv(**{"env_id": GOAL1, "num_envs": 1} | options)


def test_reset_comes_first_and_closing_twice_has_no_effect():
    env = SafetyVectorEnv(GOAL1, 2)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros((2, 2)))
    env.reset(seed=0)
    env.close()
    env.close()
    with pytest.raises(gymnasium.error.ClosedEnvironmentError):
        env.step(np.zeros((2, 2)))
    with pytest.raises(gymnasium.error.ClosedEnvironmentError):
        env.reset()


def test_without_autoreset_an_environment_waits_for_its_reset():
    env = SafetyVectorEnv(GOAL1, 2, max_episode_steps=2, autoreset_mode=AutoresetMode.DISABLED)
    env.reset(seed=0)
    env.step(np.zeros((2, 2)))
    assert env.step(np.zeros((2, 2)))[3].all()
    with pytest.raises(gymnasium.error.ResetNeeded, match="Environment 0"):
        env.step(np.zeros((2, 2)))
    env.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(gymnasium.error.ResetNeeded, match="Environment 1"):
        env.step(np.zeros((2, 2)))
    with pytest.raises(InputError, match="reset_mask"):
        env.reset(options={"reset_mask": [1, 0]})


def test_registered_with_gymnasium():
    assert all(f"steingate/{name}" in gymnasium.registry for name in TASKS)
    env = gymnasium.make_vec(f"steingate/{GOAL1}", num_envs=3, threads=1)
    assert isinstance(env, SafetyVectorEnv)
    assert env.spec.id == f"steingate/{GOAL1}"
    short = gymnasium.make_vec(f"steingate/{GOAL1}", num_envs=1, max_episode_steps=7)
    assert short.max_episode_steps == 7


@pytest.mark.parametrize("name", SOME)
def test_gymnasiums_checker_accepts_single_environments(name):
    """Warnings are errors in this test suite."""
    check_env(gymnasium.make(f"steingate/{name}").unwrapped, skip_render_check=True)


@pytest.mark.parametrize("name", SOME)
def test_a_single_environment_equals_a_batch_of_one(name):
    env, batch = SafetyEnv(name), SafetyVectorEnv(name, 1)
    obs, info = env.reset(seed=3)
    many, _ = batch.reset(seed=3)
    assert np.array_equal(obs, many[0])
    for action in actions(batch, 8)[:, 0]:
        obs, reward, terminated, truncated, info = env.step(action)
        many, rewards, *_, infos = batch.step(action[None])
        assert np.array_equal(obs, many[0])
        assert reward == rewards[0]
        assert type(reward) is float
        assert type(terminated) is type(truncated) is bool
        assert (type(info["cost"]), type(info["goals"]), type(info["goal_met"])) == (float, int, bool)
        assert info["cost"] == infos["cost"][0]
