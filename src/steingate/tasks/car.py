"""The Car without an engine: its exact motion while wheels and ball touch, and only the floor, compiled.

The engine's semi-implicit step with implicit joint damping: accelerations x from ``floor_contacts``, then
(M + hD) x' = M x, velocities += h x', positions += h velocities. Velocities are kept in world axes, only the
ball's in the chassis frame: a rotation goes on about its own axis, so rates need not turn with their bodies.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

from steingate.compiled import compiled
from steingate.errors import InputError
from steingate.tasks import floor_system
from steingate.tasks.car_model import BOXES, read_car
from steingate.tasks.floor_contacts import solve
from steingate.tasks.floor_system import FORCE, SIZE, Y
from steingate.tasks.footprint import touches_some
from steingate.tasks.rigid import (
    FUSED,
    cross,
    dot,
    go_on,
    matrix,
    plus,
    times,
    turn,
    turn_back,
    turn_symmetric,
    unit,
    vector,
)

# why a step is left to the engine, with nothing changed
GRAZING, CHASSIS, LYING, UNSOLVED = -1, -2, -3, -4

_EXACTLY_ON = 1e-13  # depth below which rounding decides whether there is a contact at all
_AGREEMENT = 1e-8


def constants(model: mujoco.MjModel) -> npt.NDArray[Any]:
    """Return the Car's numbers, one record of type ``car_model.CAR``, after trying them against the engine.

    Parameters
    ----------
    model : mujoco.MjModel
        A Car's world without other bodies. One that is not described by the numbers is refused.
    """
    car = read_car(model)
    exact = copy.copy(model)
    exact.opt.tolerance, exact.opt.iterations = 0.0, 20  # twice what it ever needs
    data, rng = mujoco.MjData(exact), np.random.default_rng(0)
    q, v, acc, edges = np.zeros(13), np.zeros(11), np.zeros(3), np.zeros(5, np.int64)
    nothing = np.zeros((0, 7)), np.zeros((0, 7)), np.zeros(0, bool), 0, 0.0
    w = np.zeros(SIZE)
    for _ in range(8):
        data.qpos[3:7] = [1.0, *rng.normal(size=3) * [0.05, 0.05, 2.0]]
        data.qpos[:3] = 0.0, 0.0, data.qpos[2] + 1e-4 * rng.normal()
        data.qvel[:] = rng.normal(size=11) * [1, 1, 0.1, 0.2, 0.2, 1, 9, 9, 5, 5, 5]
        data.ctrl[:] = rng.uniform(-1, 1, 2) * 2.0 * car["torque"][0]
        mujoco.mj_normalizeQuat(exact, data.qpos)
        q[:], v[:], edges[:] = data.qpos, data.qvel, 0
        done = advance(car, q, v, edges, *data.ctrl, 10, *nothing, acc, w)
        mujoco.mj_step(exact, data, 10)
        mujoco.mj_forward(exact, data)
        pairs = ((q, data.qpos), (v, data.qvel), (acc, data.qacc[:3]))
        if done > 0 and not all(np.allclose(a, b, rtol=_AGREEMENT, atol=_AGREEMENT) for a, b in pairs):
            raise InputError(
                "This Car does not move in the engine as its closed form says: use physics='mujoco'."
            )
        mujoco.mj_resetData(exact, data)
    return car


@compiled(**FUSED)
def _chassis_touches(k, up, z):
    """Return whether a box of the chassis reaches the floor; ``up`` is the vertical in the chassis frame."""
    if z > k.out * (abs(up[0]) + abs(up[1])) + k.top * abs(up[2]):
        return False
    box = k.boxes
    for i in range(BOXES):
        low = abs(up[0]) * box[i, 3] + abs(up[1]) * box[i, 4] + abs(up[2]) * box[i, 5]
        if z + up[0] * box[i, 0] + up[1] * box[i, 1] + up[2] * box[i, 2] <= low:
            return True
    return False


@compiled(**FUSED)
def _spring(k, distance, weight):
    """Return the constant part of the normal row and the stiffness of a contact."""
    low, high, width, middle = k.impedance[0], k.impedance[1], k.impedance[2], k.impedance[3]
    x = min(-distance / width, 1.0)
    share = x * x / middle if x <= middle else 1.0 - (1.0 - x) * (1.0 - x) / (1.0 - middle)
    impedance = low + share * (high - low)
    return k.k * impedance * distance, impedance / ((1.0 - impedance) * weight)


@compiled(**FUSED)
def _place_contact(k, w, c, p, axis, sy, sx, distance, weight):
    """Write a contact at the place p: angular parts p × e of its rows, less what is the rotor's."""
    w[c], w[c + 1], w[c + 2] = p[1], -p[0], 0.0
    w[c + 3], w[c + 4], w[c + 5] = -p[2] - axis[0] * sy, -axis[1] * sy, p[0] - axis[2] * sy
    w[c + 6], w[c + 7], w[c + 8] = -axis[0] * sx, p[2] - axis[1] * sx, -p[1] - axis[2] * sx
    w[c + floor_system.ROTOR_Y], w[c + floor_system.ROTOR_X] = sy, sx
    w[c + floor_system.OFFSET], w[c + floor_system.STIFF] = _spring(k, distance, weight)


