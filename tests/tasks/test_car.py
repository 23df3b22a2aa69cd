"""Dynamics of the Car against MuJoCo with its solver run to convergence (tolerance 0)."""

import copy
import itertools

import mujoco
import numpy as np
import pytest

from steingate.errors import InputError
from steingate.tasks import car
from steingate.tasks import car_contacts as cc
from steingate.tasks.car_model import car_parameters
from steingate.tasks.catalog import find_task
from steingate.tasks.navigation_models import compile_world

MODEL = compile_world(find_task("SafetyCarCircle1-v0"), 0)
PARAMETERS = car_parameters(MODEL)
NO_VASES = np.zeros((0, 7)), np.zeros((0, 7)), np.zeros(0, bool), 0, 0.0
BOUND = 1e-12


def exact(model):
    model = copy.copy(model)
    model.opt.tolerance, model.opt.iterations = 0.0, 25  # it never stops early, and needs at most ten
    return model


def move(q, v, action, substeps=10, edges=None, parameters=PARAMETERS):
    """Return result, state and acceleration after a closed-form step from a copy of a state."""
    q, v, acc = q.copy(), v.copy(), np.zeros(3)
    edges = np.zeros(5, np.int64) if edges is None else edges
    work = np.full(cc.SIZE, np.nan)
    done = car.advance(parameters, q, v, edges, *action, substeps, *NO_VASES, acc, work)
    return done, q, v, acc


def actions(kind, rng):
    """Yield actions without end."""
    while True:
        action, hold = rng.uniform(-1, 1, 2), rng.integers(5, 40)
        if kind == "bang-bang":
            yield from itertools.repeat(np.sign(action), rng.integers(1, 20))
        elif kind == "held":
            yield from itertools.repeat(0.03 * action, hold)
        elif kind == "small":
            yield 0.02 * action
        else:
            yield action


def thrown(data, rng):
    """Throw a Car that stands: hops, tilts and spins, most of which it survives on its wheels."""
    data.qpos[2] += rng.uniform(-0.002, 0.02)
    data.qpos[3:7] += 0.1 * rng.normal(size=4)
    data.qpos[3:7] /= np.linalg.norm(data.qpos[3:7])
    data.qvel[:] += rng.normal(size=11) * [1, 1, 0.5, 2, 2, 2, 20, 20, 20, 20, 20]


def differences(kind, count, seed=0):
    """Return the largest differences (n, 3) of qpos, qvel and acceleration, and the number of refusals."""
    model, rng = exact(MODEL), np.random.default_rng(seed)
    data, todo, edges = mujoco.MjData(model), actions(kind, rng), np.zeros(5, np.int64)
    found, refused = [], 0
    for step in range(count):
        if step % 500 == 0:
            mujoco.mj_resetData(model, data)
            mujoco.mj_step(model, data, 10)
        if kind == "thrown" and step % 10 == 0:
            mujoco.mj_resetData(model, data)
            mujoco.mj_step(model, data, 100)
            thrown(data, rng)
        action = next(todo)
        done, q, v, acc = move(data.qpos, data.qvel, action, edges=edges)
        data.ctrl[:] = action
        mujoco.mj_step(model, data, 10)
        mujoco.mj_forward(model, data)
        if done < 0:
            refused += 1
            continue
        assert done == 11
        scale = max(1.0, np.abs(data.qvel).max())
        pairs = ((q, data.qpos), (v / scale, data.qvel / scale), (acc / scale, data.qacc[:3] / scale))
        found.append([np.abs(a - b).max() for a, b in pairs])
    return np.array(found), refused


@pytest.mark.parametrize("kind", ["uniform", "held", "bang-bang", "small"])
def test_a_step_is_mujocos(kind):
    gaps, refused = differences(kind, 400)
    assert refused == 0
    assert gaps[:, :2].max() < BOUND
    assert gaps[:, 2].max() < 1e-11


def test_a_thrown_car_moves_as_in_mujoco_or_is_refused():
    gaps, refused = differences("thrown", 400)
    assert 0 < refused < 200
    assert gaps[:, :2].max() < BOUND


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["uniform", "held", "bang-bang", "small", "thrown"])
def test_ten_thousand_steps_are_mujocos(kind):
    gaps, refused = differences(kind, 10_000, seed=1)
    assert refused == 0 or kind == "thrown"
    assert len(gaps) >= 5_000
    assert gaps[:, :2].max() < BOUND


