"""Dynamics of the Car while only its wheels and ball touch, and only the floor: MuJoCo's step, compiled.

MuJoCo's semi-implicit Euler step with implicit joint damping D: the accelerations x with contact forces
(``car_contacts``), then (M + hD) x' = M x, v += h x', q += h v. Velocities are kept in world axes, except that of the
ball, which is kept in the chassis frame.
"""

from __future__ import annotations

import math

from steingate.compiled import compiled
from steingate.tasks import car_contacts as cc
from steingate.tasks.car_contacts import FORCE, Y, solve_contacts
from steingate.tasks.geometry import (
    FUSED,
    add_scaled,
    cross,
    dot,
    integrate_quaternion,
    may_touch_any_vase,
    rotate,
    rotate_back,
    rotate_symmetric,
    rotation_matrix,
    symmetric_product,
    take3,
    unit_quaternion,
)

BOXES = 5  # of the chassis

# Results of ``advance`` for steps that MuJoCo has to make.
AMBIGUOUS_CONTACT = -1  # a contact at distance 0, where rounding decides whether it exists
CHASSIS_CONTACT = -2  # the chassis touches the floor
WHEEL_ON_SIDE = -3
NOT_CONVERGED = -4  # the contact solver reached its maximum number of steps

_ZERO_DISTANCE = 1e-13


@compiled(**FUSED)
def _six(a):
    """Return an array of six as a tuple."""
    return a[0], a[1], a[2], a[3], a[4], a[5]


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
def _write_contact(k, w, c, p, axis, sy, sx, distance, weight):
    """Write a contact at the point p: angular parts p × e of its rows, without the part of the rotor.

    The constant part of the normal row and the stiffness D follow from solref and solimp.
    """
    w[c], w[c + 1], w[c + 2] = p[1], -p[0], 0.0
    w[c + 3], w[c + 4], w[c + 5] = -p[2] - axis[0] * sy, -axis[1] * sy, p[0] - axis[2] * sy
    w[c + 6], w[c + 7], w[c + 8] = -axis[0] * sx, p[2] - axis[1] * sx, -p[1] - axis[2] * sx
    w[c + cc.ROTOR_Y], w[c + cc.ROTOR_X] = sy, sx
    low, high, width, middle = k.impedance[0], k.impedance[1], k.impedance[2], k.impedance[3]
    x = min(-distance / width, 1.0)
    sigmoid = x * x / middle if x <= middle else 1.0 - (1.0 - x) * (1.0 - x) / (1.0 - middle)
    impedance = low + sigmoid * (high - low)
    w[c + cc.OFFSET] = k.k * impedance * distance
    w[c + cc.STIFFNESS] = impedance / ((1.0 - impedance) * weight)


@compiled(**FUSED)
def _find_contacts(k, R, z, w):
    """Write all contacts with the floor and the rolling rows; return 0, or why MuJoCo must make the step.

    ``R`` is the rotation of the chassis and ``z`` the height of the center of mass.
    """
    axis, no_axis = (R[0], R[3], R[6]), (0.0, 0.0, 0.0)
    ambiguous = False
    p = rotate(R, take3(k.rear, 0))
    distance = z + p[2] - k.ball_radius
    w[cc.STIFFNESS] = 0.0
    ambiguous |= abs(distance) < _ZERO_DISTANCE
    if distance < 0.0:
        _write_contact(k, w, 0, p, no_axis, 0.0, 0.0, distance, k.ball_weight)
        arm = k.ball_radius + 0.5 * distance
        w[cc.ROTOR_Y], w[cc.ROTOR_X] = arm, -arm
    tilt = axis[2]
    level = math.sqrt(max(1.0 - tilt * tilt, 1e-30))
    rim = k.wheel_radius * level
    out = k.wheel_radius * tilt / level
    half = -k.wheel_half if tilt > 0.0 else k.wheel_half  # the lower rim first
    for i in range(1, cc.CONTACTS):
        c, place = cc.COLUMNS * i, rotate(R, take3(k.left, 0) if i < 3 else take3(k.right, 0))
        side = half if i % 2 else -half
        height = z + place[2] + side * tilt
        if height + 0.5 * rim <= 0.0:
            return WHEEL_ON_SIDE  # MuJoCo adds more contacts on the flat side
        distance = height - rim
        w[c + cc.STIFFNESS] = 0.0
        ambiguous |= abs(distance) < _ZERO_DISTANCE
        if distance < 0.0:
            # from the axle's middle to the contact, half the depth above the rim's lowest point
            low = side * tilt - rim - 0.5 * distance
            a = (out * axis[0] + side * axis[0], out * axis[1] + side * axis[1], low)
            sy, sx = tilt * a[0] - axis[0] * a[2], axis[1] * a[2] - tilt * a[1]
            _write_contact(k, w, c, add_scaled(place, 1.0, a), axis, sy, sx, distance, k.wheel_weight)
    if ambiguous:
        return AMBIGUOUS_CONTACT
    for row in range(3):  # spin about z, rolls about y and x
        e, at = 2 - row, cc.ROLLING + 4 * row
        for i in range(3):
            w[at + i] = -axis[i] * axis[e]
        w[at + e] += 1.0
        w[at + 3] = axis[e]
    return 0


