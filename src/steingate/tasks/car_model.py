"""Parameters of the Car for ``car.advance``, read from the MuJoCo model and compared with MuJoCo."""

from __future__ import annotations

import copy
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

from steingate.errors import InputError
from steingate.tasks.car import BOXES, advance
from steingate.tasks.car_contacts import SIZE

MAX_NEWTON_STEPS = 50

# Lengths and inertias are in the chassis frame, positions relative to the center of mass. Symmetric matrices are
# (xx, yy, zz, xy, xz, yz).
CAR = np.dtype(
    [
        ("h", "f8"),  # time step
        ("gravity", "f8"),
        ("mass", "f8"),
        ("inertia", "f8", 6),  # about the center of mass, without the spins of the rotors
        ("wheel", "f8"),  # inertia of a wheel about its axis
        ("ball", "f8"),
        ("damping", "f8"),  # of the joints of wheels and ball
        ("damped", "f8", 6),  # inverse of the chassis' inertia with implicitly damped rotors
        ("torque", "f8"),  # limit of each motor
        ("com", "f8", 3),  # from the origin
        ("left", "f8", 3),
        ("right", "f8", 3),
        ("rear", "f8", 3),
        ("wheel_radius", "f8"),
        ("wheel_half", "f8"),
        ("ball_radius", "f8"),
        ("boxes", "f8", (BOXES, 6)),  # center from the origin, half sizes
        ("out", "f8"),  # extent of the boxes from the origin along horizontal axes, and upwards
        ("top", "f8"),
        ("friction", "f8", 3),  # of tangents, spin, rolls
        ("b", "f8"),  # damping and stiffness of the contacts' reference acceleration
        ("k", "f8"),
        ("impedance", "f8", 4),  # at depth 0, beyond the width; width; midpoint
        ("wheel_weight", "f8"),  # an edge's regularization is this times (1 - impedance) / impedance
        ("ball_weight", "f8"),
        ("max_steps", "i8"),
    ]
)

_SIX = ((0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2))
_COMPARED_STATES = 12
_TOLERANCE = 1e-8


def car_parameters(model: mujoco.MjModel) -> npt.NDArray[Any]:
    """Return the parameters of the Car as one record of type ``CAR``; ``model`` has no other bodies.

    InputError if steps of ``car.advance`` with them differ from MuJoCo's, for example because of a feature of the
    model that they do not describe.
    """
    car = read_car(model)
    exact = copy.copy(model)
    exact.opt.tolerance, exact.opt.iterations = 0.0, 20  # twice what it ever needs
    data, rng = mujoco.MjData(exact), np.random.default_rng(0)
    q, v, acc, edges = np.zeros(13), np.zeros(11), np.zeros(3), np.zeros(5, np.int64)
    no_vases = np.zeros((0, 7)), np.zeros((0, 7)), np.zeros(0, bool), 0, 0.0
    equal = []
    for _ in range(_COMPARED_STATES):
        mujoco.mj_resetData(exact, data)
        data.qpos[3:7] = [1.0, *rng.normal(size=3) * [0.05, 0.05, 2.0]]
        data.qpos[2] += 1e-4 * rng.normal()
        data.qvel[:] = rng.normal(size=11) * [1, 1, 0.1, 0.2, 0.2, 1, 9, 9, 5, 5, 5]
        data.ctrl[:] = rng.uniform(-1, 1, 2) * 2.0 * car["torque"][0]
        mujoco.mj_normalizeQuat(exact, data.qpos)
        q[:], v[:], edges[:] = data.qpos, data.qvel, 0
        done = advance(car, q, v, edges, *data.ctrl, 10, *no_vases, acc, np.zeros(SIZE))
        mujoco.mj_step(exact, data, 10)
        mujoco.mj_forward(exact, data)
        pairs = ((q, data.qpos), (v, data.qvel), (acc, data.qacc[:3]))
        if done > 0:
            equal.append(all(np.allclose(a, b, rtol=_TOLERANCE, atol=_TOLERANCE) for a, b in pairs))
    if len(equal) < _COMPARED_STATES // 2 or not all(equal):
        raise InputError("The closed-form motion of this Car is not MuJoCo's: use physics='mujoco'.")
    return car


def read_car(model: mujoco.MjModel) -> npt.NDArray[Any]:
    """Return the parameters of the Car, whose bodies are the first moving bodies of a model."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    car = np.zeros(1, CAR)
    # The mass matrix in absolute spins, with the chassis' motion taken at its origin.
    absolute = np.eye(11)
    absolute[6:8, 3] = -1.0
    absolute[8:, 3:6] = -np.eye(3)
    full = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, full)
    m = absolute.T @ full[:11, :11] @ absolute
    h, mass, wheel, ball, damping = model.opt.timestep, m[0, 0], m[6, 6], m[8, 8], model.dof_damping[6]
    com = np.array([m[1, 5], m[2, 3], m[0, 4]]) / mass
    arm = np.array([[0.0, -com[2], com[1]], [com[2], 0.0, -com[0]], [-com[1], com[0], 0.0]])
    inertia = m[3:6, 3:6] + mass * arm @ arm
    drag_wheel, drag_ball = (h * damping * part / (part + h * damping) for part in (wheel, ball))
    dragged = inertia + np.diag([2.0 * drag_wheel, 0.0, 0.0]) + drag_ball * np.eye(3)
    car["h"], car["gravity"], car["max_steps"] = h, -model.opt.gravity[2], MAX_NEWTON_STEPS
    car["mass"], car["wheel"], car["ball"], car["damping"], car["com"] = mass, wheel, ball, damping, com
    car["inertia"], car["damped"] = inertia[_SIX], np.linalg.inv(dragged)[_SIX]
    car["torque"] = model.actuator_forcerange[0, 1]

    for name in ("left", "right", "rear"):
        car[name] = data.geom(name).xpos - data.qpos[:3] - com
    chassis = np.flatnonzero(model.geom_bodyid == 1)
    car["boxes"] = np.hstack([model.geom_pos[chassis], model.geom_size[chassis]])
    reach = np.abs(model.geom_pos[chassis]) + model.geom_size[chassis]
    car["out"], car["top"] = reach[:, :2].max(), reach[:, 2].max()
    car["wheel_radius"], car["wheel_half"] = model.geom("left").size[:2]
    car["ball_radius"] = model.geom("rear").size[0]

    # Contacts have the parameters of one that MuJoCo makes between ball and floor.
    data.qpos[2] = -(car["com"][0, 2] + car["rear"][0, 2]) + car["ball_radius"][0] - 1e-4
    mujoco.mj_forward(model, data)
    contact = next(contact for contact in data.contact if model.geom("rear").id in contact.geom)
    friction, ref, imp = contact.friction, contact.solref, contact.solimp
    time = max(ref[0], 2.0 * h)
    car["b"], car["k"] = 2.0 / (imp[1] * time), 1.0 / (imp[1] * time * ref[1]) ** 2
    car["impedance"], car["friction"] = imp[:4], friction[[0, 2, 3]]
    slip = friction[0] ** 2
    weight = 2.0 * slip * (1.0 + slip) * (model.body_invweight0[:, 0] + model.body_invweight0[0, 0])
    car["wheel_weight"], car["ball_weight"] = weight[model.body("left").id], weight[model.body("rear").id]
    return car
