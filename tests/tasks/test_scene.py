"""What pictures show, as numbers: places, lidar beads, halo, speed bar, cameras, the drawn model."""

import mujoco
import numpy as np
import pytest

from steingate.tasks import scene
from steingate.tasks.catalog import TASKS
from steingate.tasks.looks import picture_model
from steingate.tasks.vector import SafetyVectorEnv

NAVIGATION = [task for task in TASKS.values() if task.family != "velocity"]
VELOCITY = [task for task in TASKS.values() if task.family == "velocity"]


def state_of(task, steps=3, seed=0):
    env = SafetyVectorEnv(task.env_id, 2, threads=1)
    env.reset(seed=seed)
    rng = np.random.default_rng(0)
    for _ in range(steps):
        env.step(rng.uniform(-1, 1, env.action_space.shape) * task.action_bound)
    state = env.scene(1)
    env.close()
    return state


def drawn(task, state, root=(0.2, -0.3, 0.1), heading=0.0):
    return scene.shapes(task, state, np.array(root), heading)


def beads(task, state, heading=0.0):
    return [shape for shape in drawn(task, state, heading=heading) if is_bead(shape)]


def is_bead(shape):
    return shape.kind == "sphere" and shape.size[0] <= scene.LIDAR_BEAD


def strength(shape):
    """Return the lidar value a bead shows, read back from its size."""
    return (shape.size[0] / scene.LIDAR_BEAD - 0.4) / 0.6


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.env_id)
def test_the_picture_model_stands_as_the_simulation_does(task):
    """The robot's places, computed by the simulated model itself, are those of the drawn one."""
    state = state_of(task)
    model, robot = picture_model(task, 64, 64)
    data = mujoco.MjData(model)
    data.qpos[:] = scene.pose(task, state)
    mujoco.mj_kinematics(model, data)
    if task.family == "velocity":
        from steingate.tasks.velocity_models import load_robot

        simulated = load_robot(task.agent)
    else:
        from steingate.tasks.models import compile_world

        simulated = compile_world(task, task.count("vases"))
    other = mujoco.MjData(simulated)
    other.qpos[:] = data.qpos
    mujoco.mj_kinematics(simulated, other)
    assert model.nbody == simulated.nbody
    assert np.allclose(data.geom_xpos, other.geom_xpos, atol=1e-12)
    assert np.array_equal(model.geom_size[robot], simulated.geom_size[robot])
    assert model.ngeom - len(robot) == 1 + task.count("vases")
    lidar = np.reshape(state["obs"], -1)[task.sensors :]
    assert lidar.size == scene.LIDAR_BINS * len(task.lidar) * (task.family != "velocity")


@pytest.mark.parametrize("task", NAVIGATION, ids=lambda task: task.env_id)
def test_every_place_is_drawn_where_it_is(task):
    state = state_of(task)
    shapes = drawn(task, state)
    for kind in task.objects:
        if kind.kind in ("goal", "hazards"):
            radius = {"goal": 0.3, "hazards": 0.2}[kind.kind]
            rims = [s for s in shapes if s.size[0] == radius and s.rgba == (*scene.KINDS[kind.kind], 1.0)]
            places = np.array([s.position[:2] for s in rims])
            assert np.array_equal(places, np.reshape(state[kind.kind], (-1, 2)))
            assert len(rims) == kind.count
        elif kind.kind == "sigwalls":
            walls = [s.position[:2] for s in shapes if s.kind == "box"]
            assert sorted(walls) == sorted(kind.fixed)
        elif kind.kind == "circle":
            assert [s.position[:2] for s in shapes if s.size[0] == 1.5] == [(0.0, 0.0)]


