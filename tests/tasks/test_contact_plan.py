import numpy as np
import pytest

from steingate.tasks import contact_plan, point
from steingate.tasks.catalog import find_task
from steingate.tasks.contact_plan import FRESH, MOVING, STILL
from steingate.tasks.navigation import Navigation

GOAL2 = find_task("SafetyPointGoal2-v0")


CAR = find_task("SafetyCarGoal1-v0")


def vase(x, y, quaternion=(1.0, 0.0, 0.0, 0.0)):
    return np.array([x, y, 0.1, *np.asarray(quaternion) / np.linalg.norm(quaternion)])


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


def test_moving_vases_and_their_neighbors_take_part():
    row = [vase(0.0, 0.0), vase(0.34, 0.0), vase(1.0, 0.0), vase(1.36, 0.0)]
    assert chosen((9, 9), 0.0, row, [MOVING, STILL, STILL, STILL]) == [True, True, False, False]
    fast = np.zeros((4, 6))
    fast[2, 0] = 1.0
    assert chosen((9, 9), 0.0, row, [STILL, STILL, MOVING, STILL], fast) == [False, False, True, True]


def test_an_untouched_vase_enters_the_engine_on_the_settling_curve():
    nav = Navigation(GOAL2, 1)
    nav.reset(np.zeros(1, np.int32), [3])
    nav.clock[0] = 5
    nav.q[0, :2] = nav.vase_q[0, 4, :2] + [0.15, 0.0]
    nav.evaluate(np.zeros((1, 2)))
    height, fall = nav._curve[5 * GOAL2.substeps]
    assert nav.vase_q[0, 4, 2] == height
    assert nav.vase_v[0, 4, 2] == fall
    assert nav.status[0, 4] == MOVING
    assert FRESH in nav.status


@pytest.mark.parametrize("name", ["SafetyPointGoal1-v0", "SafetyCarGoal1-v0"])
def test_the_engine_takes_over_at_the_substep_of_the_touch(name):
    """The recursion makes the substeps before the touch, the engine the others: the engine's step."""
    spec = find_task(name)
    left = []
    for distance in np.linspace(0.29, 0.33, 9) if spec.agent == "car" else np.linspace(0.25, 0.28, 9):
        auto, full = (Navigation(spec, 1, physics=physics) for physics in ("auto", "mujoco"))
        for nav in (auto, full):
            nav.reset(np.zeros(1, np.int32), [0])
            nav.rot[:], nav.xy[0, 0], nav.xy[0, nav.law.rows("vases")] = 0.0, [0.0, 0.0], [9.0, 9.0]
            nav.start(np.zeros(1, np.int32))
            for _ in range(5):
                nav.step(np.zeros((1, 2)))
            nav.vase_q[0, 0, :2] = [distance, 0.0] if spec.agent == "point" else [0.0, -distance]
            nav.v[0, :2] = [1.5, 0.0] if spec.agent == "point" else [0.0, -1.5]
        before = auto.tally.copy()
        auto.step(np.zeros((1, 2)))
        full.step(np.zeros((1, 2)))
        groups = np.argwhere(auto._group_size)
        if len(groups):
            left.append(int(groups[0, 1]))
            assert (auto.tally - before)[contact_plan.TOUCH] == 1
            assert auto.status[0, 0] == MOVING
        else:
            assert auto.status[0, 0] == FRESH
            assert np.abs(full.vase_v[0, 0, :2]).max() < 1e-12
        np.testing.assert_allclose(auto.q, full.q, atol=1e-9)
        np.testing.assert_allclose(auto.v, full.v, atol=1e-6)
        np.testing.assert_allclose(auto.vase_v[0, 0, :2], full.vase_v[0, 0, :2], atol=1e-7)
    assert len(set(left)) > 3
    assert len(left) < 9


def test_a_near_pass_wakes_nothing():
    """A Point that drives by two millimeters away needs no engine; the vase stays as it was."""
    nav = Navigation(find_task("SafetyPointGoal1-v0"), 1)
    nav.reset(np.zeros(1, np.int32), [0])
    nav.q[0], nav.vase_q[0, 0, :2] = [0.0, 0.0, 0.0], [0.5, 0.202]
    nav.vase_q[0, 0, 3:] = [1.0, 0.0, 0.0, 0.0]
    nav.xy[0, nav.law.goal] = [3.0, 3.0]
    for _ in range(60):
        nav.step(np.array([[1.0, 0.0]]))
    assert nav.q[0, 0] > 0.8
    assert nav.status[0, 0] == FRESH
    assert nav.tally.tolist() == [60, 0, 0, 0, 0, 0, 0, 0]


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


def fall_back(name, seed=0):
    """Return a task whose next step needs the engine for one reason, and its twin in the engine."""
    pair = Navigation(CAR, 1), Navigation(CAR, 1, physics="mujoco")
    for nav in pair:
        nav.reset(np.zeros(1, np.int32), [seed])
        nav.vase_q[0, 0, :2] = 9.0, 9.0
        if name != "grazing":
            for _ in range(20):
                nav.step(np.array([[0.01, 0.01]]))
        if name == "moving vase":
            nav.status[0, 0], nav.vase_v[0, 0, 0] = MOVING, 0.3
        elif name == "touch":
            nav.vase_q[0, 0, :2] = nav.q[0, :2] + [0.24, 0.0]
        elif name == "chassis":
            nav.q[0, 2], nav.q[0, 3:7] = 0.045, [0.0, 0.0, 1.0, 0.0]
        elif name == "lying":
            nav.q[0, 2], nav.q[0, 3:7] = 0.154, [0.5**0.5, 0.0, 0.5**0.5, 0.0]
    auto, full = pair
    for field in ("q", "v", "vase_q", "vase_v"):
        getattr(auto, field)[:] = getattr(full, field)
    if name == "unsolved":
        auto._cars["most_steps"] = 0
    return auto, full


@pytest.mark.parametrize("name", contact_plan.REASONS)
def test_every_reason_for_the_engine_is_counted_and_leads_to_the_engines_step(name):
    auto, full = fall_back(name)
    if name == "forced":
        auto = full
    before, edges = auto.tally.copy(), auto.edges.copy()
    action = np.array([[0.02, 0.015]])
    auto.step(action)
    assert (auto.tally - before)[contact_plan.REASONS.index(name)] == 1
    assert (auto.tally - before).sum() == 1
    if name == "forced":
        return
    full.step(action)
    if name not in ("free", "touch"):
        assert np.array_equal(auto.edges, edges)
    np.testing.assert_allclose(auto.q, full.q, atol=1e-10)
    np.testing.assert_allclose(auto.v, full.v, atol=1e-8)
    np.testing.assert_allclose(auto.acc, full.acc, atol=1e-6)
