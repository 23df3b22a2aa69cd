"""The Car as numbers, read from a compiled model; models that these numbers do not describe are refused."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

from steingate.errors import InputError

BOXES = 5  # of the chassis
MOST_STEPS = 50  # of the contact solver

# Everything the motion needs. Lengths and inertias are in the chassis frame, places relative to the center of
# mass; symmetric matrices are (xx, yy, zz, xy, xz, yz).
CAR = np.dtype(
    [
        ("h", "f8"),  # time step
        ("gravity", "f8"),
        ("mass", "f8"),
        ("inertia", "f8", 6),  # about the center of mass, without the rotors' own spins
        ("wheel", "f8"),  # inertia of a wheel about its axis
        ("ball", "f8"),
        ("damping", "f8"),  # of wheels and ball in their joints
        ("damped", "f8", 6),  # inverse inertia of the chassis that drags its damped rotors along
        ("torque", "f8"),  # limit of each motor
        ("com", "f8", 3),  # from the origin
        ("left", "f8", 3),
        ("right", "f8", 3),
        ("rear", "f8", 3),
        ("wheel_radius", "f8"),
        ("wheel_half", "f8"),
        ("ball_radius", "f8"),
        ("boxes", "f8", (BOXES, 6)),  # center from the origin, half sizes
        ("out", "f8"),  # how far they reach from the origin along horizontal axes, and upwards
        ("top", "f8"),
        ("friction", "f8", 3),  # of tangents, spin, rolls
        ("b", "f8"),  # damping and stiffness of the contacts' reference
        ("k", "f8"),
        ("impedance", "f8", 4),  # at depth 0, beyond the width; width; middle
        ("wheel_weight", "f8"),  # an edge's regularization is this times (1 - impedance) / impedance
        ("ball_weight", "f8"),
        ("most_steps", "i8"),
    ]
)

_SIX = ((0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2))
_ROTORS = ("left", "right", "rear")


def read_car(model: mujoco.MjModel) -> npt.NDArray[Any]:
    """Return the Car's numbers as an array with one record of type ``CAR``.

    Parameters
    ----------
    model : mujoco.MjModel
        A world whose first moving bodies are the Car's.
    """
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    car = np.zeros(1, CAR)
    car["h"], car["gravity"], car["most_steps"] = model.opt.timestep, -model.opt.gravity[2], MOST_STEPS
    _read_masses(model, data, car)
    _read_shape(model, data, car)
    _read_contacts(model, car)
    return car


def _demand(holds: Any, what: str) -> None:
    if not holds:
        raise InputError(
            f"This is not the Car whose motion is known in closed form ({what}): use physics='mujoco'."
        )


def _read_masses(model: mujoco.MjModel, data: mujoco.MjData, car: npt.NDArray[Any]) -> None:
    """Read what moves and what drives it; ``data`` is at the reference pose."""
    opt, h = model.opt, model.opt.timestep
    _demand(opt.integrator == mujoco.mjtIntegrator.mjINT_EULER, "another integrator")
    _demand(not opt.gravity[:2].any(), "gravity that is not vertical")
    _demand(not (opt.density or opt.viscosity or opt.wind.any()), "air")
    _demand(not (opt.disableflags & _STAGES or opt.enableflags), "flags of the engine")
    kinds = [int(kind) for kind in model.jnt_type[:4]]
    joint = mujoco.mjtJoint
    _demand(kinds == [joint.mjJNT_FREE, joint.mjJNT_HINGE, joint.mjJNT_HINGE, joint.mjJNT_BALL], "joints")
    _demand((model.jnt_axis[1:3] == [1.0, 0.0, 0.0]).all(), "axes of the wheels")
    passive = (model.jnt_stiffness[:4], model.dof_frictionloss[:11], model.jnt_limited[:4])
    _demand(not any(np.any(values) for values in passive), "springs, dry friction or limits in its joints")
    # The mass matrix in absolute spins, with the chassis' motion taken at its origin.
    absolute = np.eye(11)
    absolute[6:8, 3] = -1.0
    absolute[8:, 3:6] = -np.eye(3)
    full = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, full)
    m = absolute.T @ full[:11, :11] @ absolute
    mass, wheel, ball, damping = m[0, 0], m[6, 6], m[8, 8], model.dof_damping[6]
    com = np.array([m[1, 5], m[2, 3], m[0, 4]]) / mass
    arm = np.array([[0.0, -com[2], com[1]], [com[2], 0.0, -com[0]], [-com[1], com[0], 0.0]])
    inertia = m[3:6, 3:6] + mass * arm @ arm
    expected = np.zeros((11, 11))
    expected[:3, :3], expected[:3, 3:6], expected[3:6, :3] = mass * np.eye(3), -mass * arm, mass * arm
    expected[3:6, 3:6] = m[3:6, 3:6]
    expected[range(6, 11), range(6, 11)] = wheel, wheel, ball, ball, ball
    _demand(np.allclose(m, expected, rtol=0.0, atol=1e-12 * mass), "masses")
    _demand(not model.dof_damping[:6].any() and not np.ptp(model.dof_damping[6:11]), "damping")
    drag_wheel, drag_ball = (h * damping * part / (part + h * damping) for part in (wheel, ball))
    dragged = inertia + np.diag([2.0 * drag_wheel, 0.0, 0.0]) + drag_ball * np.eye(3)
    car["mass"], car["wheel"], car["ball"], car["damping"], car["com"] = mass, wheel, ball, damping, com
    car["inertia"], car["damped"] = inertia[_SIX], np.linalg.inv(dragged)[_SIX]
    gear = np.array([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]] * 2)
    motors = (
        model.nu == 2
        and (model.actuator_trnid[:, 0] == [1, 2]).all()
        and (model.actuator_gear == gear).all()
        and (model.actuator_gainprm[:, 0] == 1.0).all()
        and not model.actuator_biasprm.any()
        and model.actuator_forcelimited.all()
        and np.ptp(np.abs(model.actuator_forcerange)) == 0.0
    )
    _demand(motors, "motors")
    car["torque"] = model.actuator_forcerange[0, 1]


_STAGES = int(
    mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    | mujoco.mjtDisableBit.mjDSBL_CONTACT
    | mujoco.mjtDisableBit.mjDSBL_GRAVITY
    | mujoco.mjtDisableBit.mjDSBL_ACTUATION
    | mujoco.mjtDisableBit.mjDSBL_EULERDAMP
    | mujoco.mjtDisableBit.mjDSBL_DAMPER
    | mujoco.mjtDisableBit.mjDSBL_REFSAFE
)


def _read_shape(model: mujoco.MjModel, data: mujoco.MjData, car: npt.NDArray[Any]) -> None:
    """Read where everything is; ``data`` is at the reference pose, without rotation."""
    floor, left, right, rear = (model.geom(name).id for name in ("floor", *_ROTORS))
    shape = mujoco.mjtGeom
    _demand(model.geom_type[floor] == shape.mjGEOM_PLANE and not model.geom_pos[floor].any(), "the floor")
    _demand((data.geom_xmat[floor].reshape(3, 3) == np.eye(3)).all(), "a sloping floor")
    _demand((model.geom_type[[left, right]] == shape.mjGEOM_CYLINDER).all(), "wheels")
    _demand((model.geom_size[left] == model.geom_size[right]).all(), "unequal wheels")
    _demand(model.geom_type[rear] == shape.mjGEOM_SPHERE, "the ball")
    across = np.abs(data.geom_xmat[[left, right], 2::3])
    _demand(np.allclose(across, [1.0, 0.0, 0.0], rtol=0.0, atol=1e-15), "tilted wheels")
    origin = data.qpos[:3]
    for name, geom in zip(_ROTORS, (left, right, rear), strict=True):
        body = model.geom_bodyid[geom]
        _demand(model.body_parentid[body] == 1 and model.body_geomnum[body] == 1, "bodies")
        car[name] = data.geom_xpos[geom] - origin - car["com"]
        anchor = data.xanchor[model.body_jntadr[body]] - data.geom_xpos[geom]
        _demand(not anchor[1:].any() and (name != "rear" or not anchor.any()), "axles off center")
    chassis = np.flatnonzero(model.geom_bodyid == 1)
    _demand(len(chassis) == BOXES and (model.geom_type[chassis] == shape.mjGEOM_BOX).all(), "the chassis")
    _demand((model.geom_quat[chassis] == [1.0, 0.0, 0.0, 0.0]).all(), "turned boxes")
    car["boxes"] = np.hstack([model.geom_pos[chassis], model.geom_size[chassis]])
    reach = np.abs(model.geom_pos[chassis]) + model.geom_size[chassis]
    car["out"], car["top"] = reach[:, :2].max(), reach[:, 2].max()
    car["wheel_radius"], car["wheel_half"] = model.geom_size[left, :2]
    car["ball_radius"] = model.geom_size[rear, 0]


def _read_contacts(model: mujoco.MjModel, car: npt.NDArray[Any]) -> None:
    """Read how wheels and ball meet the floor, from contacts the engine makes itself."""
    _demand(model.opt.cone == mujoco.mjtCone.mjCONE_PYRAMIDAL and model.opt.impratio == 1.0, "cones")
    data = mujoco.MjData(model)
    data.qpos[2] = -(car["com"][0, 2] + car["rear"][0, 2]) + car["ball_radius"][0] - 1e-4
    mujoco.mj_forward(model, data)
    rotors = {model.geom(name).id for name in _ROTORS}
    found = [contact for contact in data.contact if set(contact.geom) & rotors]
    _demand(
        sorted(c.geom[1] for c in found) == sorted([*rotors, *(rotors - {model.geom("rear").id})]), "contacts"
    )
    friction, ref, imp = found[0].friction.copy(), found[0].solref.copy(), found[0].solimp.copy()
    same = all(
        c.dim == 6 and c.includemargin == 0.0 and c.geom[0] == model.geom("floor").id
        and (c.friction == friction).all() and (c.solref == ref).all() and (c.solimp == imp).all()
        for c in found
    )  # fmt: skip
    _demand(same, "unequal contacts")
    _demand(friction[0] == friction[1] and friction[3] == friction[4], "friction that depends on direction")
    _demand(
        ref[0] > 0.0 and imp[4] == 2.0 and (imp[:2] < 0.9999).all() and (imp[:2] > 1e-4).all(),
        "solref or solimp",
    )
    _demand(0.0 < imp[3] < 1.0 and imp[2] > 1e-10, "solimp")
    time = max(ref[0], 2.0 * model.opt.timestep)
    car["b"], car["k"] = 2.0 / (imp[1] * time), 1.0 / (imp[1] * time * ref[1]) ** 2
    car["impedance"], car["friction"] = imp[:4], friction[[0, 2, 3]]
    slip = friction[0] ** 2
    weight = 2.0 * slip * (1.0 + slip) * (model.body_invweight0[:, 0] + model.body_invweight0[0, 0])
    left, right, rear = (weight[model.geom_bodyid[model.geom(name).id]] for name in _ROTORS)
    _demand(left == right, "unequal wheels")
    car["wheel_weight"], car["ball_weight"] = left, rear
