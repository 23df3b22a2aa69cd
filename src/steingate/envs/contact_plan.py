"""Who needs the engine in a step, and with which vases: decided in compiled code before anything moves.

A vase the agent cannot reach during the step, and that no moving vase can reach, takes no part in it.
Untouched since the reset it follows the settling curve (the same for every vase: it starts slightly inside
the floor and sinks to rest within a second); later it lies still. So each simulation needs an engine model
with only its active vases, and a Point without any needs none.
"""

from __future__ import annotations

import math

import numba

from steingate.envs.catalog import VASE_HALF
from steingate.envs.point import advance

FRESH, STILL, MOVING = 0, 1, 2  # vase status: on the settling curve, at rest, in the engine until calm

CALM_SPEED = 1e-5  # a tenth of the speed that costs
CALM_TURN = 1e-4
CALM_STEPS = 10

_BALL = 1.7321 * VASE_HALF  # bounding sphere of a vase
_SLACK = 0.003


@numba.njit(nogil=True, cache=True, error_model="numpy")
def gap(x, y, vase):
    """Return a lower bound of the planar distance between a point and a vase of any attitude."""
    dx, dy = x - vase[0], y - vase[1]
    qw, qx, qy, qz = vase[3], vase[4], vase[5], vase[6]
    if 2.0 * (qx * qx + qy * qy) > 1e-5:  # tilted by more than 0.2 degrees, or lying on another face
        return math.sqrt(dx * dx + dy * dy) - _BALL
    c, s = 1.0 - 2.0 * qz * qz, 2.0 * qw * qz
    ex = max(abs(c * dx + s * dy) - VASE_HALF, 0.0)
    ey = max(abs(c * dy - s * dx) - VASE_HALF, 0.0)
    return math.sqrt(ex * ex + ey * ey) - _SLACK


@numba.njit(nogil=True, cache=True, error_model="numpy")
def choose(q, v, vase_q, vase_v, status, reach, speed_gain, period, active):
    """Return how many vases may take part in the next step of one simulation, marked in ``active``."""
    count = 0
    total = vase_q.shape[0]
    speed = math.sqrt(v[0] * v[0] + v[1] * v[1]) + speed_gain
    fastest = 0.0  # of anything a vase can be hit by
    for j in range(total):
        near = gap(q[0], q[1], vase_q[j]) < reach + speed * period
        active[j] = near or status[j] == MOVING
        if active[j]:
            count += 1
            w = vase_v[j]
            fastest = max(fastest, math.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]))
        if near:
            fastest = max(fastest, 2.0 * speed)
    far = 2.0 * _BALL + fastest * period + _SLACK
    grown = count > 0
    while grown:  # a pushed vase may push its neighbours, and they theirs
        grown = False
        for i in range(total):
            for j in range(total):
                if active[i] and not active[j]:
                    dx, dy = vase_q[i, 0] - vase_q[j, 0], vase_q[i, 1] - vase_q[j, 1]
                    if dx * dx + dy * dy < far * far:
                        active[j] = True
                        grown = True
                        count += 1
    return count


