"""Goal and Circle tasks: models, sensors, rewards and costs by definition; both physics; recordings."""

import math
from pathlib import Path

import mujoco
import numpy as np
import pytest

from steingate.tasks.catalog import HAZARD_RADIUS, VASE_SPEED_LIMIT, WALL, find_task
from steingate.tasks.environments import SafetyVectorEnv
from steingate.tasks.mujoco_handoff import MOVING
from steingate.tasks.navigation import Navigation
from steingate.tasks.navigation_kernels import add_lidar_target, rotation
from steingate.tasks.navigation_models import compile_world, settling_curve

RECORDINGS = Path(__file__).parents[1] / "data" / "envs"
COUNT = 12
POINT, CAR = find_task("SafetyPointGoal2-v0"), find_task("SafetyCarGoal2-v0")


def started(name, num_envs=1, **options):
    nav = Navigation(find_task(name), num_envs, **options)
    nav.reset(np.arange(num_envs, dtype=np.int32), list(range(num_envs)))
    return nav


@pytest.mark.parametrize("task", [POINT, CAR], ids=["point", "car"])
def test_settling_curve_is_the_motion_of_an_untouched_vase(task):
    model, curve = compile_world(task, 4), settling_curve(task)
    data = mujoco.MjData(model)
    data.qpos[-4:] = np.cos(0.4), 0, 0, np.sin(0.4)
    for step in range(1000):
        row = curve[min(step, len(curve) - 1)]
        assert data.qpos[-5] == pytest.approx(row[0], abs=1e-12)
        assert data.qvel[-4] == pytest.approx(row[1], abs=1e-11)
        mujoco.mj_step(model, data)
    assert np.abs(curve[:, 1]).max() < VASE_SPEED_LIMIT
    assert curve[-2, 0] == pytest.approx(curve[-1, 0], abs=1e-15)


def test_mujoco_mode_is_a_plain_loop_of_mujoco_bit_for_bit():
    nav = started("SafetyCarGoal1-v0", 3, threads=2, physics="mujoco")
    actions = np.random.default_rng(0).uniform(-1, 1, (8, 3, 2))
    model = compile_world(nav.task, 1)
    data = mujoco.MjData(model)
    data.qpos[:] = [*nav.q[1], *nav.vase_q[1, 0]]
    for action in actions:
        nav.step(action)
        data.ctrl[:] = action[1]
        mujoco.mj_step(model, data, 10)
        mujoco.mj_forward(model, data)
        assert np.array_equal([*nav.q[1], *nav.vase_q[1, 0]], data.qpos)
        assert np.array_equal(nav.acc[1], data.qacc[:3])


def matrix(quaternion):
    """Return MuJoCo's rotation matrix of a quaternion."""
    out = np.zeros(9)
    mujoco.mju_quat2Mat(out, np.asarray(quaternion) / np.linalg.norm(quaternion))
    return out.reshape(3, 3)


def lidar(targets, position, turn, reach):
    """Return the 16 bins by definition."""
    bins = np.zeros(16)
    for x, y in targets:
        e = turn.T @ (np.array([x, y, 0.0]) - position)
        angle = np.arctan2(e[1], e[0]) % (2 * np.pi)
        place = angle / (2 * np.pi / 16)
        b = int(place)
        signal = max(0.0, reach - np.hypot(e[0], e[1])) / reach
        for index, value in ((b, 1.0), (b + 1, place - b), (b - 1, 1 - (place - b))):
            bins[index % 16] = max(bins[index % 16], value * signal)
    return bins


def test_lidar_follows_its_definition_also_when_tilted():
    rng = np.random.default_rng(0)
    for _ in range(200):
        quaternion = rng.normal(size=4)
        turn = np.array(rotation(quaternion))
        np.testing.assert_allclose(turn, matrix(quaternion), atol=1e-14)
        position, targets, bins = rng.uniform(-2, 2, 3), rng.uniform(-3, 3, (5, 2)), np.zeros(16)
        for x, y in targets:
            add_lidar_target(x, y, position, turn, 3.0, bins)
        np.testing.assert_allclose(bins, lidar(targets, position, turn, 3.0), atol=1e-12)


