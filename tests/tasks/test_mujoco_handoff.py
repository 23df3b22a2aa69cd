"""Choice between closed-form dynamics and MuJoCo: mixed steps equal those of MuJoCo with all vases."""

import numpy as np
import pytest

from steingate.tasks import mujoco_handoff as handoff
from steingate.tasks.catalog import find_task
from steingate.tasks.mujoco_handoff import AT_REST, MOVING, SETTLING, STEP_KINDS
from steingate.tasks.navigation import Navigation

GOAL2, CAR = find_task("SafetyPointGoal2-v0"), find_task("SafetyCarGoal1-v0")
FIRST = np.zeros(1, np.int32)


def started(task, seed=0, **options):
    nav = Navigation(task, 1, **options)
    nav.reset(FIRST, [seed])
    return nav


def test_an_untouched_vase_enters_mujoco_on_the_settling_curve():
    nav = started(GOAL2, 3)
    nav.clock[0] = 5
    nav.q[0, :2] = nav.vase_q[0, 4, :2] + [0.15, 0.0]
    nav.step(np.zeros((1, 2)), substeps=0)
    height, fall = nav._curve[5 * GOAL2.substeps]
    assert (nav.vase_q[0, 4, 2], nav.vase_v[0, 4, 2]) == (height, fall)
    assert nav.status[0, 4] == MOVING
    assert SETTLING in nav.status


@pytest.mark.parametrize("name", ["SafetyPointGoal1-v0", "SafetyCarGoal1-v0"])
def test_mujoco_takes_over_at_the_substep_of_the_contact(name):
    task = find_task(name)
    pair = started(task), started(task, physics="mujoco")
    left = []
    for distance in np.linspace(0.29, 0.33, 9) if task.agent == "car" else np.linspace(0.25, 0.28, 9):
        for nav in pair:
            nav.yaw[:], nav.xy[0, 0], nav.xy[0, nav.placement.rows("vases")] = 0.0, [0.0, 0.0], [9.0, 9.0]
            nav.start(FIRST)
            for _ in range(5):
                nav.step(np.zeros((1, 2)))
            nav.vase_q[0, 0, :2] = [distance, 0.0] if task.agent == "point" else [0.0, -distance]
            nav.v[0, :2] = [1.5, 0.0] if task.agent == "point" else [0.0, -1.5]
        auto, full = pair
        before = auto.step_counts.copy()
        auto.step(np.zeros((1, 2)))
        full.step(np.zeros((1, 2)))
        groups = np.argwhere(auto._group_size)
        if len(groups):
            left.append(int(groups[0, 1]))
            assert (auto.step_counts - before)[handoff.VASE_CONTACT] == 1
            assert auto.status[0, 0] == MOVING
        else:
            assert auto.status[0, 0] == SETTLING
            assert np.abs(full.vase_v[0, 0, :2]).max() < 1e-12
        np.testing.assert_allclose(auto.q, full.q, atol=1e-9)
        np.testing.assert_allclose(auto.v, full.v, atol=1e-6)
        np.testing.assert_allclose(auto.vase_v[0, 0, :2], full.vase_v[0, 0, :2], atol=1e-7)
    assert len(set(left)) > 3
    assert len(left) < 9


def test_a_near_pass_needs_no_mujoco():
    """A Point passes a vase at a distance of two millimeters; the vase stays as it was."""
    nav = started(find_task("SafetyPointGoal1-v0"))
    nav.q[0], nav.vase_q[0, 0, :2] = [0.0, 0.0, 0.0], [0.5, 0.202]
    nav.vase_q[0, 0, 3:] = [1.0, 0.0, 0.0, 0.0]
    nav.xy[0, nav.placement.goal] = [3.0, 3.0]
    for _ in range(60):
        nav.step(np.array([[1.0, 0.0]]))
    assert nav.q[0, 0] > 0.8
    assert nav.status[0, 0] == SETTLING
    assert nav.step_counts.tolist() == [60, 0, 0, 0, 0, 0, 0, 0]


def test_calm_vases_come_to_rest():
    nav = started(GOAL2, 3)
    nav.q[0, :2] = 50.0
    nav.vase_v[0, 0, 0] = 0.5
    nav.status[0, 0] = MOVING
    busy = 0
    for step in range(300):
        nav.step(np.zeros((1, 2)))
        busy = step if nav._active[0, 0] else busy
    assert 10 < busy < 200
    assert nav.status[0, 0] == AT_REST
    assert not nav.vase_v[0, 0].any()
    assert nav.out.cost[0] == 0.0


def forced_to_mujoco(kind):
    """Return a simulation whose next step needs MuJoCo for one reason, and its twin in MuJoCo."""
    pair = started(CAR), started(CAR, physics="mujoco")
    for nav in pair:
        nav.vase_q[0, 0, :2] = 9.0, 9.0
        if kind != "ambiguous contact":
            for _ in range(20):
                nav.step(np.array([[0.01, 0.01]]))
        if kind == "moving vase":
            nav.status[0, 0], nav.vase_v[0, 0, 0] = MOVING, 0.3
        elif kind == "vase contact":
            nav.vase_q[0, 0, :2] = nav.q[0, :2] + [0.24, 0.0]
        elif kind == "chassis contact":
            nav.q[0, 2], nav.q[0, 3:7] = 0.045, [0.0, 0.0, 1.0, 0.0]
        elif kind == "wheel on side":
            nav.q[0, 2], nav.q[0, 3:7] = 0.154, [0.5**0.5, 0.0, 0.5**0.5, 0.0]
    auto, full = pair
    for field in ("q", "v", "vase_q", "vase_v"):
        getattr(auto, field)[:] = getattr(full, field)
    if kind == "not converged":
        auto._car["max_steps"] = 0
    return auto, full


@pytest.mark.parametrize("kind", STEP_KINDS)
def test_every_kind_of_step_is_counted_and_equals_mujocos_step(kind):
    auto, full = forced_to_mujoco(kind)
    if kind == "physics='mujoco'":
        auto = full
    before, edges = auto.step_counts.copy(), auto.edges.copy()
    action = np.array([[0.02, 0.015]])
    auto.step(action)
    assert (auto.step_counts - before)[STEP_KINDS.index(kind)] == 1
    assert (auto.step_counts - before).sum() == 1
    if auto is full:
        return
    full.step(action)
    if kind not in ("closed form", "vase contact"):
        assert np.array_equal(auto.edges, edges)
    np.testing.assert_allclose(auto.q, full.q, atol=1e-10)
    np.testing.assert_allclose(auto.v, full.v, atol=1e-8)
    np.testing.assert_allclose(auto.acc, full.acc, atol=1e-6)
