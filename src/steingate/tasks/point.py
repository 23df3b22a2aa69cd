"""The Point without an engine: its exact motion while it touches nothing, in compiled code.

A planar rigid body with thrust along its nose and a turn servo: q = (x, y, θ) and v in world axes. The
engine's semi-implicit step with implicit joint damping is the recursion (M + hD) a = f, v += h a, q += h v.
The servo is unstable inside its force band at this time step and chatters; that belongs to the task.
"""

from __future__ import annotations

import math

from steingate.compiled import compiled
from steingate.tasks.footprint import touches_some

MASS = 0.004 / 3.0 * math.pi + 0.001  # sphere of radius 0.1 and nose of edge 0.1, density 1
MOMENT = 1e-4  # mass times the offset of the center of mass
# about the vertical through the origin
INERTIA = 0.4 * (0.004 / 3.0 * math.pi) * 0.01 + 0.001 * (0.01 / 6.0 + 0.01)
DAMPING = 0.01
TURN_DAMPING = 0.005
GEAR = 0.3
FORCE_LIMIT = 0.05

# How far from its origin the Point reaches (a nose corner), and how much faster its origin can get within one
# environment step of 0.02 s: thrust 2.9 m/s² and at most 10.4 m/s² from the servo acting on the offset mass.
REACH = 0.1582
SPEED_GAIN = 0.3


@compiled(error_model="numpy")
def clip(value, limit):
    """Return the value clipped to ±limit."""
    return min(max(value, -limit), limit)


@compiled(error_model="numpy")
def acceleration(theta, v, thrust, turn, h, out):
    """Write the acceleration (M + hD)⁻¹ f into ``out``; h = 0 gives the explicit one.

    Parameters
    ----------
    theta : float
        Heading.
    v : (3,) array
        Velocity (u, w, ω).
    thrust, turn : float
        The two controls, already within ±1.
    h : float
        Time step of the implicit damping.
    out : (3,) array
        Receives the acceleration.
    """
    s, c = math.sin(theta), math.cos(theta)
    omega = v[2]
    push = GEAR * clip(thrust, FORCE_LIMIT) + MOMENT * omega * omega
    f0 = push * c - DAMPING * v[0]
    f1 = push * s - DAMPING * v[1]
    f2 = GEAR * clip(turn - GEAR * omega, FORCE_LIMIT) - TURN_DAMPING * omega
    # block elimination: the two translations share one diagonal entry
    m = MASS + h * DAMPING
    k0, k1 = -MOMENT * s, MOMENT * c
    a2 = (f2 - (k0 * f0 + k1 * f1) / m) / (INERTIA + h * TURN_DAMPING - (k0 * k0 + k1 * k1) / m)
    out[0] = (f0 - k0 * a2) / m
    out[1] = (f1 - k1 * a2) / m
    out[2] = a2


@compiled(error_model="numpy")
def run(q, v, thrust, turn, h, substeps, parts, vase_q, near, close, reach, acc):
    """Move one Point by some substeps, in place, up to where it may touch a vase.

    Returns the number of substeps made, which is all of them also where the Point touches only at their end;
    or ``substeps + 1`` if it touches nothing to the end.

    Parameters
    ----------
    q, v : (3,) arrays
        Pose (x, y, θ) and velocity in world axes, changed in place.
    thrust, turn : float
        The two controls, already within ±1.
    h : float
        Engine time step.
    substeps : int
        Number of substeps; with 0 only the acceleration is computed.
    parts, vase_q, near, reach : arrays and float
        The Point's footprint and the vases to look out for; see ``footprint.touches_some``.
    close : int
        How many vases are marked in ``near``.
    acc : (3,) array
        Receives M⁻¹ f at the end with the same controls, if nothing is touched.
    """
    for done in range(substeps + 1):
        if close > 0:
            c, s = math.cos(q[2]), math.sin(q[2])
            turned = (c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0)
            if touches_some(parts, turned, q[0], q[1], vase_q, near, reach):
                return done
        if done < substeps:
            acceleration(q[2], v, thrust, turn, h, acc)
            for j in range(3):
                v[j] += h * acc[j]
                q[j] += h * v[j]
    acceleration(q[2], v, thrust, turn, 0.0, acc)
    return substeps + 1