@pytest.mark.parametrize("y", [-1e-17, -1e-300, -0.0, 0.0, 1e-17])
def test_lidar_at_angles_that_round_to_a_full_turn(y):
    bins = np.zeros(16)
    add_lidar_target(1.0, y, np.zeros(3), np.eye(3), 3.0, bins)
    assert bins[[15, 0]] == pytest.approx([2 / 3, 2 / 3])
    assert bins[1:15].max() < 1e-12


def test_lidar_at_and_beyond_its_range():
    bins = np.zeros(16)
    add_lidar_target(3.0, 0.1, np.zeros(3), np.eye(3), 3.0, bins)
    assert not bins.any()
    add_lidar_target(0.0, 0.0, np.zeros(3), np.eye(3), 3.0, bins)
    assert bins.max() == 1.0


def test_hazards_cost_inside_their_radius_only():
    nav = started("SafetyPointGoal1-v0", 3)
    nav.xy[:, nav.placement.rows("hazards")] = 9.0
    nav.xy[:, nav.placement.rows("hazards").start + 1] = 0.0
    nav.q[:, :2] = [[math.nextafter(HAZARD_RADIUS, 0), 0.0], [HAZARD_RADIUS, 0.0], [0.0, 0.1]]
    nav.step(np.zeros((3, 2)), substeps=0)
    assert nav.out.cost.tolist() == [1.0, 0.0, 1.0]


def test_vases_cost_from_the_speed_limit_on():
    nav = started("SafetyPointGoal2-v0", 3)
    nav.q[:, :2] = 9.0
    nav.status[:, 4] = MOVING
    nav.vase_v[0, 4, 3] = 1.0  # rotation alone costs nothing
    nav.vase_v[1, 4, 2], nav.vase_v[2, 4, 2] = VASE_SPEED_LIMIT, math.nextafter(VASE_SPEED_LIMIT, 0)
    nav.step(np.zeros((3, 2)), substeps=0)
    assert nav.out.parts[2].tolist() == [0.0, 1.0, 0.0]


def test_boundaries_are_strict_and_level_two_has_four():
    for level, y_costs in ((1, 0.0), (2, 1.0)):
        nav = started(f"SafetyPointCircle{level}-v0", 4)
        outside = math.nextafter(WALL, 2)
        nav.q[:, :2] = [[WALL, 0.1], [-outside, 0.1], [0.1, outside], [0.1, -WALL]]
        nav.v[:] = 0.0
        nav.step(np.zeros((4, 2)), substeps=0)
        assert nav.out.cost.tolist() == [0.0, 1.0, y_costs, 0.0]


def goal_task(distance, before=1.0):
    """Return one Goal0 simulation at a distance from its goal, with another distance one step before."""
    nav = started("SafetyPointGoal0-v0")
    nav.xy[0, 1], nav.q[0], nav.distance[0] = 0.0, [distance, 0.0, 0.0], before
    nav.step(np.zeros((1, 2)), substeps=0)
    return nav


def test_goal_reward_and_new_goal():
    missed, met = goal_task(math.nextafter(0.3, 1)), goal_task(0.3)
    assert missed.out.reward[0] == pytest.approx(0.7)
    assert not missed.out.goal_met[0]
    assert np.array_equal(missed.xy[0, 1], [0.0, 0.0])
    assert met.out.goal_met[0]
    assert met.out.reward[0] == pytest.approx(1.7)
    gap = np.hypot(*(met.xy[0, 1] - met.q[0, :2]))
    assert gap >= 0.4 + 0.305
    assert met.distance[0] == pytest.approx(gap)
    assert met.out.obs[0, 12:].max() == pytest.approx((3 - gap) / 3)  # the observation shows the new goal
    assert goal_task(1.0, before=100.0).out.reward[0] == 10.0


def test_a_goal_that_finds_no_place_terminates():
    nav = started("SafetyPointGoal1-v0")
    nav.placement.keepout[nav.placement.rows("hazards")] = 9.0
    nav.xy[0, nav.placement.goal] = nav.q[0, :2]
    nav.step(np.zeros((1, 2)), substeps=0)
    assert nav.out.goal_met[0]
    assert nav.out.terminated[0]