@compiled(**FUSED)
def _find_contacts(k, R, z, w):
    """Write all contacts with the floor; return 0, or why the engine must take the step.

    Parameters
    ----------
    k : record
        The Car.
    R : (9,) tuple
        Rotation of the chassis.
    z : float
        Height of the center of mass.
    w : array
        Workspace; receives contacts and rolling rows.
    """
    axis, nowhere = (R[0], R[3], R[6]), (0.0, 0.0, 0.0)
    grazing = False
    p = turn(R, vector(k.rear, 0))
    distance = z + p[2] - k.ball_radius
    w[floor_system.STIFF] = 0.0
    grazing |= abs(distance) < _EXACTLY_ON
    if distance < 0.0:
        _place_contact(k, w, 0, p, nowhere, 0.0, 0.0, distance, k.ball_weight)
        arm = k.ball_radius + 0.5 * distance
        w[floor_system.ROTOR_Y], w[floor_system.ROTOR_X] = arm, -arm
    tilt = axis[2]
    level = math.sqrt(max(1.0 - tilt * tilt, 1e-30))
    rim = k.wheel_radius * level
    out = k.wheel_radius * tilt / level
    half = -k.wheel_half if tilt > 0.0 else k.wheel_half  # the lower rim first
    for i in range(1, floor_system.CONTACTS):
        c, place = floor_system.COLUMNS * i, turn(R, vector(k.left, 0) if i < 3 else vector(k.right, 0))
        side = half if i % 2 else -half
        height = z + place[2] + side * tilt
        if height + 0.5 * rim <= 0.0:
            return LYING  # the engine adds more contacts on the flat side
        distance = height - rim
        w[c + floor_system.STIFF] = 0.0
        grazing |= abs(distance) < _EXACTLY_ON
        if distance < 0.0:
            # from the axle's middle to the contact, half the depth above the rim's lowest point
            a = (
                out * axis[0] + side * axis[0],
                out * axis[1] + side * axis[1],
                side * tilt - rim - 0.5 * distance,
            )
            sy, sx = tilt * a[0] - axis[0] * a[2], axis[1] * a[2] - tilt * a[1]
            _place_contact(k, w, c, plus(place, 1.0, a), axis, sy, sx, distance, k.wheel_weight)
    if grazing:
        return GRAZING
    for row in range(3):  # spin about z, rolls about y and x
        e, at = 2 - row, floor_system.ROLLING + 4 * row
        for i in range(3):
            w[at + i] = -axis[i] * axis[e]
        w[at + e] += 1.0
        w[at + 3] = axis[e]
    return 0


