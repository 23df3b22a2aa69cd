"""Compiled 3-vectors and rotations, and the test whether an agent may touch a vase.

Vectors, matrices and quaternions are tuples of floats, which stay in registers. A rotation matrix R is a tuple of
nine, by rows; a symmetric matrix S is (xx, yy, zz, xy, xz, yz); a quaternion is (w, x, y, z) as in MuJoCo.
"""

from __future__ import annotations

import math
from typing import Any, Final

import mujoco
import numpy as np
import numpy.typing as npt

from steingate.compiled import compiled
from steingate.tasks.catalog import VASE_HALF

# Fused multiply-adds are chosen at compile time, so results do not depend on the number of threads.
FUSED: Final[dict[str, Any]] = {"error_model": "numpy", "fastmath": {"contract", "nsz", "arcp"}}

VASE_BALL = 1.7321 * VASE_HALF  # radius of the sphere around a vase
TILT_MARGIN = 0.0007  # by how much a vase that ``vase_gap`` takes for upright may exceed its outline
_MARGIN = 1e-5


@compiled(**FUSED)
def take3(a, at):
    """Return three entries of an array."""
    return a[at], a[at + 1], a[at + 2]


@compiled(**FUSED)
def add_scaled(a, s, b):
    """Return a + s b."""
    return a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]


@compiled(**FUSED)
def dot(a, b):
    """Return a · b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@compiled(**FUSED)
def cross(a, b):
    """Return a × b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@compiled(**FUSED)
def rotate(R, a):
    """Return R a."""
    return dot(R[0:3], a), dot(R[3:6], a), dot(R[6:9], a)


@compiled(**FUSED)
def rotate_back(R, a):
    """Return Rᵀ a."""
    return dot((R[0], R[3], R[6]), a), dot((R[1], R[4], R[7]), a), dot((R[2], R[5], R[8]), a)


@compiled(**FUSED)
def symmetric_product(S, a):
    """Return S a."""
    return dot((S[0], S[3], S[4]), a), dot((S[3], S[1], S[5]), a), dot((S[4], S[5], S[2]), a)


@compiled(**FUSED)
def rotate_symmetric(R, S):
    """Return R S Rᵀ."""
    x, y, z = R[0:3], R[3:6], R[6:9]
    sx, sy, sz = symmetric_product(S, x), symmetric_product(S, y), symmetric_product(S, z)
    return dot(sx, x), dot(sy, y), dot(sz, z), dot(sx, y), dot(sx, z), dot(sy, z)


@compiled(**FUSED)
def unit_quaternion(q, at):
    """Return the quaternion in four entries of an array, normalized."""
    w, x, y, z = q[at], q[at + 1], q[at + 2], q[at + 3]
    s = 1.0 / math.sqrt(w * w + x * x + y * y + z * z)
    return s * w, s * x, s * y, s * z


@compiled(**FUSED)
def rotation_matrix(q):
    """Return the rotation matrix of a unit quaternion."""
    w, x, y, z = q
    xx, yy, zz, ww = x * x, y * y, z * z, w * w
    xy, xz, yz, wx, wy, wz = x * y, x * z, y * z, w * x, w * y, w * z
    return (
        ww + xx - yy - zz, 2.0 * (xy - wz), 2.0 * (xz + wy),
        2.0 * (xy + wz), ww - xx + yy - zz, 2.0 * (yz - wx),
        2.0 * (xz - wy), 2.0 * (yz + wx), ww - xx - yy + zz,
    )  # fmt: skip


@compiled(**FUSED)
def integrate_quaternion(q, rate, h):
    """Return exp(h·rate/2) q, normalized: the attitude after a time h at a rate in world axes."""
    t = 0.25 * h * h * dot(rate, rate)  # square of half the angle
    if t < 0.05:  # Taylor series; the next terms are below 1e-17
        c = 1.0 - t * (1 / 2 - t * (1 / 24 - t * (1 / 720 - t * (1 / 40320 - t * (1 / 3628800)))))
        s = 1.0 - t * (1 / 6 - t * (1 / 120 - t * (1 / 5040 - t * (1 / 362880 - t * (1 / 39916800)))))
    else:
        u = math.sqrt(t)
        c, s = math.cos(u), math.sin(u) / u
    w, x, y, z = q
    length = 1.5 - 0.5 * (w * w + x * x + y * y + z * z)  # Newton step to 1 / length
    c *= length
    s *= 0.5 * h * length
    a, b, d = s * rate[0], s * rate[1], s * rate[2]
    return (
        c * w - a * x - b * y - d * z,
        c * x + a * w + b * z - d * y,
        c * y + b * w + d * x - a * z,
        c * z + d * w + a * y - b * x,
    )