@pytest.mark.parametrize("task", NAVIGATION, ids=lambda task: task.env_id)
def test_the_brightest_bead_points_at_what_it_sees(task):
    """Each block's strongest bead lies in the direction of the nearest object of its kind, within one bin."""
    state = state_of(task)
    model, _ = picture_model(task, 64, 64)
    data = mujoco.MjData(model)
    data.qpos[:] = scene.pose(task, state)
    mujoco.mj_kinematics(model, data)
    root, axis = data.xpos[1], data.xmat[1].reshape(3, 3)[:, 0]
    shapes = scene.shapes(task, state, root, float(np.arctan2(axis[1], axis[0])))
    rings = [shape for shape in shapes if is_bead(shape)]
    assert len(rings) == 16 * len(task.lidar)
    for block, kind in enumerate(task.lidar):
        ring = rings[16 * block : 16 * (block + 1)]
        values = np.reshape(state["obs"], -1)[task.sensors + 16 * block :][:16]
        assert np.allclose([strength(shape) for shape in ring], values)
        targets = (
            np.zeros((1, 2)) if kind == "circle" else np.reshape(state[kind], (len(state[kind]), -1))[:, :2]
        )
        offsets = targets - root[:2]
        nearest = offsets[np.argmin(np.linalg.norm(offsets, axis=1))]
        best = max(ring, key=strength)
        share = np.sqrt(strength(best))
        mixed = (1 - share) * np.array(scene.PALE) + share * np.array(scene.KINDS[kind])
        assert best.rgba == pytest.approx((*mixed, 1.0), abs=1e-6)
        if np.linalg.norm(nearest) >= task.lidar_range:
            assert strength(best) == pytest.approx(0, abs=1e-12)
            continue
        bead = np.array(best.position[:2]) - root[:2]
        cosine = bead @ nearest / np.linalg.norm(bead) / np.linalg.norm(nearest)
        assert cosine > np.cos(2 * np.pi / 16)


def test_beads_follow_the_lidar_value_from_pale_to_full_color():
    task = TASKS["SafetyPointGoal1-v0"]
    state = dict(state_of(task))
    state["obs"] = np.concatenate([np.zeros(12), np.linspace(0, 1, 48)])
    shown = beads(task, state)
    assert [strength(shape) for shape in shown] == pytest.approx(np.linspace(0, 1, 48))
    assert shown[0].rgba == (*scene.PALE, 1.0)
    assert shown[-1].rgba == pytest.approx((*scene.KINDS["vases"], 1.0))


def test_the_ring_turns_with_the_robot():
    task = TASKS["SafetyPointGoal0-v0"]
    state = state_of(task)
    straight, turned = beads(task, state), beads(task, state, heading=np.pi / 2)
    for a, b in zip(straight, turned, strict=True):
        (ax, ay), (bx, by) = (
            np.subtract(a.position[:2], (0.2, -0.3)),
            np.subtract(b.position[:2], (0.2, -0.3)),
        )
        assert (bx, by) == pytest.approx((-ay, ax))


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.env_id)
def test_the_halo_appears_only_with_cost(task):
    state = dict(state_of(task))
    state["cost"] = np.array(0.0)
    calm = drawn(task, state)
    state["cost"] = np.array(1.0)
    costly = drawn(task, state)
    assert len(costly) == len(calm) + 1
    assert not any(shape.rgba[:3] == scene.RED for shape in calm)
    (halo,) = [s for s in costly if s.rgba[:3] == scene.RED and s.kind == "cylinder"]
    assert halo.position[:2] == (0.2, -0.3)


@pytest.mark.parametrize("task", VELOCITY, ids=lambda task: task.env_id)
def test_the_bar_is_as_long_as_the_speed(task):
    """The speed read from the observation is the finite difference that costs, to within one step."""
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
    bars = [s for s in drawn(task, after) if s.kind == "box" and s.size[2] == 0.010]
    assert len(bars) == 1
    ratio = abs(scene.speed(task, after)) / task.speed_limit
    assert 2 * bars[0].size[0] == pytest.approx(min(max(ratio, 0.01), 2.5))


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.env_id)
def test_cameras_follow_or_stay(task):
    near, far = np.array([0.5, 0.3, 0.1]), np.array([30.5, 8.3, 0.1])
    tracking = [scene.view(task, "track", root).target[:2] for root in (near, far)]
    assert tracking == [(0.5, 0.3), (30.5, 8.3)]
    fixed = [scene.view(task, "fixed", root) for root in (near, near + 0.2, far)]
    assert fixed[0] == fixed[1]
    if task.family == "velocity":  # the robot never leaves the picture
        assert np.abs(np.subtract(fixed[2].target[:2], far[:2])).max() <= 2.0
    else:
        assert fixed[2] == fixed[0]
