import os
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import steingate.envs
from steingate.errors import InputError
from steingate.tasks.catalog import TASKS
from steingate.tasks.vector import SafetyVectorEnv

SOME = ["SafetyPointGoal2-v0", "SafetyCarGoal2-v0", "SafetyCarCircle1-v0", "SafetyHopperVelocity-v1"]


def actions(env, steps, seed=0):
    """Return random actions over the whole range, (steps, N, a), the same for env i whatever N is."""
    bound = env.task.action_bound
    rngs = [np.random.default_rng([seed, i]) for i in range(env.num_envs)]
    return np.stack([rng.uniform(-bound, bound, (steps, env.task.action_size)) for rng in rngs], axis=1)


def run(env, steps=60, seed=5, act=None):
    """Return everything an environment says over some steps, as one array (steps, N, k)."""
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
def test_results_do_not_depend_on_threads_neighbors_or_the_run(name):
    many = run(SafetyVectorEnv(name, 6, threads=1, max_episode_steps=40))
    assert np.array_equal(many, run(SafetyVectorEnv(name, 6, threads=3, max_episode_steps=40)))
    few = run(SafetyVectorEnv(name, 2, threads=2, max_episode_steps=40))
    assert np.array_equal(many[:, :2], few)
    alone = SafetyVectorEnv(name, 1, max_episode_steps=40)
    assert np.array_equal(
        many[:, 3:4], run(alone, seed=[8], act=actions(alone, 60) * 0 + actions_of(3, alone))
    )


def actions_of(i, env):
    """Return what ``actions`` gives environment i of a larger batch."""
    bound = env.task.action_bound
    rng = np.random.default_rng([0, i])
    return rng.uniform(-bound, bound, (60, env.task.action_size))[:, None]


def test_seeds_make_different_environments_and_none_goes_on():
    env = SafetyVectorEnv("SafetyPointGoal1-v0", 3)
    first, _ = env.reset(seed=0)
    assert len(np.unique(first[:, 12:], axis=0)) == 3
    second, _ = env.reset()
    assert not np.array_equal(first, second)
    again, _ = env.reset(seed=[0, 1, 2])
    assert np.array_equal(first, again)
    assert np.array_equal(env.reset()[0], second)


def test_unseeded_environments_differ_from_run_to_run():
    one, other = (SafetyVectorEnv("SafetyPointGoal1-v0", 2).reset()[0] for _ in range(2))
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("physics", ["auto", "mujoco"])
@pytest.mark.parametrize("name", SOME)
def test_restoring_a_snapshot_repeats_every_bit(name, physics):
    env = SafetyVectorEnv(name, 4, physics=physics, max_episode_steps=50)
    act = actions(env, 80)
    run(env, act=act[:30])
    if name == "SafetyPointGoal2-v0":  # two agents in front of a vase, so that vases are on the move
        world = env._world
        world.q[:2, :2] = world.vase_q[:2, 0, :2] - 0.3 * np.stack(
            [np.cos(world.q[:2, 2]), np.sin(world.q[:2, 2])], axis=1
        )
        run(env, seed=None, act=np.ones((6, 4, 2)) * [1.0, 0.0])
    saved = env.snapshot()
    assert all(array.dtype.kind in "iuf" for array in saved.values())
    expected = run(env, seed=None, act=act[30:])
    assert np.array_equal(env.restore(saved), saved["core/obs"])
    assert np.array_equal(run(env, seed=None, act=act[30:]), expected)
    fresh = SafetyVectorEnv(name, 4, physics=physics, max_episode_steps=50, threads=1)
    fresh.restore(saved)
    assert np.array_equal(run(fresh, seed=None, act=act[30:]), expected)


def test_a_snapshot_from_before_the_car_had_its_own_motion_is_read():
    env, twin = (SafetyVectorEnv("SafetyCarGoal1-v0", 4) for _ in range(2))
    act = actions(env, 60)
    run(env, act=act[:30])
    old = env.snapshot()
    assert old.pop("task/edges").any()
    expected = run(env, seed=None, act=act[30:])
    twin.restore(old)
    assert np.array_equal(run(twin, seed=None, act=act[30:]), expected)


def test_snapshots_of_other_tasks_are_refused():
    saved = SafetyVectorEnv("SafetyPointGoal1-v0", 2).snapshot()
    with pytest.raises(InputError, match="does not fit 3 environments of SafetyPointGoal1-v0"):
        SafetyVectorEnv("SafetyPointGoal1-v0", 3).restore(saved)
    with pytest.raises(InputError, match="does not fit"):
        SafetyVectorEnv("SafetyCarGoal1-v0", 2).restore(saved)