@compiled(**FUSED)
def advance(cars, q, v, edges, left, right, substeps, parts, vase_q, near, close, reach, acc, w):
    """Move one Car by some substeps, up to where it may touch a vase.

    Returns the number of substeps made, which is all of them also where the Car touches only at their end;
    ``substeps + 1`` if it touches nothing to the end; or, with nothing changed, a negative number that says
    why the engine must take the whole step.

    Parameters
    ----------
    cars : (1,) array of CAR
        The Car's numbers.
    q, v : (13,), (11,) arrays
        State in engine order, changed in place.
    edges : (5,) int array
        Active edges of the last solution, changed in place: where the solver starts.
    left, right : float
        Controls.
    substeps : int
        Number of substeps; with 0 only the acceleration is computed.
    parts, vase_q, near, reach : arrays and float
        The Car's footprint and the vases to look out for; see ``footprint.touches_some``.
    close : int
        How many vases are marked in ``near``.
    acc : (3,) array
        Receives the acceleration of the origin at the end with the same controls, if nothing is touched.
    w : (floor_system.SIZE,) array
        Workspace, overwritten.
    """
    k = cars[0]
    h, b, mass, wheel, ball, damping = k.h, k.b, k.mass, k.wheel, k.ball, k.damping
    left, right = min(max(left, -k.torque), k.torque), min(max(right, -k.torque), k.torque)
    mu, com, inertia_inside = vector(k.friction, 0), vector(k.com, 0), _six(k.inertia)
    keep_wheel, keep_ball = wheel / (wheel + h * damping), ball / (ball + h * damping)
    drag_wheel, drag_ball = h * damping * keep_wheel, h * damping * keep_ball
    place, speed = vector(q, 0), vector(v, 0)
    attitude, ball_attitude = unit(q, 3), unit(q, 9)
    R = matrix(attitude)
    rate = turn(R, vector(v, 3))
    roll = turn(matrix(ball_attitude), vector(v, 8))
    left_angle, right_angle, left_rate, right_rate = q[7], q[8], v[6], v[7]
    old = (edges[0], edges[1], edges[2], edges[3], edges[4])
    done, result = 0, 0
    while True:
        if close > 0 and touches_some(parts, R, place[0], place[1], vase_q, near, reach):
            result = done
            break
        axis, c = (R[0], R[3], R[6]), turn(R, com)
        reason = _find_contacts(k, R, place[2] + c[2], w)
        if _chassis_touches(k, R[6:9], place[2]):
            reason = CHASSIS
        if reason < 0:
            result = reason
            break
        # M y₀: what acts without contacts, and b times the momenta
        inertia = turn_symmetric(R, inertia_inside)
        w_ball = turn(R, roll)
        along = dot(axis, rate)
        spin_left, spin_right = along + left_rate, along + right_rate
        push_left, push_right = left - damping * left_rate, right - damping * right_rate
        swing, momentum = cross(rate, c), times(inertia, rate)
        inward, lag = cross(rate, swing), cross(rate, w_ball)
        gyro = cross(rate, plus(momentum, wheel * (spin_left + spin_right), axis))
        for i in range(3):
            w[FORCE + i] = mass * (b * (speed[i] + swing[i]) - inward[i])
            w[FORCE + 3 + i] = (
                b * momentum[i] - gyro[i] - axis[i] * (push_left + push_right) + damping * w_ball[i]
            )
            w[FORCE + 8 + i] = ball * (b * (rate[i] + w_ball[i]) - lag[i]) - damping * w_ball[i]
        w[FORCE + 2] -= mass * k.gravity
        w[FORCE + 6], w[FORCE + 7] = push_left + wheel * b * spin_left, push_right + wheel * b * spin_right
        if solve(w, mass, inertia, wheel, ball, mu, k.most_steps, done == 0, edges) < 0:
            result = UNSOLVED
            break
        # accelerations: of the chassis' rotation, of the origin, of the rotors against the chassis
        a = plus(vector(w, Y + 3), -b, rate)
        lift = (
            w[Y] - b * (speed[0] + swing[0]),
            w[Y + 1] - b * (speed[1] + swing[1]),
            w[Y + 2] - b * (speed[2] + swing[2]),
        )
        if done == substeps:
            arm = cross(a, c)
            for i in range(3):
                acc[i] = lift[i] - arm[i]
            result = substeps + 1
            break
        along = dot(axis, a)
        d_left, d_right = w[Y + 6] - b * spin_left - along, w[Y + 7] - b * spin_right - along
        d_ball = turn_back(R, plus(plus(vector(w, Y + 8), -b, plus(rate, 1.0, w_ball)), -1.0, a))
        # the damping within the step brakes the rotors and thereby drags the chassis along
        pull = (
            drag_ball * d_ball[0] + drag_wheel * (d_left + d_right),
            drag_ball * d_ball[1],
            drag_ball * d_ball[2],
        )
        more = times(_six(k.damped), pull)
        roll = plus(roll, h * keep_ball, plus(d_ball, -1.0, more))
        left_rate += h * keep_wheel * (d_left - more[0])
        right_rate += h * keep_wheel * (d_right - more[0])
        a = plus(a, 1.0, turn(R, more))
        speed = plus(speed, h, plus(lift, -1.0, cross(a, c)))
        rate = plus(rate, h, a)
        place = plus(place, h, speed)
        left_angle += h * left_rate
        right_angle += h * right_rate
        attitude, ball_attitude = go_on(attitude, rate, h), go_on(ball_attitude, roll, h)
        R = matrix(attitude)
        done += 1
    if result < 0:
        edges[0], edges[1], edges[2], edges[3], edges[4] = old
    elif done > 0:
        local, ball_local = turn_back(R, rate), turn_back(matrix(ball_attitude), roll)
        for i in range(3):
            q[i], v[i], v[3 + i], v[8 + i] = place[i], speed[i], local[i], ball_local[i]
        for i in range(4):
            q[3 + i], q[9 + i] = attitude[i], ball_attitude[i]
        q[7], q[8], v[6], v[7] = left_angle, right_angle, left_rate, right_rate
    return result


@compiled(**FUSED)
def _six(a):
    """Return the six entries of an array."""
    return a[0], a[1], a[2], a[3], a[4], a[5]
