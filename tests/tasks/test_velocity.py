"""The velocity tasks: rules at their edges, a plain engine loop as second opinion, streams, snapshots."""

import math

import mujoco
import numpy as np
import pytest

from steingate.tasks.catalog import TASKS
from steingate.tasks.vector import SafetyVectorEnv
from steingate.tasks.velocity import Velocity
from steingate.tasks.velocity_models import ROBOTS, load_robot

SPECS = [task for task in TASKS.values() if task.family == "velocity"]
IDS = [task.agent for task in SPECS]
BY_AGENT = {task.agent: task for task in SPECS}


def ids(*values):
    return np.array(values, dtype=np.int32)


def started(spec, seeds, threads=1):
    task = Velocity(spec, len(seeds), threads=threads)
    task.reset(np.arange(len(seeds), dtype=np.int32), seeds)
    return task


def actions(spec, steps, count, seed=0):
    size = (steps, count, spec.action_size)
    return np.random.default_rng(seed).uniform(-1.5, 1.5, size) * spec.action_bound


def results(task):
    out = task.out
    return [a.copy() for a in (out.obs, out.reward, out.cost, out.terminated, out.parts[0], task.sims.state)]


@pytest.mark.parametrize("spec", SPECS, ids=IDS)
def test_sizes_match_the_table(spec):
    model = load_robot(spec.agent)
    assert model.nu == spec.action_size
    assert model.opt.timestep == spec.timestep
    limits = model.actuator_ctrlrange
    np.testing.assert_allclose(limits, [[-spec.action_bound, spec.action_bound]] * model.nu)
    assert started(spec, [0]).out.obs.shape == (1, spec.observation_size)


def test_models_load_without_a_word_and_with_their_corrections(capfd):
    cheetah, ant, walker = (load_robot(name) for name in ("half_cheetah", "ant", "walker2d"))
    streams = capfd.readouterr()
    assert (streams.out, streams.err) == ("", "")
    assert cheetah.body_mass.sum() == pytest.approx(14.0, abs=1e-12)
    assert ant.geom_margin.max() == pytest.approx(0.005)
    assert walker.geom("foot_geom").friction[0] == 0.9
    assert walker.geom("foot_left_geom").friction[0] == 1.9


def reference_observation(spec, model, data):
    """The observation in the words of the specification, robot by robot."""
    if spec.agent in ("half_cheetah",):
        return np.concatenate([data.qpos[1:], data.qvel])
    if spec.agent in ("hopper", "walker2d"):
        return np.concatenate([data.qpos[1:], np.clip(data.qvel, -10, 10)])
    if spec.agent in ("ant", "swimmer"):
        return np.concatenate([data.qpos[2:], data.qvel])
    inner = (data.cinert, data.cvel, data.qfrc_actuator, data.cfrc_ext)
    return np.concatenate([data.qpos[2:], data.qvel, *(field.ravel() for field in inner)])


def reference_place(spec, model, data):
    if spec.agent == "ant":
        return data.body("torso").xpos[:2].copy()
    if spec.agent == "humanoid":
        return (model.body_mass[:, None] * data.xipos).sum(axis=0)[:2] / model.body_mass.sum()
    return np.array([data.qpos[0], 0.0])


def reference_reward(spec, speed, action):
    effort = np.sum(action**2)
    return {
        "half_cheetah": speed[0] - 0.1 * effort,
        "ant": speed[0] + 1.0 - 0.5 * effort,
        "humanoid": 1.25 * speed[0] + 5.0 - 0.1 * effort,
        "swimmer": speed[0] - 1e-4 * effort,
        "hopper": speed[0] + 1.0 - 1e-3 * effort,
        "walker2d": speed[0] + 1.0 - 1e-3 * effort,
    }[spec.agent]


