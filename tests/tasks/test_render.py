"""Rendering: content of frames as numbers, frames as pixels, graphics libraries, no effect on simulations.

Where nothing can draw, tests that need a frame check the error message instead.
"""

import os
import subprocess
import sys

import mujoco
import numpy as np
import pytest

from steingate.errors import InputError
from steingate.tasks import render, scene
from steingate.tasks.catalog import TASKS
from steingate.tasks.environments import SafetyVectorEnv
from steingate.tasks.navigation_models import compile_world
from steingate.tasks.render import Renderer
from steingate.tasks.velocity import load_robot

NAVIGATION = [task for task in TASKS.values() if task.family != "velocity"]
VELOCITY = [task for task in TASKS.values() if task.family == "velocity"]
ROOT = (0.2, -0.3, 0.1)


def state_of(task, steps=3):
    env = SafetyVectorEnv(task.env_id, 2, threads=1)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(steps):
        env.step(rng.uniform(-1, 1, env.action_space.shape) * task.action_bound)
    state = env.scene(1)
    env.close()
    return state


def shapes(task, state, heading=0.0):
    return scene.shapes(task, state, np.array(ROOT), heading)


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.env_id)
def test_the_drawn_model_has_the_poses_of_the_simulated_one(task):
    state = state_of(task)
    model, robot = scene.render_model(task, 64, 64)
    data = mujoco.MjData(model)
    data.qpos[:] = scene.model_qpos(task, state)
    mujoco.mj_kinematics(model, data)
    velocity, vases = task.family == "velocity", task.count("vases")
    simulated = load_robot(task.agent) if velocity else compile_world(task, vases)
    other = mujoco.MjData(simulated)
    other.qpos[:] = data.qpos
    mujoco.mj_kinematics(simulated, other)
    assert model.nbody == simulated.nbody
    assert np.allclose(data.geom_xpos, other.geom_xpos, atol=1e-12)
    assert np.array_equal(model.geom_size[robot], simulated.geom_size[robot])
    assert model.ngeom - len(robot) == 1 + vases


@pytest.mark.parametrize("task", NAVIGATION, ids=lambda task: task.env_id)
def test_objects_are_drawn_at_their_positions(task):
    state = state_of(task)
    found = shapes(task, state)
    for group in task.objects:
        if group.kind in ("goal", "hazards"):
            radius, color = {"goal": 0.3, "hazards": 0.2}[group.kind], (*scene.KINDS[group.kind], 1.0)
            rims = [s.position[:2] for s in found if s.size[0] == radius and s.rgba == color]
            assert np.array_equal(rims, np.reshape(state[group.kind], (-1, 2)))
            assert len(rims) == group.count
        elif group.kind == "sigwalls":
            assert sorted(s.position[:2] for s in found if s.kind == "box") == sorted(group.fixed)


@pytest.mark.parametrize("task", VELOCITY, ids=lambda task: task.env_id)
def test_the_bar_is_as_long_as_the_speed(task):
    """The observed speed is the finite difference that costs, to within one step."""
    env = SafetyVectorEnv(task.env_id, 1, threads=1)
    env.reset(seed=0)
    before = env.scene(0)
    env.step(np.full(env.action_space.shape, 0.2 * task.action_bound))
    after = env.scene(0)
    env.close()
    moved = (after["qpos"] - before["qpos"])[:2] / task.period
    expected = np.hypot(*moved) if task.agent in ("ant", "humanoid") else moved[0]
    between = sorted([scene.speed(task, before), scene.speed(task, after)])
    assert between[0] - 0.15 <= expected <= between[1] + 0.15
    bars = [s for s in shapes(task, after) if s.kind == "box" and s.size[2] == 0.010]
    assert len(bars) == 1
    ratio = abs(scene.speed(task, after)) / task.speed_limit
    assert 2 * bars[0].size[0] == pytest.approx(min(max(ratio, 0.01), 2.5))


def can_draw():
    try:
        return bool(render.find_backend())
    except InputError:
        return False


drawing = pytest.mark.skipif(not can_draw(), reason="no graphics library")


def frames(task, states, **options):
    renderer = Renderer(task, **options)
    found = [renderer.frame(state) for state in states]
    renderer.close()
    return found


def batch(task="SafetyPointGoal1-v0", num_envs=3, steps=4, **options):
    env = SafetyVectorEnv(task, num_envs, threads=1, **options)
    env.reset(seed=3)
    for _ in range(steps):
        env.step(np.zeros(env.action_space.shape))
    return env


@drawing
@pytest.mark.parametrize("task", ["SafetyPointGoal1-v0", "SafetyAntVelocity-v1"])
def test_cost_is_red(task):
    env = batch(task, num_envs=1)
    states = [{**env.scene(0), "cost": np.array(cost)} for cost in (0.0, 1.0)]
    found = frames(env.task, states, width=120, height=120, camera="track")
    red, green, blue = np.moveaxis(np.array(found).astype(int), -1, 0)
    calm, costly = ((red > 110) & (red > 2 * green) & (red > 2 * blue)).sum(axis=(1, 2))
    assert calm < 20
    assert costly > 100


@drawing
def test_every_kind_of_object_is_visible():
    """Removing an object changes pixels that have its color."""
    env = batch("SafetyPointGoal2-v0", num_envs=1)
    whole = env.scene(0)
    removed = {
        "goal": np.full((1, 2), 50.0),
        "hazards": np.full_like(whole["hazards"], 50.0),
        "vases": np.tile([50.0, 50.0, 0.1, 1, 0, 0, 0], (len(whole["vases"]), 1)),
        "obs": np.zeros_like(whole["obs"]),
    }
    states = [whole, *({**whole, key: value} for key, value in removed.items())]
    found = frames(env.task, states, width=160, height=160)
    for key, frame in zip(removed, found[1:], strict=True):
        changed = (frame != found[0]).any(axis=2)
        assert changed.sum() > 20, key
        if key in scene.KINDS:
            excess = found[0][changed].mean(axis=0) - found[0].mean(axis=(0, 1))
            assert np.argmax(excess) == np.argmax(scene.KINDS[key]), key


@drawing
@pytest.mark.parametrize("task", ["SafetyPointGoal2-v0", "SafetyAntVelocity-v1"])
def test_rendering_does_not_change_simulations(task):
    drawn, plain = batch(task, steps=0, render_mode="rgb_array", width=32, height=32), batch(task, steps=0)
    rng = np.random.default_rng(5)
    for step in range(8):
        actions = rng.uniform(-1, 1, drawn.action_space.shape) * drawn.task.action_bound
        left, right = drawn.step(actions), plain.step(actions)
        for a, b in zip(left[:4], right[:4], strict=True):
            assert np.array_equal(a, b)
        if step % 3 == 0:
            assert [frame.shape for frame in drawn.render()] == [(32, 32, 3)] * 3
    one, other = drawn.snapshot(), plain.snapshot()
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[key], other[key], equal_nan=True) for key in one)
    drawn.close()


def test_an_unknown_library_is_refused():
    """MuJoCo cannot be imported with such a variable."""
    assert not render.works("nonsense")
    command = [sys.executable, "-c", "import steingate; steingate.make_vec('SafetyPointGoal0-v0', 1)"]
    environment = {**os.environ, "MUJOCO_GL": "nonsense"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "steingate.errors.InputError: MUJOCO_GL=nonsense does not work here" in done.stderr
