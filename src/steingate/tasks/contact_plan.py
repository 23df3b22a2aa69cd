"""Who needs the engine in a step, from which substep on and with which vases: decided in compiled code.

An agent moves by its own recursion up to the substep at which it may touch a vase; the engine makes the rest.
A vase the agent cannot reach in that time, and that no moving vase can reach, takes no part in it. Untouched
since the reset it follows the settling curve (the same for every vase: it starts slightly inside the floor
and sinks to rest within a second); later it lies still. So each simulation needs an engine model with only
its active vases, and most need none.
"""

from __future__ import annotations

import math

import numpy as np

from steingate.compiled import compiled
from steingate.tasks.car import advance
from steingate.tasks.floor_system import SIZE
from steingate.tasks.footprint import SLACK, VASE_BALL, gap
from steingate.tasks.point import run

FRESH, STILL, MOVING = 0, 1, 2  # vase status: on the settling curve, at rest, in the engine until calm

# what became of a step: made without the engine, or why not
REASONS = ("free", "forced", "moving vase", "touch", "grazing", "chassis", "lying", "unsolved")
FREE, FORCED, MOVING_VASE, TOUCH = 0, 1, 2, 3  # then the Car's own, in the order of its codes

CALM_SPEED = 1e-5  # a tenth of the speed that costs
CALM_TURN = 1e-4
CALM_STEPS = 10


@compiled(error_model="numpy")
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
    far = 2.0 * VASE_BALL + fastest * period + SLACK
    grown = count > 0
    while grown:  # a pushed vase may push its neighbors, and they theirs
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


@compiled(error_model="numpy")
def look_out(q, v, vase_q, status, reach, speed_gain, period, near):
    """Return how many vases an agent may reach within a step, marked in ``near``; -1 if some vase moves."""
    close = 0
    if vase_q.shape[0] == 0:
        return close
    far = reach + (math.sqrt(v[0] * v[0] + v[1] * v[1]) + speed_gain) * period
    for j in range(vase_q.shape[0]):
        if status[j] == MOVING:
            return -1
        dx, dy = q[0] - vase_q[j, 0], q[1] - vase_q[j, 1]
        near[j] = (
            dx * dx + dy * dy < (far + VASE_BALL) * (far + VASE_BALL) and gap(q[0], q[1], vase_q[j]) < far
        )
        close += near[j]
    return close


@compiled(error_model="numpy")
def plan(
    actions, ctrl, q, v, acc, vase_q, vase_v, vase_warm, status, clock, curve, touch, parts, reach,
    speed_gain, timestep, substeps, per_step, everything, cars, edges, active, group_size, group_ids, tally,
):  # fmt: skip
    """Clip the actions, move every agent as far as it goes without the engine, and list who needs it then.

    Returns how many simulations need it.

    Parameters
    ----------
    curve : (T, 2) array
        Height and vertical speed of an untouched vase after 0, 1, ... substeps; the last row is rest.
    substeps, per_step : int
        Substeps to make now, and substeps of an environment step, in which ``clock`` counts.
    everything : bool
        Use the engine for every simulation with all vases.
    cars, edges : arrays
        The Car's numbers and active edges; ``cars`` is None for the Point.
    group_size, group_ids : (V + 1, S + 1), (V + 1, S + 1, N) arrays
        Receive the simulations that need the engine, by number of active vases and of substeps left.
    tally : (8,) int array
        The steps are counted here, by the index in ``REASONS``.
    """
    group_size[:] = 0
    total, waiting = vase_q.shape[1], 0
    near, work = np.zeros(total, np.bool_), np.empty(SIZE)
    for i in range(q.shape[0]):
        ctrl[i, 0] = min(max(actions[i, 0], -1.0), 1.0)
        ctrl[i, 1] = min(max(actions[i, 1], -1.0), 1.0)
        touch[i] = False
        done, reason = 0, FORCED
        if not everything:
            close = look_out(q[i], v[i], vase_q[i], status[i], reach, speed_gain, timestep * substeps, near)
            if close < 0:
                reason = MOVING_VASE
            elif cars is None:
                done = run(
                    q[i], v[i], ctrl[i, 0], ctrl[i, 1], timestep, substeps, parts, vase_q[i], near, close,
                    reach, acc[i],
                )  # fmt: skip
                reason = TOUCH if done <= substeps else FREE
                acc[i, 2] = 0.0  # the third coordinate is the heading
            else:
                done = advance(
                    cars, q[i], v[i], edges[i], ctrl[i, 0], ctrl[i, 1], substeps, parts, vase_q[i], near,
                    close, reach, acc[i], work,
                )  # fmt: skip
                reason = TOUCH if done <= substeps else FREE
                if done < 0:
                    done, reason = 0, TOUCH - done
        clock[i] += 1
        tally[reason] += substeps > 0
        if reason == FREE:
            for j in range(total):
                active[i, j] = False
                if status[i, j] == STILL:
                    _stop(vase_v, vase_warm, i, j)
            continue
        count, left = total, substeps - done
        if everything:
            for j in range(total):
                active[i, j] = True
        else:
            count = choose(
                q[i], v[i], vase_q[i], vase_v[i], status[i], reach, speed_gain, timestep * left, active[i]
            )
            for j in range(total):
                if status[i, j] == STILL and not active[i, j]:
                    _stop(vase_v, vase_warm, i, j)
                elif status[i, j] == FRESH and active[i, j]:
                    row = min((clock[i] - 1) * per_step + done, curve.shape[0] - 1)
                    vase_q[i, j, 2] = curve[row, 0]
                    vase_v[i, j, 2] = curve[row, 1]
                    status[i, j] = MOVING
        group_ids[count, left, group_size[count, left]] = i
        group_size[count, left] += 1
        waiting += 1
    return waiting


@compiled(error_model="numpy")
def _stop(vase_v, vase_warm, i, j):
    """Stop a vase that takes no part and is at rest."""
    for n in range(6):
        vase_v[i, j, n] = 0.0
        vase_warm[i, j, n] = 0.0


@compiled(error_model="numpy")
def _put(row, start, values):
    """Write values into a row from a start on; quicker to compile and to run than assigning a slice."""
    for j in range(values.shape[0]):
        row[start + j] = values[j]


@compiled(error_model="numpy")
def _get(row, start, values):
    """Fill values from a row, from a start on."""
    for j in range(values.shape[0]):
        values[j] = row[start + j]


@compiled(error_model="numpy")
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


@compiled(error_model="numpy")
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
