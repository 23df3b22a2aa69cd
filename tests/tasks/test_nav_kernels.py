import math

import numpy as np
import pytest

from steingate.tasks import nav_kernels
from steingate.tasks.catalog import HAZARD_RADIUS, VASE_SPEED_LIMIT, WALL, find_task
from steingate.tasks.navigation import Navigation


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
