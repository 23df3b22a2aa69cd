"""Velocity tasks against a plain MuJoCo loop and the rules of the specification (recordings: parity)."""

import math

import mujoco
import numpy as np
import pytest

from steingate.tasks.catalog import TASKS
from steingate.tasks.velocity import Velocity, load_robot

VELOCITY = [task for task in TASKS.values() if task.family == "velocity"]
IDS = [task.agent for task in VELOCITY]
BY_AGENT = {task.agent: task for task in VELOCITY}


def started(task, seeds):
    sim = Velocity(task, len(seeds))
    sim.reset(np.arange(len(seeds), dtype=np.int32), seeds)
    return sim


def actions(task, steps, count, seed=0):
    size = (steps, count, task.action_size)
    return np.random.default_rng(seed).uniform(-1.5, 1.5, size) * task.action_bound


def test_models_load_without_warnings_and_with_their_corrections(capfd):
    cheetah, ant, walker = (load_robot(name) for name in ("half_cheetah", "ant", "walker2d"))
    streams = capfd.readouterr()
    assert (streams.out, streams.err) == ("", "")
    assert cheetah.body_mass.sum() == pytest.approx(14.0, abs=1e-12)
    assert ant.geom_margin.max() == pytest.approx(0.005)
    assert walker.geom("foot_geom").friction[0] == 0.9
    assert walker.geom("foot_left_geom").friction[0] == 1.9


@pytest.mark.parametrize("task", VELOCITY, ids=IDS)
def test_a_plain_mujoco_loop_gives_the_same(task):
    sim = started(task, [4, 5])
    model = load_robot(task.agent)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = sim.qpos[1], sim.qvel[1]
    mujoco.mj_forward(model, data)
    for action in actions(task, 12, 2):
        sim.step(action)
        data.ctrl[:] = action[1]
        mujoco.mj_step(model, data, nstep=task.substeps)
        mujoco.mj_rnePostConstraint(model, data)
        np.testing.assert_array_equal(sim.qpos[1], data.qpos)
        np.testing.assert_array_equal(sim.qvel[1], data.qvel)
        if task.agent == "humanoid":
            inner = [field.ravel() for field in (data.cinert, data.cvel, data.qfrc_actuator, data.cfrc_ext)]
            expected = np.concatenate([data.qpos[2:], data.qvel, *inner])
            np.testing.assert_array_equal(sim.out.obs[1], expected)


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