def test_truncation_resets_within_the_step_and_keeps_the_last_observation():
    env = SafetyVectorEnv("SafetyPointGoal1-v0", 3, max_episode_steps=10)
    free = SafetyVectorEnv("SafetyPointGoal1-v0", 3)
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    env.reset(seed=1)
    free.reset(seed=1)
    act = actions(env, 10)
    for k in range(10):
        obs, reward, terminated, truncated, info = env.step(act[k])
        seen, paid, _, _, told = free.step(act[k])
        assert truncated.all() == (k == 9)
        assert ("final_obs" in info) == (k == 9)
        assert np.array_equal(reward, paid)
    assert not terminated.any()
    assert np.array_equal(info["final_obs"], seen)
    assert info["_final_obs"].all()
    assert info["_final_info"].all()
    assert np.array_equal(info["final_info"]["cost"], told["cost"])
    assert np.array_equal(info["cost"], told["cost"])
    following, _ = free.reset()
    assert np.array_equal(obs, following)
    assert not np.array_equal(obs, seen)


def test_only_finished_environments_are_reset():
    env = SafetyVectorEnv("SafetyPointGoal1-v0", 3, max_episode_steps=6)
    env.reset(seed=0)
    env.step(np.zeros((3, 2)))
    mask = np.array([False, True, False])
    env.reset(options={"reset_mask": mask})
    for _ in range(4):
        env.step(np.zeros((3, 2)))
    before = env.snapshot()["task/q"]
    obs, _, _, truncated, info = env.step(np.zeros((3, 2)))
    assert truncated.tolist() == [True, False, True]
    assert info["_final_obs"].tolist() == [True, False, True]
    assert np.array_equal(env.snapshot()["core/elapsed"], [0, 5, 0])
    assert np.allclose(env.snapshot()["task/q"][1], before[1], atol=1e-6)
    assert np.array_equal(obs[1], info["final_obs"][1])


def test_termination_ends_episodes_of_velocity_tasks():
    env = SafetyVectorEnv("SafetyHopperVelocity-v1", 4)
    env.reset(seed=0)
    ended = 0
    for action in actions(env, 200):
        _, _, terminated, truncated, info = env.step(action)
        assert not truncated.any()
        if terminated.any():
            ended += terminated.sum()
            assert np.array_equal(info["_final_obs"], terminated)
            height = info["final_obs"][terminated, 0]
            angle = info["final_obs"][terminated, 1]
            assert ((height <= 0.7) | (np.abs(angle) >= 0.2)).all()
    assert ended > 4


def test_goals_are_counted_and_start_again():
    env = SafetyVectorEnv("SafetyPointGoal0-v0", 1, max_episode_steps=3)
    env.reset(seed=0)
    world = env._world
    counts = []
    for _ in range(3):
        world.xy[0, 1] = world.q[0, :2]
        info = env.step(np.zeros((1, 2)))[4]
        assert info["goal_met"][0]
        counts.append(int(info["goals"][0]))
    assert counts == [1, 2, 3]
    assert info["final_info"]["goals"][0] == 3
    assert env.step(np.zeros((1, 2)))[4]["goals"][0] == 0


def test_not_a_number_is_refused_by_environment_and_changes_nothing():
    env = SafetyVectorEnv("SafetyCarGoal1-v0", 3)
    env.reset(seed=0)
    before = env.snapshot()
    bad = np.zeros((3, 2))
    bad[1, 0] = np.nan
    with pytest.raises(InputError, match="environment 1"):
        env.step(bad)
    after = env.snapshot()
    assert all(np.array_equal(before[key], after[key]) for key in before)


@pytest.mark.parametrize("name", ["SafetyPointGoal1-v0", "SafetyCarCircle1-v0"])
def test_actions_out_of_range_are_clipped(name):
    env, twin = SafetyVectorEnv(name, 2), SafetyVectorEnv(name, 2)
    act = 3 * actions(env, 20)
    act[3, 1] = np.inf
    given = act.copy()
    assert np.array_equal(run(env, act=act), run(twin, act=np.clip(act, -1, 1)))
    assert np.array_equal(act, given)


def test_infinite_actions_are_refused_where_effort_is_paid():
    env = SafetyVectorEnv("SafetyHopperVelocity-v1", 2)
    env.reset(seed=0)
    with pytest.raises(InputError, match="environment 0"):
        env.step(np.full((2, 3), np.inf))


@pytest.mark.parametrize("act", [np.zeros(2), np.zeros((3, 2)), np.zeros((2, 3)), "go", None])
def test_actions_of_the_wrong_shape_are_refused(act):
    env = SafetyVectorEnv("SafetyPointGoal1-v0", 2)
    env.reset(seed=0)
    with pytest.raises(InputError, match="Actions"):
        env.step(act)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"num_envs": 0}, "num_envs"),
        ({"num_envs": 2.5}, "num_envs"),
        ({"threads": 0}, "threads"),
        ({"physics": "bullet"}, "bullet"),
        ({"layout_stream": "other"}, "other"),
        ({"render_mode": "human"}, "human"),
        ({"camera": "top"}, "top"),
        ({"autoreset_mode": AutoresetMode.NEXT_STEP}, "autoreset_mode"),
        ({"max_episode_steps": -1}, "max_episode_steps"),
        ({"env_id": "SafetyPointGoal7-v0"}, "Goal7"),
    ],
)
def test_options_that_cannot_be_used_are_named(options, word):
    with pytest.raises(InputError, match=word):
        SafetyVectorEnv(**{"env_id": "SafetyPointGoal1-v0", "num_envs": 1} | options)