@compiled(**FUSED)
def advance(cars, q, v, edges, left, right, substeps, parts, vase_q, near, close, reach, acc, w):
    """Advance one Car by some substeps, or up to the first one before which it may touch a vase.

    Returns the number of substeps made; ``substeps + 1`` if no vase may be touched after the last one either; or, with
    nothing changed, a negative number: why MuJoCo must make the whole step.

    ``cars`` (1,) has the parameters, see ``car_model.CAR``. The state ``q`` (13,), ``v`` (11,) in MuJoCo's order,
    and the active edges (5,) of the last solution, where the solver starts, change in place. With 0 substeps only the
    acceleration is computed. ``close`` is the number of vases marked in ``near``, see ``geometry.may_touch_any_vase``.
    ``acc`` (3,) receives the acceleration of the origin at the end, if no vase may be touched there. ``w`` (SIZE,) is
    the workspace of ``car_contacts``.
    """
    k = cars[0]
    h, b, mass, wheel, ball, damping = k.h, k.b, k.mass, k.wheel, k.ball, k.damping
    left, right = min(max(left, -k.torque), k.torque), min(max(right, -k.torque), k.torque)
    mu, com, local_inertia = take3(k.friction, 0), take3(k.com, 0), _six(k.inertia)
    keep_wheel, keep_ball = wheel / (wheel + h * damping), ball / (ball + h * damping)
    drag_wheel, drag_ball = h * damping * keep_wheel, h * damping * keep_ball
    position, velocity = take3(q, 0), take3(v, 0)
    attitude, ball_attitude = unit_quaternion(q, 3), unit_quaternion(q, 9)
    R = rotation_matrix(attitude)
    rate = rotate(R, take3(v, 3))
    roll = rotate(rotation_matrix(ball_attitude), take3(v, 8))
    left_angle, right_angle, left_rate, right_rate = q[7], q[8], v[6], v[7]
    old = (edges[0], edges[1], edges[2], edges[3], edges[4])
    done, result = 0, 0
    while True:
        if close > 0 and may_touch_any_vase(parts, R, position[0], position[1], vase_q, near, reach):
            result = done
            break
        axis, c = (R[0], R[3], R[6]), rotate(R, com)
        reason = _find_contacts(k, R, position[2] + c[2], w)
        if _chassis_touches(k, R[6:9], position[2]):
            reason = CHASSIS_CONTACT
        if reason < 0:
            result = reason
            break
        # M y₀: forces without contacts plus b times the momenta
        inertia = rotate_symmetric(R, local_inertia)
        w_ball = rotate(R, roll)
        along = dot(axis, rate)
        spin_left, spin_right = along + left_rate, along + right_rate
        push_left, push_right = left - damping * left_rate, right - damping * right_rate
        swing, momentum = cross(rate, c), symmetric_product(inertia, rate)
        inward, lag = cross(rate, swing), cross(rate, w_ball)
        gyro = cross(rate, add_scaled(momentum, wheel * (spin_left + spin_right), axis))
        for i in range(3):
            w[FORCE + i] = mass * (b * (velocity[i] + swing[i]) - inward[i])
            push = axis[i] * (push_left + push_right)
            w[FORCE + 3 + i] = b * momentum[i] - gyro[i] - push + damping * w_ball[i]
            w[FORCE + 8 + i] = ball * (b * (rate[i] + w_ball[i]) - lag[i]) - damping * w_ball[i]
        w[FORCE + 2] -= mass * k.gravity
        w[FORCE + 6], w[FORCE + 7] = push_left + wheel * b * spin_left, push_right + wheel * b * spin_right
        if solve_contacts(w, mass, inertia, wheel, ball, mu, k.max_steps, done == 0, edges) < 0:
            result = NOT_CONVERGED
            break
        # accelerations: of the chassis' rotation, of the origin, of the rotors against the chassis
        a = add_scaled(take3(w, Y + 3), -b, rate)
        lift = add_scaled(take3(w, Y), -b, add_scaled(velocity, 1.0, swing))
        if done == substeps:
            arm = cross(a, c)
            for i in range(3):
                acc[i] = lift[i] - arm[i]
            result = substeps + 1
            break
        along = dot(axis, a)
        d_left, d_right = w[Y + 6] - b * spin_left - along, w[Y + 7] - b * spin_right - along
        ball_absolute = add_scaled(take3(w, Y + 8), -b, add_scaled(rate, 1.0, w_ball))
        d_ball = rotate_back(R, add_scaled(ball_absolute, -1.0, a))
        # implicit damping brakes the rotors within the step and thereby accelerates the chassis
        pull_x = drag_ball * d_ball[0] + drag_wheel * (d_left + d_right)
        pull = (pull_x, drag_ball * d_ball[1], drag_ball * d_ball[2])
        more = symmetric_product(_six(k.damped), pull)
        roll = add_scaled(roll, h * keep_ball, add_scaled(d_ball, -1.0, more))
        left_rate += h * keep_wheel * (d_left - more[0])
        right_rate += h * keep_wheel * (d_right - more[0])
        a = add_scaled(a, 1.0, rotate(R, more))
        velocity = add_scaled(velocity, h, add_scaled(lift, -1.0, cross(a, c)))
        rate = add_scaled(rate, h, a)
        position = add_scaled(position, h, velocity)
        left_angle += h * left_rate
        right_angle += h * right_rate
        attitude = integrate_quaternion(attitude, rate, h)
        ball_attitude = integrate_quaternion(ball_attitude, roll, h)
        R = rotation_matrix(attitude)
        done += 1
    if result < 0:
        edges[0], edges[1], edges[2], edges[3], edges[4] = old
    elif done > 0:
        local, ball_local = rotate_back(R, rate), rotate_back(rotation_matrix(ball_attitude), roll)
        for i in range(3):
            q[i], v[i], v[3 + i], v[8 + i] = position[i], velocity[i], local[i], ball_local[i]
        for i in range(4):
            q[3 + i], q[9 + i] = attitude[i], ball_attitude[i]
        q[7], q[8], v[6], v[7] = left_angle, right_angle, left_rate, right_rate
    return result
