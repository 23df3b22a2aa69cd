import numpy as np
import pytest

from steingate.envs import contact_plan, point
from steingate.envs.catalog import find_task
from steingate.envs.contact_plan import FRESH, MOVING, STILL
from steingate.envs.navigation import Navigation

GOAL2 = find_task("SafetyPointGoal2-v0")


def vase(x, y, quaternion=(1.0, 0.0, 0.0, 0.0)):
    return np.array([x, y, 0.1, *np.asarray(quaternion) / np.linalg.norm(quaternion)])


def test_gap_never_exceeds_the_distance_to_any_point_of_the_vase():
    rng = np.random.default_rng(0)
    corners = 0.1 * np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
    inner = rng.uniform(-0.1, 0.1, (400, 3))
    for k in range(300):
        turn = rng.normal(size=4) if k % 2 else [1, 1e-4 * rng.normal(), 1e-4 * rng.normal(), rng.normal()]
        box = vase(*rng.uniform(-1, 1, 2), turn)
        w, u = box[3], box[4:]
        points = np.vstack([corners, inner])
        turned = points + 2 * np.cross(u, np.cross(u, points) + w * points)
        agent = rng.uniform(-1, 1, 2)
        nearest = np.linalg.norm(turned[:, :2] + box[:2] - agent, axis=1).min()
        assert contact_plan.gap(*agent, box) <= nearest


def chosen(agent, speed, vases, status=None, vase_v=None):
    """Return which vases take part in a step of a Point."""
    n = len(vases)
    active = np.zeros(n, bool)
    count = contact_plan.choose(
        np.array([*agent, 0.0]),
        np.array([speed, 0.0, 0.0]),
        np.array(vases),
        np.zeros((n, 6)) if vase_v is None else vase_v,
        np.full(n, STILL) if status is None else np.array(status),
        point.REACH,
        point.SPEED_GAIN,
        0.02,
        active,
    )
    assert count == active.sum()
    return active.tolist()


def test_only_vases_within_reach_take_part():
    row = [vase(0.27, 0.0), vase(1.0, 0.0), vase(-1.0, 0.0)]
    assert chosen((0, 0), 0.5, row) == [True, False, False]
    assert chosen((0, 0.5), 0.5, row) == [False, False, False]
    assert chosen((0.65, 0.0), 1.5, row) == [False, False, False]
    assert chosen((0.75, 0.0), 1.5, row) == [False, True, False]


def test_moving_vases_and_their_neighbours_take_part():
    row = [vase(0.0, 0.0), vase(0.34, 0.0), vase(1.0, 0.0), vase(1.36, 0.0)]
    assert chosen((9, 9), 0.0, row, [MOVING, STILL, STILL, STILL]) == [True, True, False, False]
    fast = np.zeros((4, 6))
    fast[2, 0] = 1.0
    assert chosen((9, 9), 0.0, row, [STILL, STILL, MOVING, STILL], fast) == [False, False, True, True]


def test_an_untouched_vase_enters_the_engine_on_the_settling_curve():
    nav = Navigation(GOAL2, 1)
    nav.reset(np.zeros(1, np.int32), [3])
    nav.clock[0] = 5
    nav.q[0, :2] = nav.vase_q[0, 4, :2] + [0.25, 0.0]
    nav.evaluate(np.zeros((1, 2)))
    height, fall = nav._curve[5]
    assert nav.vase_q[0, 4, 2] == height
    assert nav.vase_v[0, 4, 2] == fall
    assert nav.status[0, 4] == MOVING
    assert FRESH in nav.status


def test_calm_vases_leave_the_engine_and_lie_still():
    nav = Navigation(GOAL2, 1)
    nav.reset(np.zeros(1, np.int32), [3])
    nav.q[0, :2] = 50.0
    nav.vase_v[0, 0, 0] = 0.5
    nav.status[0, 0] = MOVING
    busy = 0
    for step in range(300):
        nav.step(np.zeros((1, 2)))
        busy = step if nav._active[0, 0] else busy
    assert 10 < busy < 200
    assert nav.status[0, 0] == STILL
    assert not nav.vase_v[0, 0].any()
    assert nav.out.cost[0] == 0.0


@pytest.mark.parametrize("name", ["SafetyPointGoal0-v0", "SafetyPointCircle1-v0"])
def test_a_point_alone_never_needs_the_engine(name):
    nav = Navigation(find_task(name), 2)
    nav.reset(np.arange(2, dtype=np.int32), [0, 1])
    nav.step(np.ones((2, 2)))
    assert not nav._engines