@pytest.mark.parametrize("spec", SPECS, ids=IDS)
def test_a_plain_engine_loop_gives_the_same(spec):
    task = started(spec, [4, 5])
    model = load_robot(spec.agent)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = task.sims.qpos[1], task.sims.qvel[1]
    mujoco.mj_forward(model, data)
    np.testing.assert_array_equal(task.out.obs[1], reference_observation(spec, model, data))
    place = reference_place(spec, model, data)
    for action in actions(spec, 12, 2):
        task.step(action)
        data.ctrl[:] = action[1]
        mujoco.mj_step(model, data, nstep=spec.substeps)
        mujoco.mj_rnePostConstraint(model, data)
        before, place = place, reference_place(spec, model, data)
        speed = (place - before) / (spec.timestep * spec.substeps)
        planar = spec.agent in ("ant", "humanoid")
        cost = float((math.hypot(*speed) if planar else speed[0]) > spec.speed_limit)
        np.testing.assert_array_equal(task.out.obs[1], reference_observation(spec, model, data))
        assert task.out.reward[1] == pytest.approx(reference_reward(spec, speed, action[1]), abs=1e-9)
        assert task.out.cost[1] == task.out.parts[0, 1] == cost


def test_positions_of_bodies_lag_behind_the_state():
    task = started(BY_AGENT["ant"], [1])
    for action in actions(BY_AGENT["ant"], 5, 1):
        task.step(action)
    lag = np.abs(task.place[0] - task.sims.qpos[0, :2]).max()
    assert 1e-6 < lag < 0.05


def judged(agent, qpos=None, qvel=None, speed=(0.0, 0.0)):
    """Outputs of a robot put into a state, having moved at a given speed."""
    spec = BY_AGENT[agent]
    task = started(spec, [0])
    task.sims.qpos[:] = task.model.qpos0
    task.sims.qvel[:] = 0.0
    for entry, value in (qpos or {}).items():
        task.sims.qpos[0, entry] = value
    for entry, value in (qvel or {}).items():
        task.sims.qvel[0, entry] = value
    moved = np.array([speed]) * spec.period
    task.judge(np.zeros((1, 2)), moved, np.zeros((1, spec.action_size)))
    return task.out


@pytest.mark.parametrize(
    ("agent", "entry", "healthy", "unhealthy"),
    [
        ("ant", 2, [0.2, 1.0, 0.5], [np.nextafter(0.2, 0), np.nextafter(1.0, 2), 0.1]),
        ("humanoid", 2, [np.nextafter(1.0, 2), np.nextafter(2.0, 1)], [1.0, 2.0]),
        ("hopper", 1, [np.nextafter(0.7, 1), 90.0], [0.7, 0.1]),
        ("hopper", 2, [np.nextafter(0.2, 0), -0.19], [0.2, -0.2]),
        ("hopper", 4, [99.0, -99.0], [100.0, -100.0]),
        ("walker2d", 1, [np.nextafter(0.8, 1), np.nextafter(2.0, 1)], [0.8, 2.0]),
        ("walker2d", 2, [np.nextafter(1.0, 0), -0.99], [1.0, -1.0]),
        ("half_cheetah", 1, [-100.0, 100.0], []),
        ("swimmer", 2, [-100.0, 100.0], []),
    ],
)
def test_health_at_its_bounds(agent, entry, healthy, unhealthy):
    assert not any(judged(agent, {entry: value}).terminated[0] for value in healthy)
    assert all(judged(agent, {entry: value}).terminated[0] for value in unhealthy)


def test_velocities_end_episodes_where_the_rules_say_so():
    assert judged("hopper", qvel={0: 100.0}).terminated[0]
    assert not judged("hopper", qvel={0: 99.0}).terminated[0]
    assert not judged("walker2d", qvel={3: 1e6}).terminated[0]
    assert judged("ant", qvel={3: math.inf}).terminated[0]
    assert judged("ant", qpos={0: math.nan}).terminated[0]
    assert not judged("ant", qvel={3: 1e9}).terminated[0]
    assert judged("hopper", qvel={5: -50.0}).obs[0, -1] == -10.0
    assert judged("half_cheetah", qvel={5: -50.0}).obs[0, 13] == -50.0


@pytest.mark.parametrize("spec", SPECS, ids=IDS)
def test_cost_begins_above_the_limit(spec):
    limit = spec.speed_limit
    assert judged(spec.agent, speed=(limit * 1.000001, 0.0)).cost[0] == 1.0
    assert judged(spec.agent, speed=(limit * 0.999999, 0.0)).cost[0] == 0.0
    planar = 1.0 if spec.agent in ("ant", "humanoid") else 0.0
    assert judged(spec.agent, speed=(-2 * limit, 0.0)).cost[0] == planar
    assert judged(spec.agent, speed=(0.0, 2 * limit)).cost[0] == planar