@numba.njit(nogil=True, cache=True, error_model="numpy")
def plan(
    actions, ctrl, q, v, acc, vase_q, vase_v, vase_warm, status, clock, curve, touch, reach, speed_gain,
    timestep, substeps, everything, active, group_size, group_ids,
):  # fmt: skip
    """Clip the actions, decide who needs the engine, and move at once the Points that do not.

    Parameters
    ----------
    curve : (T, 2) array
        Height and vertical speed of an untouched vase after 0, 1, ... steps; the last row is rest.
    everything : bool
        Use the engine for every simulation with all vases.
    group_size, group_ids : (V + 1,), (V + 1, N) arrays
        Receive the simulations that need the engine, by number of active vases.
    """
    group_size[:] = 0
    total = vase_q.shape[1]
    for i in range(q.shape[0]):
        ctrl[i, 0] = min(max(actions[i, 0], -1.0), 1.0)
        ctrl[i, 1] = min(max(actions[i, 1], -1.0), 1.0)
        touch[i] = False
        count = total
        if everything:
            for j in range(total):
                active[i, j] = True
        else:
            count = choose(
                q[i], v[i], vase_q[i], vase_v[i], status[i], reach, speed_gain, timestep * substeps, active[i]
            )
            for j in range(total):
                if active[i, j] and status[i, j] == FRESH:
                    row = min(clock[i], curve.shape[0] - 1)
                    vase_q[i, j, 2] = curve[row, 0]
                    vase_v[i, j, 2] = curve[row, 1]
                    status[i, j] = MOVING
                elif not active[i, j] and status[i, j] == STILL:
                    for n in range(6):
                        vase_v[i, j, n] = 0.0
                        vase_warm[i, j, n] = 0.0
        clock[i] += 1
        if count == 0 and not everything and q.shape[1] == 3:
            advance(q[i], v[i], ctrl[i, 0], ctrl[i, 1], timestep, substeps, acc[i])
            acc[i, 2] = 0.0
        else:
            group_ids[count, group_size[count]] = i
            group_size[count] += 1


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _put(row, start, values):
    """Write values into a row from a start on; quicker to compile and to run than assigning a slice."""
    for j in range(values.shape[0]):
        row[start + j] = values[j]


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _get(row, start, values):
    """Fill values from a row, from a start on."""
    for j in range(values.shape[0]):
        values[j] = row[start + j]


@numba.njit(nogil=True, cache=True, error_model="numpy")
def load(ids, columns, ctrl, q, v, warm, vase_q, vase_v, vase_warm, active, state):
    """Copy agents and active vases into the engine's state rows, whose fields start at ``columns``."""
    at_q, at_v, at_warm, at_ctrl = columns
    for i in ids:
        row = state[i]
        _put(row, at_ctrl, ctrl[i])
        _put(row, at_q, q[i])
        _put(row, at_v, v[i])
        _put(row, at_warm, warm[i])
        a, b = q.shape[1], v.shape[1]
        for j in range(vase_q.shape[1]):
            if active[i, j]:
                _put(row, at_q + a, vase_q[i, j])
                _put(row, at_v + b, vase_v[i, j])
                _put(row, at_warm + b, vase_warm[i, j])
                a, b = a + 7, b + 6


@numba.njit(nogil=True, cache=True, error_model="numpy")
def save(
    ids, columns, q, v, warm, acc, vase_q, vase_v, vase_warm, active, status, calm, touch, state, qacc,
    sensors,
):  # fmt: skip
    """Copy agents and active vases back from the engine, and let calm vases rest."""
    at_q, at_v, at_warm, _ = columns
    for i in ids:
        row = state[i]
        _get(row, at_q, q[i])
        _get(row, at_v, v[i])
        _get(row, at_warm, warm[i])
        _get(qacc[i], 0, acc[i])
        if q.shape[1] == 3:
            acc[i, 2] = 0.0  # the third coordinate is the heading
        for j in range(sensors.shape[1]):
            touch[i] = touch[i] or sensors[i, j] > 0.0
        a, b = q.shape[1], v.shape[1]
        for j in range(vase_q.shape[1]):
            if not active[i, j]:
                continue
            _get(row, at_q + a, vase_q[i, j])
            _get(row, at_v + b, vase_v[i, j])
            _get(row, at_warm + b, vase_warm[i, j])
            a, b = a + 7, b + 6
            w = vase_v[i, j]
            slow = w[0] * w[0] + w[1] * w[1] + w[2] * w[2] < CALM_SPEED * CALM_SPEED
            slow = slow and w[3] * w[3] + w[4] * w[4] + w[5] * w[5] < CALM_TURN * CALM_TURN
            calm[i, j] = calm[i, j] + 1 if slow else 0
            status[i, j] = STILL if calm[i, j] >= CALM_STEPS else MOVING