def states(count, seed=3):
    """Return states on the way of a Car driven by random actions, and the actions taken there."""
    rng, found = np.random.default_rng(seed), []
    data, todo = mujoco.MjData(MODEL), actions("uniform", rng)
    mujoco.mj_step(MODEL, data, 10)
    for _ in range(count):
        data.ctrl[:] = next(todo)
        found.append((data.qpos.copy(), data.qvel.copy(), data.ctrl.copy()))
        mujoco.mj_step(MODEL, data, 10)
    return found


def test_results_do_not_depend_on_the_edges_the_solver_starts_from():
    rng = np.random.default_rng(0)
    for q, v, action in states(60):
        runs = []
        for start in (np.zeros(5), np.full(5, 1023), *rng.integers(0, 1024, (6, 5))):
            edges = start.astype(np.int64)
            runs.append(np.concatenate([*map(np.atleast_1d, move(q, v, action, edges=edges)), edges]))
        assert all(np.array_equal(run, runs[0]) for run in runs)


def standing(height=0.0, turn=(1.0, 0.0, 0.0, 0.0)):
    data = mujoco.MjData(MODEL)
    mujoco.mj_step(MODEL, data, 200)
    data.qpos[2] += height
    data.qpos[3:7] = np.asarray(turn) / np.linalg.norm(turn)
    return data.qpos.copy(), 0.0 * data.qvel


REFUSALS = {
    "the start, exactly on the floor": (car.AMBIGUOUS_CONTACT, MODEL.qpos0, np.zeros(11)),
    "upside down": (car.CHASSIS_CONTACT, *standing(-0.04, (0.0, 0.0, 1.0, 0.0))),
    "a wheel flat on its side": (car.WHEEL_ON_SIDE, *standing(0.055, (1.0, 0.0, 1.0, 0.0))),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_states_that_are_not_described_are_refused_with_nothing_changed(name):
    reason, q, v = REFUSALS[name]
    edges = np.array([1, 2, 3, 4, 5])
    done, after_q, after_v, acc = move(q, v, (0.01, 0.01), edges=edges)
    assert done == reason
    assert np.array_equal(after_q, q)
    assert np.array_equal(after_v, v)
    assert not acc.any()
    assert edges.tolist() == [1, 2, 3, 4, 5]


def _set(field, index, value):
    return lambda model: getattr(model, field).__setitem__(index, value)


def _scale(field, index, factor):
    return lambda model: _set(field, index, getattr(model, field)[index] * factor)(model)


def _option(name, value):
    return lambda model: setattr(model.opt, name, value)


CHANGES = {
    "mass of the chassis": _scale("body_mass", 1, 1.5),
    "inertia of the ball": _scale("body_inertia", 4, [1.0, 2.0, 1.0]),
    "center of mass": _set("body_ipos", (1, 2), 0.02),
    "sliding friction": _scale("geom_friction", (slice(None), 0), 0.6),
    "roll friction": _scale("geom_friction", (slice(None), 2), 50.0),
    "solimp": _set("geom_solimp", slice(None), [0.8, 0.9, 0.003, 0.3, 2.0]),
    "gravity": _option("gravity", [0.0, 0.0, -3.0]),
    "elliptic cones": _option("cone", mujoco.mjtCone.mjCONE_ELLIPTIC),
}
FOLLOWED = {*("mass of the chassis", "center of mass", "sliding friction", "roll friction", "solimp", "gravity")}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_model_is_followed_or_refused(name):
    model = exact(MODEL)
    CHANGES[name](model)
    mujoco.mj_setConst(model, mujoco.MjData(model))
    if name not in FOLLOWED:
        with pytest.raises(InputError, match="physics='mujoco'"):
            car_parameters(model)
        return
    parameters = car_parameters(model)
    data, todo = mujoco.MjData(model), actions("uniform", np.random.default_rng(0))
    mujoco.mj_step(model, data, 10)
    worst, changed = 0.0, 0.0
    for _ in range(60):
        data.ctrl[:] = next(todo)
        done, q, v, _ = move(data.qpos, data.qvel, data.ctrl, parameters=parameters)
        usual = move(data.qpos, data.qvel, data.ctrl)
        mujoco.mj_step(model, data, 10)
        if done > 0:
            worst = max(worst, np.abs(q - data.qpos).max(), 1e-2 * np.abs(v - data.qvel).max())
            changed = max(changed, np.abs(usual[2] - data.qvel).max())
    assert worst < BOUND
    assert changed > 1e-6, "the change does nothing"
