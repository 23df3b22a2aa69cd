"""Whether an agent may touch a vase: both seen from above, with room for rounding only.

An agent is a list of parts in its own frame, rows (centre, half sizes, radius): boxes with radius 0, and
spheres. A wheel counts as the box around it, in which it can turn. From above, a box is the sum of its three
half axes; two boxes that some direction separates do not touch.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np
import numpy.typing as npt

from steingate.compiled import compiled
from steingate.envs.catalog import VASE_HALF
from steingate.envs.rigid import matrix, unit

VASE_BALL = 1.7321 * VASE_HALF  # bounding sphere
ROOM = 1e-5


def footprint(model: mujoco.MjModel) -> npt.NDArray[np.float64]:
    """Return the parts (P, 7) of the agent of a compiled navigation world.

    Parameters
    ----------
    model : mujoco.MjModel
        A world whose agent starts without rotation.
    """
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    agent = model.body("agent").id
    rows = []
    for geom in np.flatnonzero(model.body_rootid[model.geom_bodyid] == agent):
        centre, size = data.geom_xpos[geom] - data.xpos[agent], model.geom_size[geom]
        axes = np.abs(data.geom_xmat[geom].reshape(3, 3))
        kind = int(model.geom_type[geom])
        if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
            rows.append([*centre, 0.0, 0.0, 0.0, size[0]])
        elif kind == mujoco.mjtGeom.mjGEOM_CYLINDER:
            half = size[1] * axes[:, 2] + size[0] * np.sqrt(np.maximum(1.0 - axes[:, 2] ** 2, 0.0))
            rows.append([*centre, *half, 0.0])
        else:
            rows.append([*centre, *(axes @ size), 0.0])
    return np.array(rows)


@compiled(error_model="numpy")
def _square_gap(x, y, V, vase):
    """Return a lower bound of the planar distance between a point and a vase with rotation matrix V."""
    dx, dy = x - vase[0], y - vase[1]
    distance = math.sqrt(dx * dx + dy * dy) - VASE_BALL
    if abs(V[8]) > 1.0 - 1e-9:  # it stands flat on the face it started on, or upside down
        tilt = VASE_HALF * (abs(V[6]) + abs(V[7]))
        ex = max(abs(V[0] * dx + V[3] * dy) - VASE_HALF, 0.0)
        ey = max(abs(V[1] * dx + V[4] * dy) - VASE_HALF, 0.0)
        distance = max(distance, math.sqrt(ex * ex + ey * ey) - 2.0 * tilt)
    return distance


@compiled(error_model="numpy")
def _separated(dx, dy, R, part, V, ux, uy):
    """Return whether box and vase, whose centres are (dx, dy) apart, leave a gap in a direction (ux, uy)."""
    room = ROOM * (abs(ux) + abs(uy))
    for j in range(3):
        room += part[3 + j] * abs(R[j] * ux + R[3 + j] * uy)
        room += VASE_HALF * abs(V[j] * ux + V[3 + j] * uy)
    return abs(dx * ux + dy * uy) > room


@compiled(error_model="numpy")
def touches(parts, R, x, y, vase):
    """Return whether some part may touch a vase; never False when one does.

    Parameters
    ----------
    parts : (P, 7) array
        The agent.
    R : (9,) tuple
        Its rotation matrix.
    x, y : float
        Its origin.
    vase : (7,) array
        Pose of the vase.
    """
    V = matrix(unit(vase, 3))
    for part in parts:
        px = x + R[0] * part[0] + R[1] * part[1] + R[2] * part[2]
        py = y + R[3] * part[0] + R[4] * part[1] + R[5] * part[2]
        if part[6] > 0.0:
            if _square_gap(px, py, V, vase) < part[6] + ROOM:
                return True
            continue
        dx, dy = vase[0] - px, vase[1] - py
        apart = False
        for j in range(3):
            apart = apart or _separated(dx, dy, R, part, V, V[j], V[3 + j])
            apart = apart or _separated(dx, dy, R, part, V, R[j], R[3 + j])
        if not apart:
            return True
    return False


@compiled(error_model="numpy")
def touches_some(parts, R, x, y, vase_q, near, reach):
    """Return whether some part may touch one of the vases marked in ``near``.

    Parameters
    ----------
    parts, R, x, y : arrays, tuple and floats
        The agent; see ``touches``.
    vase_q : (V, 7) array
        Poses of the vases.
    near : (V,) bool array
        The vases that matter.
    reach : float
        How far parts reach from the agent's origin.
    """
    far = reach + VASE_BALL
    for j in range(vase_q.shape[0]):
        if near[j]:
            dx, dy = vase_q[j, 0] - x, vase_q[j, 1] - y
            if dx * dx + dy * dy < far * far and touches(parts, R, x, y, vase_q[j]):
                return True
    return False
