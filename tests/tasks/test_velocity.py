"""Velocity tasks against a plain MuJoCo loop and the rules of the specification; streams; snapshots."""

import math

import mujoco
import numpy as np
import pytest

from steingate.tasks.catalog import TASKS
from steingate.tasks.velocity import Velocity, load_robot

VELOCITY = [task for task in TASKS.values() if task.family == "velocity"]
IDS = [task.agent for task in VELOCITY]
BY_AGENT = {task.agent: task for task in VELOCITY}


def ids(*values):
    return np.array(values, dtype=np.int32)


def started(task, seeds, threads=1):
    sim = Velocity(task, len(seeds), threads=threads)
    sim.reset(np.arange(len(seeds), dtype=np.int32), seeds)
    return sim


def actions(task, steps, count, seed=0):
    size = (steps, count, task.action_size)
    return np.random.default_rng(seed).uniform(-1.5, 1.5, size) * task.action_bound


def results(sim):
    out = sim.out
    return [a.copy() for a in (out.obs, out.reward, out.cost, out.terminated, out.parts[0], sim.batch.state)]


@pytest.mark.parametrize("task", VELOCITY, ids=IDS)
def test_sizes_match_the_table(task):
    model = load_robot(task.agent)
    assert model.nu == task.action_size
    assert model.opt.timestep == task.timestep
    limits = model.actuator_ctrlrange
    np.testing.assert_allclose(limits, [[-task.action_bound, task.action_bound]] * model.nu)
    assert started(task, [0]).out.obs.shape == (1, task.observation_size)


def test_models_load_without_warnings_and_with_their_corrections(capfd):
    cheetah, ant, walker = (load_robot(name) for name in ("half_cheetah", "ant", "walker2d"))
    streams = capfd.readouterr()
    assert (streams.out, streams.err) == ("", "")
    assert cheetah.body_mass.sum() == pytest.approx(14.0, abs=1e-12)
    assert ant.geom_margin.max() == pytest.approx(0.005)
    assert walker.geom("foot_geom").friction[0] == 0.9
    assert walker.geom("foot_left_geom").friction[0] == 1.9


def reference_observation(task, model, data):
    """Return the observation of the specification."""
    if task.agent in ("half_cheetah",):
        return np.concatenate([data.qpos[1:], data.qvel])
    if task.agent in ("hopper", "walker2d"):
        return np.concatenate([data.qpos[1:], np.clip(data.qvel, -10, 10)])
    if task.agent in ("ant", "swimmer"):
        return np.concatenate([data.qpos[2:], data.qvel])
    inner = (data.cinert, data.cvel, data.qfrc_actuator, data.cfrc_ext)
    return np.concatenate([data.qpos[2:], data.qvel, *(field.ravel() for field in inner)])


def reference_position(task, model, data):
    if task.agent == "ant":
        return data.body("torso").xpos[:2].copy()
    if task.agent == "humanoid":
        return (model.body_mass[:, None] * data.xipos).sum(axis=0)[:2] / model.body_mass.sum()
    return np.array([data.qpos[0], 0.0])


def reference_reward(task, speed, action):
    effort = np.sum(action**2)
    return {
        "half_cheetah": speed[0] - 0.1 * effort,
        "ant": speed[0] + 1.0 - 0.5 * effort,
        "humanoid": 1.25 * speed[0] + 5.0 - 0.1 * effort,
        "swimmer": speed[0] - 1e-4 * effort,
        "hopper": speed[0] + 1.0 - 1e-3 * effort,
        "walker2d": speed[0] + 1.0 - 1e-3 * effort,
    }[task.agent]


@pytest.mark.parametrize("task", VELOCITY, ids=IDS)
def test_a_plain_mujoco_loop_gives_the_same(task):
    sim = started(task, [4, 5])
    model = load_robot(task.agent)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = sim.qpos[1], sim.qvel[1]
    mujoco.mj_forward(model, data)
    np.testing.assert_array_equal(sim.out.obs[1], reference_observation(task, model, data))
    place = reference_position(task, model, data)
    for action in actions(task, 12, 2):
        sim.step(action)
        data.ctrl[:] = action[1]
        mujoco.mj_step(model, data, nstep=task.substeps)
        mujoco.mj_rnePostConstraint(model, data)
        before, place = place, reference_position(task, model, data)
        speed = (place - before) / (task.timestep * task.substeps)
        planar = task.agent in ("ant", "humanoid")
        cost = float((math.hypot(*speed) if planar else speed[0]) > task.speed_limit)
        np.testing.assert_array_equal(sim.out.obs[1], reference_observation(task, model, data))
        assert sim.out.reward[1] == pytest.approx(reference_reward(task, speed, action[1]), abs=1e-9)
        assert sim.out.cost[1] == sim.out.parts[0, 1] == cost


def test_positions_of_bodies_lag_behind_the_state():
    sim = started(BY_AGENT["ant"], [1])
    for action in actions(BY_AGENT["ant"], 5, 1):
        sim.step(action)
    lag = np.abs(sim.position[0] - sim.qpos[0, :2]).max()
    assert 1e-6 < lag < 0.05


