"""Dynamics of the Point while it touches no vase: MuJoCo's step in closed form, in compiled code.

A planar rigid body with thrust along its nose and a turn servo: q = (x, y, θ) and v in world axes. MuJoCo's
semi-implicit Euler step with implicit joint damping D is (M + hD) a = f, v += h a, q += h v. At this time step the
servo oscillates within its force limits; the original task does the same.
"""

from __future__ import annotations

import math

from steingate.compiled import compiled
from steingate.tasks.geometry import may_touch_any_vase

MASS = 0.004 / 3.0 * math.pi + 0.001  # sphere of radius 0.1 and nose of edge 0.1, density 1
MOMENT = 1e-4  # mass times the offset of the center of mass
# about the vertical axis through the origin:
INERTIA = 0.4 * (0.004 / 3.0 * math.pi) * 0.01 + 0.001 * (0.01 / 6.0 + 0.01)
DAMPING = 0.01
TURN_DAMPING = 0.005
GEAR = 0.3
FORCE_LIMIT = 0.05

# Distance of the farthest point (a corner of the nose) from the origin in m, and a bound on the increase of the
# origin's speed within an environment step of 0.02 s in m/s: thrust gives 2.9 m/s², the servo at most 10.4 m/s².
REACH = 0.1582
SPEED_GAIN = 0.3


@compiled(error_model="numpy")
def clip(value, limit):
    """Return the value clipped to ±limit."""
    return min(max(value, -limit), limit)


@compiled(error_model="numpy")
def acceleration(theta, v, thrust, turn, h, out):
    """Write the acceleration (M + hD)⁻¹ f to ``out`` (3,); h = 0 gives the explicit one.

    ``theta`` is the heading, ``v`` (3,) the velocity (u, w, ω); ``thrust`` and ``turn`` are the controls within ±1.
    """
    s, c = math.sin(theta), math.cos(theta)
    omega = v[2]
    force = GEAR * clip(thrust, FORCE_LIMIT) + MOMENT * omega * omega
    f0 = force * c - DAMPING * v[0]
    f1 = force * s - DAMPING * v[1]
    f2 = GEAR * clip(turn - GEAR * omega, FORCE_LIMIT) - TURN_DAMPING * omega
    # block elimination: both translations have the same diagonal entry
    m = MASS + h * DAMPING
    k0, k1 = -MOMENT * s, MOMENT * c
    a2 = (f2 - (k0 * f0 + k1 * f1) / m) / (INERTIA + h * TURN_DAMPING - (k0 * k0 + k1 * k1) / m)
    out[0] = (f0 - k0 * a2) / m
    out[1] = (f1 - k1 * a2) / m
    out[2] = a2


@compiled(error_model="numpy")
def advance(q, v, thrust, turn, h, substeps, parts, vase_q, near, close, reach, acc):
    """Advance one Point by some substeps, or up to the first one before which it may touch a vase.

    Returns the number of substeps made; ``substeps + 1`` if no vase may be touched after the last one either.

    The pose ``q`` (x, y, θ) and the velocity ``v`` (3,) in world axes are changed in place; the controls are within ±1.
    With 0 substeps only the acceleration is computed. ``close`` is the number of vases marked in ``near``, see
    ``geometry.may_touch_any_vase``. ``acc`` (3,) receives M⁻¹ f at the end, if no vase may be touched there.
    """
    for done in range(substeps + 1):
        if close > 0:
            c, s = math.cos(q[2]), math.sin(q[2])
            R = (c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0)
            if may_touch_any_vase(parts, R, q[0], q[1], vase_q, near, reach):
                return done
        if done < substeps:
            acceleration(q[2], v, thrust, turn, h, acc)
            for j in range(3):
                v[j] += h * acc[j]
                q[j] += h * v[j]
    acceleration(q[2], v, thrust, turn, 0.0, acc)
    return substeps + 1