def test_actions_are_clamped_by_the_engine_but_paid_as_given():
    spec = BY_AGENT["half_cheetah"]
    inside, outside = started(spec, [7]), started(spec, [7])
    inside.step(np.full((1, 6), 1.0))
    outside.step(np.full((1, 6), 3.0))
    np.testing.assert_array_equal(inside.sims.qpos, outside.sims.qpos)
    np.testing.assert_array_equal(inside.out.obs, outside.out.obs)
    assert inside.out.reward[0] - outside.out.reward[0] == pytest.approx(0.1 * 6 * (9 - 1))


@pytest.mark.parametrize("spec", SPECS, ids=IDS)
def test_neighbors_and_threads_change_nothing(spec):
    many, threaded = started(spec, [3, 4, 5], threads=1), started(spec, [3, 4, 5], threads=3)
    alone = started(spec, [4])
    for action in actions(spec, 8, 3):
        for task in (many, threaded):
            task.step(action)
        alone.step(action[[1]])
        ours, theirs, single = results(many), results(threaded), results(alone)
        for a, b, c in zip(ours, theirs, single, strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(c[0], a[1])


@pytest.mark.parametrize("spec", SPECS, ids=IDS)
def test_resetting_some_leaves_the_others_alone(spec):
    task = started(spec, [3, 4, 5])
    for action in actions(spec, 3, 3):
        task.step(action)
    before = [a.copy() for a in (task.out.obs, task.sims.state, task.place)]
    task.reset(ids(0, 2), [None, 11])
    for now, then in zip((task.out.obs, task.sims.state, task.place), before, strict=True):
        np.testing.assert_array_equal(now[1], then[1])
        assert not np.array_equal(now[0], then[0])
    fresh = started(spec, [11])
    np.testing.assert_array_equal(task.out.obs[2], fresh.out.obs[0])
    np.testing.assert_array_equal(task.place[2], fresh.place[0])


def test_without_a_seed_the_generator_goes_on():
    spec = BY_AGENT["swimmer"]
    task = started(spec, [8])
    first = task.out.obs.copy()
    task.reset(ids(0), [None])
    rng = np.random.default_rng(8)
    expected = [np.concatenate([rng.uniform(-0.1, 0.1, 5)[2:], rng.uniform(-0.1, 0.1, 5)]) for _ in range(2)]
    np.testing.assert_array_equal([first[0], task.out.obs[0]], expected)


@pytest.mark.parametrize("spec", SPECS, ids=IDS)
def test_a_restored_snapshot_goes_on_bit_for_bit(spec):
    task = started(spec, [3, 4])
    plan = actions(spec, 12, 2)
    for action in plan[:4]:
        task.step(action)
    kept = task.snapshot()
    assert all(np.issubdtype(array.dtype, np.number) and len(array) == 2 for array in kept.values())

    def onwards(which):
        trace = []
        for action in plan[4:8]:
            which.step(action)
            trace += results(which)
        which.reset(ids(1), [None])  # the generators are part of the state
        for action in plan[8:]:
            which.step(action)
            trace += results(which)
        return trace

    first = onwards(task)
    task.restore(kept)
    again = onwards(task)
    other = started(spec, [90, 91])
    other.restore(kept)
    elsewhere = onwards(other)
    for a, b, c in zip(first, again, elsewhere, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


def test_fallen_robots_start_again_within_the_batched_core():
    env = SafetyVectorEnv("SafetyHopperVelocity-v1", 4, threads=1)
    env.reset(seed=0)
    finished = 0
    for action in actions(BY_AGENT["hopper"], 120, 4):
        obs, _, terminated, truncated, info = env.step(np.clip(action, -1, 1))
        assert not truncated.any()
        assert np.all(np.isin(info["cost"], (0.0, 1.0)))
        if terminated.any():
            finished += terminated.sum()
            fallen, fresh = info["final_obs"][terminated], obs[terminated]
            assert np.all((fallen[:, 0] <= 0.7) | (np.abs(fallen[:, 1]) >= 0.2))
            assert np.all(np.abs(fresh[:, 0] - 1.25) < 0.006)
    env.close()
    assert finished >= 4


def test_every_robot_has_its_row():
    assert set(ROBOTS) == set(BY_AGENT)