def steer(nav, rng):
    """Return actions that drive every agent at its nearest vase."""
    n = len(nav.q)
    away = nav.vase_q[:, :, :2] - nav.q[:, None, :2]
    nearest = away[np.arange(n), np.argmin((away**2).sum(2), axis=1)]
    point = nav.task.agent == "point"  # the Car's front is -y
    heading = nav.q[:, 2] if point else 2 * np.arctan2(nav.q[:, 6], nav.q[:, 3]) - np.pi / 2
    error = np.arctan2(nearest[:, 1], nearest[:, 0]) - heading
    error = (error + np.pi) % (2 * np.pi) - np.pi
    noise = rng.normal(size=(n, 2))
    if point:
        thrust = np.where(np.cos(error) > 0.5, 0.05, -0.01)
        return np.stack([thrust, error], axis=1) + noise * [0.02, 0.3]
    ahead, turn = 0.012 * np.cos(error), np.clip(0.012 * error, -0.015, 0.015)
    return np.stack([ahead + turn, ahead - turn], axis=1) + 0.006 * noise


@pytest.mark.parametrize("name", ["SafetyPointGoal1-v0", "SafetyPointGoal2-v0", "SafetyCarGoal2-v0"])
def test_both_kinds_of_physics_agree_while_agents_push_vases(name):
    auto, full = started(name, COUNT), started(name, COUNT, physics="mujoco")
    rng = np.random.default_rng(1)
    agents, vases, used, pushed = [], [], [], 0
    for _ in range(140):
        actions = steer(full, rng)
        auto.step(actions)
        full.step(actions)
        agents.append(np.abs(auto.q - full.q).max(axis=1))
        vases.append(np.abs(auto.vase_q - full.vase_q)[..., :2].max(axis=(1, 2)))
        assert np.array_equal(auto.out.parts, full.out.parts)
        np.testing.assert_allclose(auto.out.reward, full.out.reward, atol=1e-6)
        used.append(auto._active.any(axis=1))
        pushed += int((np.linalg.norm(full.vase_v[..., :3], axis=2) > 0.01).sum())
        # The Point's servo amplifies rounding errors, so both continue from the same state.
        for field in ("q", "v", "distance", "xy", "streams"):
            getattr(auto, field)[...] = getattr(full, field)
        for field in ("vase_q", "vase_v"):
            getattr(auto, field)[auto._active] = getattr(full, field)[auto._active]
    agents, vases = np.concatenate(agents), np.concatenate(vases)
    assert pushed > 100
    assert 0.02 < np.mean(used) < 0.95
    assert np.quantile(agents, 0.99) < 1e-12
    assert agents.max() < 1e-6
    assert np.quantile(vases, 0.99) < 1e-8
    assert vases.max() < 1e-5


@pytest.mark.parametrize("name", ["SafetyCarGoal1-v0", "SafetyCarCircle1-v0"])
def test_a_recorded_episode_of_the_car_is_repeated(name):
    """From seed and actions: the original's observations, rewards, costs and goals at every step."""
    with np.load(RECORDINGS / f"nav_{name}.npz") as file:
        length, seed = int(file["ep_len"][0]), int(file["seed"][0])
        obs, actions = file["row_obs"][: length + 1], file["step_action"][:length]
        reward, cost, met = (file[f"step_{key}"][:length] for key in ("reward", "cost", "goal_met"))
    env = SafetyVectorEnv(name, 1, layout_stream="reference")
    first, _ = env.reset(seed=seed)
    np.testing.assert_allclose(first[0], obs[0], atol=1e-9)
    for k in range(length):
        current, gained, _, _, info = env.step(actions[k][None])
        np.testing.assert_allclose(current[0], obs[k + 1], atol=1e-8)
        assert gained[0] == pytest.approx(reward[k], abs=1e-9)
        assert (info["cost"][0], info["goal_met"][0]) == (cost[k], met[k])
    assert cost.sum() > 0
    assert met.sum() > 0 or "Circle" in name