def evaluated(agent, qpos=None, qvel=None, speed=(0.0, 0.0)):
    """Return the outputs of a robot in a state that was reached at a given speed."""
    task = BY_AGENT[agent]
    sim = started(task, [0])
    sim.qpos[:] = sim.model.qpos0
    sim.qvel[:] = 0.0
    for entry, value in (qpos or {}).items():
        sim.qpos[0, entry] = value
    for entry, value in (qvel or {}).items():
        sim.qvel[0, entry] = value
    moved = np.array([speed]) * task.period
    sim.evaluate(np.zeros((1, 2)), moved, np.zeros((1, task.action_size)))
    return sim.out


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
    assert not any(evaluated(agent, {entry: value}).terminated[0] for value in healthy)
    assert all(evaluated(agent, {entry: value}).terminated[0] for value in unhealthy)


def test_velocities_that_end_episodes_and_clipping():
    assert evaluated("hopper", qvel={0: 100.0}).terminated[0]
    assert not evaluated("hopper", qvel={0: 99.0}).terminated[0]
    assert not evaluated("walker2d", qvel={3: 1e6}).terminated[0]
    assert evaluated("ant", qvel={3: math.inf}).terminated[0]
    assert evaluated("ant", qpos={0: math.nan}).terminated[0]
    assert not evaluated("ant", qvel={3: 1e9}).terminated[0]
    assert evaluated("hopper", qvel={5: -50.0}).obs[0, -1] == -10.0
    assert evaluated("half_cheetah", qvel={5: -50.0}).obs[0, 13] == -50.0


@pytest.mark.parametrize("task", VELOCITY, ids=IDS)
def test_cost_begins_above_the_limit(task):
    limit = task.speed_limit
    assert evaluated(task.agent, speed=(limit * 1.000001, 0.0)).cost[0] == 1.0
    assert evaluated(task.agent, speed=(limit * 0.999999, 0.0)).cost[0] == 0.0
    planar = 1.0 if task.agent in ("ant", "humanoid") else 0.0
    assert evaluated(task.agent, speed=(-2 * limit, 0.0)).cost[0] == planar
    assert evaluated(task.agent, speed=(0.0, 2 * limit)).cost[0] == planar


def test_mujoco_clips_actions_but_the_reward_does_not():
    task = BY_AGENT["half_cheetah"]
    inside, outside = started(task, [7]), started(task, [7])
    inside.step(np.full((1, 6), 1.0))
    outside.step(np.full((1, 6), 3.0))
    np.testing.assert_array_equal(inside.qpos, outside.qpos)
    np.testing.assert_array_equal(inside.out.obs, outside.out.obs)
    assert inside.out.reward[0] - outside.out.reward[0] == pytest.approx(0.1 * 6 * (9 - 1))


@pytest.mark.parametrize("task", VELOCITY, ids=IDS)
def test_results_do_not_depend_on_neighbors_and_threads(task):
    many, threaded = started(task, [3, 4, 5], threads=1), started(task, [3, 4, 5], threads=3)
    alone = started(task, [4])
    for action in actions(task, 8, 3):
        for sim in (many, threaded):
            sim.step(action)
        alone.step(action[[1]])
        ours, theirs, single = results(many), results(threaded), results(alone)
        for a, b, c in zip(ours, theirs, single, strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(c[0], a[1])


@pytest.mark.parametrize("task", VELOCITY, ids=IDS)
def test_a_partial_reset_leaves_the_others_unchanged(task):
    sim = started(task, [3, 4, 5])
    for action in actions(task, 3, 3):
        sim.step(action)
    before = [a.copy() for a in (sim.out.obs, sim.batch.state, sim.position)]
    sim.reset(ids(0, 2), [None, 11])
    for now, then in zip((sim.out.obs, sim.batch.state, sim.position), before, strict=True):
        np.testing.assert_array_equal(now[1], then[1])
        assert not np.array_equal(now[0], then[0])
    fresh = started(task, [11])
    np.testing.assert_array_equal(sim.out.obs[2], fresh.out.obs[0])
    np.testing.assert_array_equal(sim.position[2], fresh.position[0])


def test_without_a_seed_the_generator_continues():
    task = BY_AGENT["swimmer"]
    sim = started(task, [8])
    first = sim.out.obs.copy()
    sim.reset(ids(0), [None])
    rng = np.random.default_rng(8)
    expected = [np.concatenate([rng.uniform(-0.1, 0.1, 5)[2:], rng.uniform(-0.1, 0.1, 5)]) for _ in range(2)]
    np.testing.assert_array_equal([first[0], sim.out.obs[0]], expected)


@pytest.mark.parametrize("task", VELOCITY, ids=IDS)
def test_after_a_restored_snapshot_every_bit_is_repeated(task):
    sim = started(task, [3, 4])
    plan = actions(task, 12, 2)
    for action in plan[:4]:
        sim.step(action)
    saved = sim.snapshot()
    assert all(np.issubdtype(array.dtype, np.number) and len(array) == 2 for array in saved.values())

    def continued(which):
        trace = []
        for action in plan[4:8]:
            which.step(action)
            trace += results(which)
        which.reset(ids(1), [None])  # the generators are part of the state
        for action in plan[8:]:
            which.step(action)
            trace += results(which)
        return trace

    first = continued(sim)
    sim.restore(saved)
    again = continued(sim)
    other = started(task, [90, 91])
    other.restore(saved)
    elsewhere = continued(other)
    for a, b, c in zip(first, again, elsewhere, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)
