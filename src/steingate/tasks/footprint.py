"""Whether an agent may touch a vase: both seen from above, with room for rounding only.

An agent is a list of parts in its own frame, rows (center, half sizes, radius): boxes with radius 0, and
spheres. A wheel counts as the box around it, in which it can turn. From above, a box is the sum of its three
half axes; two boxes that some direction separates do not touch.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np
import numpy.typing as npt

from steingate.compiled import compiled
from steingate.tasks.catalog import VASE_HALF
from steingate.tasks.rigid import matrix, unit

VASE_BALL = 1.7321 * VASE_HALF  # bounding sphere
SLACK = 0.0007  # by which a vase that counts as flat may stick out
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
        center, size = data.geom_xpos[geom] - data.xpos[agent], model.geom_size[geom]
        axes = np.abs(data.geom_xmat[geom].reshape(3, 3))
        kind = int(model.geom_type[geom])
        if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
            rows.append([*center, 0.0, 0.0, 0.0, size[0]])
        elif kind == mujoco.mjtGeom.mjGEOM_CYLINDER:
            half = size[1] * axes[:, 2] + size[0] * np.sqrt(np.maximum(1.0 - axes[:, 2] ** 2, 0.0))
            rows.append([*center, *half, 0.0])
        else:
            rows.append([*center, *(axes @ size), 0.0])
    return np.array(rows)


@compiled(error_model="numpy")
def gap(x, y, vase):
    """Return a lower bound of the planar distance between a point and a vase of any attitude."""
    dx, dy = x - vase[0], y - vase[1]
    qw, qx, qy, qz = vase[3], vase[4], vase[5], vase[6]
    if 2.0 * (qx * qx + qy * qy) > 1e-5:  # tilted by more than 0.26 degrees, or lying on another face
        return math.sqrt(dx * dx + dy * dy) - VASE_BALL
    c, s = 1.0 - 2.0 * qz * qz, 2.0 * qw * qz
    ex = max(abs(c * dx + s * dy) - VASE_HALF, 0.0)
    ey = max(abs(c * dy - s * dx) - VASE_HALF, 0.0)
    return math.sqrt(ex * ex + ey * ey) - SLACK


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
            if gap(px, py, vase) < part[6]:
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