def agent_parts(model: mujoco.MjModel) -> npt.NDArray[np.float64]:
    """Return the geoms of the agent as (P, 7) rows (center, half sizes, radius) in the agent's frame.

    Boxes have radius 0 and spheres half sizes 0. A wheel becomes the box in which it can turn. ``model`` is a
    navigation world whose agent starts without rotation.
    """
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    agent = model.body("agent").id
    rows = []
    for geom in np.flatnonzero(model.body_rootid[model.geom_bodyid] == agent):
        center = data.geom_xpos[geom] - data.xpos[agent]
        half = np.abs(data.geom_xmat[geom].reshape(3, 3)) @ model.geom_aabb[geom, 3:]
        sphere = model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_SPHERE
        rows.append([*center, 0.0, 0.0, 0.0, half[0]] if sphere else [*center, *half, 0.0])
    return np.array(rows)


@compiled(error_model="numpy")
def vase_gap(x, y, vase):
    """Return a lower bound of the planar distance from (x, y) to a vase, given by its pose (7,)."""
    dx, dy = x - vase[0], y - vase[1]
    qw, qx, qy, qz = vase[3], vase[4], vase[5], vase[6]
    if 2.0 * (qx * qx + qy * qy) > 1e-5:  # tilted by more than 0.26 degrees, or lying on another face
        return math.sqrt(dx * dx + dy * dy) - VASE_BALL
    c, s = 1.0 - 2.0 * qz * qz, 2.0 * qw * qz
    ex = max(abs(c * dx + s * dy) - VASE_HALF, 0.0)
    ey = max(abs(c * dy - s * dx) - VASE_HALF, 0.0)
    return math.sqrt(ex * ex + ey * ey) - TILT_MARGIN


@compiled(error_model="numpy")
def _separated(dx, dy, R, part, V, ux, uy):
    """Return whether the direction (ux, uy) separates a box of the agent from a vase at the offset (dx, dy).

    The projection of a box on a direction is the sum of the projections of its three half axes.
    """
    room = _MARGIN * (abs(ux) + abs(uy))
    for j in range(3):
        room += part[3 + j] * abs(R[j] * ux + R[3 + j] * uy)
        room += VASE_HALF * abs(V[j] * ux + V[3 + j] * uy)
    return abs(dx * ux + dy * uy) > room


@compiled(error_model="numpy")
def may_touch_vase(parts, R, x, y, vase):
    """Return whether the agent's outline seen from above overlaps a vase's; never False if they touch.

    Separating axis test for ``parts`` (P, 7) of an agent with rotation R (9,) and origin (x, y); ``vase`` (7,) is a
    pose.
    """
    V = rotation_matrix(unit_quaternion(vase, 3))
    for part in parts:
        px = x + R[0] * part[0] + R[1] * part[1] + R[2] * part[2]
        py = y + R[3] * part[0] + R[4] * part[1] + R[5] * part[2]
        if part[6] > 0.0:
            if vase_gap(px, py, vase) < part[6]:
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
def may_touch_any_vase(parts, R, x, y, vase_q, near, reach):
    """Return whether an agent with parts up to ``reach`` from its origin may touch a vase marked in ``near``.

    ``vase_q`` (V, 7) has the poses of the vases, ``near`` is (V,) bool; see ``may_touch_vase``.
    """
    far = reach + VASE_BALL
    for j in range(vase_q.shape[0]):
        if near[j]:
            dx, dy = vase_q[j, 0] - x, vase_q[j, 1] - y
            if dx * dx + dy * dy < far * far and may_touch_vase(parts, R, x, y, vase_q[j]):
                return True
    return False
