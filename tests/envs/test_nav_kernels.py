import math

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steingate.envs import nav_kernels
from steingate.envs.catalog import HAZARD_RADIUS, VASE_SPEED_LIMIT, WALL, find_task
from steingate.envs.navigation import Navigation

unit = st.floats(-1, 1).filter(lambda x: abs(x) > 1e-3)


def lidar(targets, position, turn, reach):
    """Return the 16 bins by the definition, one target after the other, with plain NumPy."""
    bins = np.zeros(16)
    for x, y in targets:
        e = turn.T @ (np.array([x, y, 0.0]) - position)
        angle = np.arctan2(e[1], e[0]) % (2 * np.pi)
        share = angle / (2 * np.pi / 16)
        b = int(share)
        signal = max(0.0, reach - np.hypot(e[0], e[1])) / reach
        for index, value in ((b, 1.0), (b + 1, share - b), (b - 1, 1 - (share - b))):
            bins[index % 16] = max(bins[index % 16], value * signal)
    return bins


def matrix(quaternion):
    """Return the rotation matrix the engine makes of a quaternion."""
    out = np.zeros(9)
    mujoco.mju_quat2Mat(out, np.asarray(quaternion) / np.linalg.norm(quaternion))
    return out.reshape(3, 3)


@settings(deadline=None)
@given(st.tuples(unit, unit, unit, unit))
def test_rotation_is_the_engines(quaternion):
    out = np.zeros((3, 3))
    nav_kernels.rotation(np.array(quaternion), out)
    np.testing.assert_allclose(out, matrix(quaternion), atol=1e-14)


def test_lidar_follows_its_definition_also_when_tilted():
    rng = np.random.default_rng(0)
    for _ in range(200):
        turn = matrix(rng.normal(size=4))
        position = rng.uniform(-2, 2, 3)
        targets = rng.uniform(-3, 3, (5, 2))
        bins = np.zeros(16)
        for x, y in targets:
            nav_kernels.see(x, y, position, turn, 3.0, bins)
        np.testing.assert_allclose(bins, lidar(targets, position, turn, 3.0), atol=1e-12)


@pytest.mark.parametrize("y", [-1e-17, -1e-300, -0.0, 0.0, 1e-17])
def test_lidar_survives_angles_that_round_to_a_full_turn(y):
    bins = np.zeros(16)
    nav_kernels.see(1.0, y, np.zeros(3), np.eye(3), 3.0, bins)
    assert bins[[15, 0]] == pytest.approx([2 / 3, 2 / 3])
    assert bins[1:15].max() < 1e-12


def test_targets_beyond_the_range_are_invisible_and_one_underfoot_is_full():
    bins = np.zeros(16)
    nav_kernels.see(3.0, 0.1, np.zeros(3), np.eye(3), 3.0, bins)
    assert not bins.any()
    nav_kernels.see(0.0, 0.0, np.zeros(3), np.eye(3), 3.0, bins)
    assert bins.max() == 1.0


def test_hazards_cost_inside_their_radius_only():
    xy = np.array([[9.0, 9.0], [9.0, 9.0], [0.0, 0.0], [0.5, 0.0]])
    inside = lambda x: nav_kernels.inside_hazard(np.array([x, 0.0, 0.0]), xy, 2, 4)  # noqa: E731
    assert inside(math.nextafter(HAZARD_RADIUS, 0))
    assert not inside(HAZARD_RADIUS)
    assert inside(0.5)


def test_vases_cost_from_the_speed_limit_on():
    v = np.zeros((2, 6))
    v[1, 3:] = 1.0  # turning alone costs nothing
    assert not nav_kernels.some_vase_moves(v)
    v[1, 2] = VASE_SPEED_LIMIT
    assert nav_kernels.some_vase_moves(v)


def test_circle_reward_by_hand():
    q, v = np.array([0.0, 2.0, 0.3]), np.array([-0.7, 0.4, 1.0])
    assert nav_kernels.circle_reward(q, v) == pytest.approx(0.1 * 0.7 / 1.5)
    assert nav_kernels.circle_reward(q, -v) == pytest.approx(-0.1 * 0.7 / 1.5)


def test_boundaries_are_strict_and_level_two_has_four():
    for level, y_costs in ((1, 0.0), (2, 1.0)):
        nav = Navigation(find_task(f"SafetyPointCircle{level}-v0"), 4)
        nav.reset(np.arange(4, dtype=np.int32), [0, 1, 2, 3])
        outside = math.nextafter(WALL, 2)
        nav.q[:, :2] = [[WALL, 0.1], [-outside, 0.1], [0.1, outside], [0.1, -WALL]]
        nav.v[:] = 0.0
        nav.evaluate(np.zeros((4, 2)))
        assert nav.out.cost.tolist() == [0.0, 1.0, y_costs, 0.0]


def goal_task(distance):
    """Return one Goal0 simulation at a distance from its goal, which was 1 a step ago."""
    nav = Navigation(find_task("SafetyPointGoal0-v0"), 1)
    nav.reset(np.zeros(1, np.int32), [0])
    nav.xy[0, 1] = 0.0
    nav.q[0] = distance, 0.0, 0.0
    nav.last[0] = 1.0
    nav.evaluate(np.zeros((1, 2)))
    return nav


def test_goal_reward_and_redraw():
    missed, met = goal_task(math.nextafter(0.3, 1)), goal_task(0.3)
    assert missed.out.reward[0] == pytest.approx(0.7)
    assert not missed.out.goal_met[0]
    assert np.array_equal(missed.xy[0, 1], [0.0, 0.0])
    assert met.out.goal_met[0]
    assert met.out.reward[0] == pytest.approx(1.7)
    new = met.xy[0, 1]
    gap = np.hypot(*(new - met.q[0, :2]))
    assert gap >= 0.4 + 0.305
    assert met.last[0] == pytest.approx(gap)
    # the observation already shows the new goal
    assert met.out.obs[0, 12:].max() == pytest.approx((3 - gap) / 3)


def test_rewards_are_clipped_at_ten():
    nav = Navigation(find_task("SafetyPointGoal0-v0"), 1)
    nav.reset(np.zeros(1, np.int32), [0])
    nav.last[0] = 100.0
    nav.evaluate(np.zeros((1, 2)))
    assert nav.out.reward[0] == 10.0
