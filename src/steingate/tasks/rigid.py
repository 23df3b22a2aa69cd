"""Vectors, rotations and symmetric matrices as tuples of floats, which compiled code keeps in registers.

A rotation matrix is a tuple of nine, by rows; a symmetric matrix is (xx, yy, zz, xy, xz, yz).
"""

from __future__ import annotations

import math
from typing import Any, Final

from steingate.compiled import compiled

# Products and sums may be fused: decided when compiling, so that results depend on nothing else.
FUSED: Final[dict[str, Any]] = {"error_model": "numpy", "fastmath": {"contract", "nsz", "arcp"}}


@compiled(**FUSED)
def vector(a, at):
    """Return three entries of an array."""
    return a[at], a[at + 1], a[at + 2]


@compiled(**FUSED)
def plus(a, s, b):
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
def turn(R, a):
    """Return R a."""
    return dot(R[0:3], a), dot(R[3:6], a), dot(R[6:9], a)


@compiled(**FUSED)
def turn_back(R, a):
    """Return Rᵀ a."""
    return dot((R[0], R[3], R[6]), a), dot((R[1], R[4], R[7]), a), dot((R[2], R[5], R[8]), a)


@compiled(**FUSED)
def times(S, a):
    """Return S a for a symmetric S."""
    return dot((S[0], S[3], S[4]), a), dot((S[3], S[1], S[5]), a), dot((S[4], S[5], S[2]), a)


@compiled(**FUSED)
def turn_symmetric(R, S):
    """Return R S Rᵀ for a symmetric S."""
    x, y, z = R[0:3], R[3:6], R[6:9]
    sx, sy, sz = times(S, x), times(S, y), times(S, z)
    return dot(sx, x), dot(sy, y), dot(sz, z), dot(sx, y), dot(sx, z), dot(sy, z)


@compiled(**FUSED)
def unit(q, at):
    """Return the quaternion in four entries of an array, with length 1."""
    w, x, y, z = q[at], q[at + 1], q[at + 2], q[at + 3]
    s = 1.0 / math.sqrt(w * w + x * x + y * y + z * z)
    return s * w, s * x, s * y, s * z


@compiled(**FUSED)
def matrix(q):
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
def go_on(q, rate, h):
    """Return the unit quaternion of an attitude that turns for a time h at a rate given in fixed axes."""
    t = 0.25 * h * h * dot(rate, rate)  # square of half the angle
    if t < 0.05:  # Taylor's next terms are below 1e-17
        c = 1.0 - t * (1 / 2 - t * (1 / 24 - t * (1 / 720 - t * (1 / 40320 - t * (1 / 3628800)))))
        s = 1.0 - t * (1 / 6 - t * (1 / 120 - t * (1 / 5040 - t * (1 / 362880 - t * (1 / 39916800)))))
    else:
        u = math.sqrt(t)
        c, s = math.cos(u), math.sin(u) / u
    w, x, y, z = q
    length = 1.5 - 0.5 * (w * w + x * x + y * y + z * z)  # Newton's step to 1 / length
    c *= length
    s *= 0.5 * h * length
    a, b, d = s * rate[0], s * rate[1], s * rate[2]
    return (
        c * w - a * x - b * y - d * z,
        c * x + a * w + b * z - d * y,
        c * y + b * w + d * x - a * z,
        c * z + d * w + a * y - b * x,
    )