@pytest.mark.parametrize("seed", [-1, [1], [1, 2, 3], [1, "x"]])
def test_seeds_that_cannot_be_used_are_refused(seed):
    with pytest.raises(InputError):
        SafetyVectorEnv("SafetyPointGoal1-v0", 2).reset(seed=seed)


def test_reset_comes_first_and_closing_twice_is_fine():
    env = SafetyVectorEnv("SafetyPointGoal1-v0", 2)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros((2, 2)))
    env.reset(seed=0)
    env.close()
    env.close()
    with pytest.raises(gymnasium.error.ClosedEnvironmentError):
        env.step(np.zeros((2, 2)))
    with pytest.raises(gymnasium.error.ClosedEnvironmentError):
        env.reset()


def test_without_autoreset_a_finished_environment_waits():
    env = SafetyVectorEnv(
        "SafetyPointGoal1-v0", 2, max_episode_steps=2, autoreset_mode=AutoresetMode.DISABLED
    )
    env.reset(seed=0)
    env.step(np.zeros((2, 2)))
    truncated = env.step(np.zeros((2, 2)))[3]
    assert truncated.all()
    with pytest.raises(gymnasium.error.ResetNeeded, match="Environment 0"):
        env.step(np.zeros((2, 2)))
    env.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(gymnasium.error.ResetNeeded, match="Environment 1"):
        env.step(np.zeros((2, 2)))
    with pytest.raises(InputError, match="reset_mask"):
        env.reset(options={"reset_mask": [1, 0]})


def test_without_copies_the_same_arrays_come_back():
    env, careful = (SafetyVectorEnv("SafetyPointGoal1-v0", 2, copy=flag) for flag in (False, True))
    for e in (env, careful):
        e.reset(seed=0)
    first, kept = env.step(np.ones((2, 2))), careful.step(np.ones((2, 2)))
    old = kept[0].copy()
    second, new = env.step(np.ones((2, 2))), careful.step(np.ones((2, 2)))
    assert first[0] is second[0]
    assert kept[0] is not new[0]
    assert np.array_equal(kept[0], old)
    assert np.array_equal(second[0], new[0])


def test_finished_episodes_are_safe_from_reused_arrays():
    env = SafetyVectorEnv("SafetyPointGoal1-v0", 2, copy=False, max_episode_steps=3)
    env.reset(seed=0)
    for _ in range(3):
        info = env.step(np.ones((2, 2)))[4]
    last = info["final_obs"].copy()
    cost = info["final_info"]["cost"].copy()
    env.step(np.ones((2, 2)))
    assert np.array_equal(info["final_obs"], last)
    assert np.array_equal(info["final_info"]["cost"], cost)


def test_registered_with_gymnasium():
    assert all(f"steingate/{name}" in gymnasium.registry for name in TASKS)
    steingate.envs.register_tasks()
    env = gymnasium.make_vec("steingate/SafetyPointGoal1-v0", num_envs=3, threads=1)
    assert isinstance(env, SafetyVectorEnv)
    assert env.spec.id == "steingate/SafetyPointGoal1-v0"
    wrapped = gymnasium.wrappers.vector.RecordEpisodeStatistics(env)
    wrapped.reset(seed=0)
    wrapped.step(env.action_space.sample())
    short = gymnasium.make_vec("steingate/SafetyPointGoal1-v0", num_envs=1, max_episode_steps=7)
    assert short.max_episode_steps == 7


def test_importing_the_package_of_tasks_is_light():
    code = (
        "import sys, steingate.envs; "
        "assert not {'mujoco', 'numba'} & set(sys.modules), 'heavy'; "
        "from steingate.envs import SafetyVectorEnv, SafetyEnv; SafetyVectorEnv('SafetyPointGoal1-v0')"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.slow
def test_a_cold_start_in_an_own_cache_folder_gives_the_same_bits(tmp_path):
    """Compiled code goes where NUMBA_CACHE_DIR says; a cold start gives the bits of a warm one."""
    code = (
        "import numpy as np; from steingate.envs import SafetyVectorEnv; "
        "e = SafetyVectorEnv('SafetyPointCircle1-v0', 1); e.reset(seed=0); "
        "print(e.step(np.ones((1, 2)))[0].tobytes().hex())"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    cold = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    env = SafetyVectorEnv("SafetyPointCircle1-v0", 1)
    env.reset(seed=0)
    assert cold.stdout.strip() == env.step(np.ones((1, 2)))[0].tobytes().hex()
    assert any(tmp_path.rglob("*.nbi"))
