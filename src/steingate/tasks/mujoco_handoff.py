"""Choice between closed-form dynamics and MuJoCo, per simulation and substep, in compiled code.

An agent moves by its closed-form dynamics up to the substep before which it may touch a vase; MuJoCo makes the other
substeps. A vase that neither the agent nor a moving vase can reach in that time is left out of the MuJoCo model:
untouched since the reset it follows the settling curve (the same for every vase: it starts slightly inside the floor
and comes to rest within a second), later it is at rest. So a simulation needs a model with its active vases only, and
most simulations need none.
"""

from __future__ import annotations

import math

import numpy as np

from steingate.compiled import compiled
from steingate.tasks.car import advance as advance_car
from steingate.tasks.car_contacts import SIZE
from steingate.tasks.geometry import TILT_MARGIN, VASE_BALL, vase_gap
from steingate.tasks.point import advance as advance_point

SETTLING, AT_REST, MOVING = 0, 1, 2  # status of a vase; moving vases are always simulated by MuJoCo

# How a step was made: without MuJoCo, or the reason for MuJoCo. The last four follow the codes of ``car.advance``.
STEP_KINDS = (
    "closed form", "physics='mujoco'", "moving vase", "vase contact",
    "ambiguous contact", "chassis contact", "wheel on side", "not converged",
)  # fmt: skip
CLOSED_FORM, REQUESTED, MOVING_VASE, VASE_CONTACT = 0, 1, 2, 3

# A vase slower than these for CALM_STEPS steps is at rest; the first is a tenth of the speed that costs.
CALM_SPEED = 1e-5  # m/s
CALM_TURN = 1e-4  # rad/s
CALM_STEPS = 10


@compiled(error_model="numpy")
def choose_active_vases(q, v, vase_q, vase_v, status, reach, speed_gain, period, active):
    """Mark in ``active`` (V,) the vases that may move within ``period`` seconds; return their number."""
    count = 0
    total = vase_q.shape[0]
    speed = math.sqrt(v[0] * v[0] + v[1] * v[1]) + speed_gain
    fastest = 0.0  # of anything that can hit a vase
    for j in range(total):
        near = vase_gap(q[0], q[1], vase_q[j]) < reach + speed * period
        active[j] = near or status[j] == MOVING
        if active[j]:
            count += 1
            w = vase_v[j]
            fastest = max(fastest, math.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]))
        if near:
            fastest = max(fastest, 2.0 * speed)
    far = 2.0 * VASE_BALL + fastest * period + TILT_MARGIN
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
def _find_near_vases(q, v, vase_q, status, reach, speed_gain, period, near):
    """Mark in ``near`` (V,) the vases the agent may reach; return their number, or -1 if a vase is moving."""
    close = 0
    if vase_q.shape[0] == 0:
        return close
    far = reach + (math.sqrt(v[0] * v[0] + v[1] * v[1]) + speed_gain) * period
    for j in range(vase_q.shape[0]):
        if status[j] == MOVING:
            return -1
        dx, dy = q[0] - vase_q[j, 0], q[1] - vase_q[j, 1]
        within_ball = dx * dx + dy * dy < (far + VASE_BALL) * (far + VASE_BALL)
        near[j] = within_ball and vase_gap(q[0], q[1], vase_q[j]) < far
        close += near[j]
    return close


@compiled(error_model="numpy")
def advance_agents(
    actions, ctrl, q, v, acc, vase_q, vase_v, status, clock, curve, touch, parts, reach, speed_gain, timestep,
    substeps, per_step, use_mujoco, cars, edges, active, group_size, group_ids, step_counts,
):  # fmt: skip
    """Clip the actions, advance every agent as far as possible without MuJoCo, and group those that need it.

    Returns the number of simulations that need MuJoCo, and writes their indices to ``group_ids`` (V + 1, S + 1, N) and
    the counts to ``group_size`` (V + 1, S + 1), by number of active vases and of substeps left. The other arrays are
    those of ``navigation.Navigation``. ``curve`` (T, 2) has height and vertical speed of an untouched vase after 0, 1,
    ... substeps; the last row is rest. ``parts``, ``reach`` and ``speed_gain`` are the outline of the agent, its reach
    from the origin and a bound on the increase of its speed. ``substeps`` are made now, ``per_step`` is their number in
    an environment step. ``cars`` has the parameters of the Car; None for the Point.
    """
    group_size[:] = 0
    total, waiting = vase_q.shape[1], 0
    near, work = np.zeros(total, np.bool_), np.empty(SIZE)
    for i in range(q.shape[0]):
        ctrl[i, 0] = min(max(actions[i, 0], -1.0), 1.0)
        ctrl[i, 1] = min(max(actions[i, 1], -1.0), 1.0)
        touch[i] = False
        done, kind = 0, REQUESTED
        if not use_mujoco:
            close = _find_near_vases(q[i], v[i], vase_q[i], status[i], reach, speed_gain, timestep * substeps, near)
            if close < 0:
                kind = MOVING_VASE
            elif cars is None:
                done = advance_point(
                    q[i], v[i], ctrl[i, 0], ctrl[i, 1], timestep, substeps, parts, vase_q[i], near, close, reach, acc[i]
                )
                kind = VASE_CONTACT if done <= substeps else CLOSED_FORM
                acc[i, 2] = 0.0  # the third coordinate is the heading
            else:
                done = advance_car(
                    cars, q[i], v[i], edges[i], ctrl[i, 0], ctrl[i, 1], substeps, parts, vase_q[i], near, close, reach,
                    acc[i], work,
                )  # fmt: skip
                kind = VASE_CONTACT if done <= substeps else CLOSED_FORM
                if done < 0:
                    done, kind = 0, VASE_CONTACT - done
        clock[i] += 1
        step_counts[kind] += substeps > 0
        left = substeps - done
        if kind == CLOSED_FORM or use_mujoco:
            count = total if use_mujoco else 0
            active[i] = use_mujoco
        else:
            count = choose_active_vases(
                q[i], v[i], vase_q[i], vase_v[i], status[i], reach, speed_gain, timestep * left, active[i]
            )
        for j in range(total):
            if status[i, j] == AT_REST and not active[i, j]:
                vase_v[i, j] = 0.0
            elif status[i, j] == SETTLING and active[i, j]:
                row = min((clock[i] - 1) * per_step + done, curve.shape[0] - 1)
                vase_q[i, j, 2] = curve[row, 0]
                vase_v[i, j, 2] = curve[row, 1]
                status[i, j] = MOVING
        if kind == CLOSED_FORM:
            continue
        group_ids[count, left, group_size[count, left]] = i
        group_size[count, left] += 1
        waiting += 1
    return waiting


@compiled(error_model="numpy")
def _put(row, start, values):
    """Write values into a row; faster to compile and to run than assigning a slice."""
    for j in range(values.shape[0]):
        row[start + j] = values[j]


@compiled(error_model="numpy")
def _get(row, start, values):
    """Fill values from a row."""
    for j in range(values.shape[0]):
        values[j] = row[start + j]


@compiled(error_model="numpy")
def write_mujoco_state(ids, q, v, vase_q, vase_v, active, ctrl, columns, state):
    """Copy agents and active vases into MuJoCo's state rows, in which fields start at ``columns``."""
    at_q, at_v, at_ctrl = columns
    for i in ids:
        row = state[i]
        _put(row, at_ctrl, ctrl[i])
        _put(row, at_q, q[i])
        _put(row, at_v, v[i])
        a, b = q.shape[1], v.shape[1]
        for j in range(vase_q.shape[1]):
            if active[i, j]:
                _put(row, at_q + a, vase_q[i, j])
                _put(row, at_v + b, vase_v[i, j])
                a, b = a + 7, b + 6


@compiled(error_model="numpy")
def read_mujoco_state(ids, q, v, vase_q, vase_v, active, acc, status, calm, touch, columns, state, qacc, sensors):
    """Copy agents and active vases back from MuJoCo, and update the status of the vases."""
    at_q, at_v, _ = columns
    for i in ids:
        row = state[i]
        _get(row, at_q, q[i])
        _get(row, at_v, v[i])
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
            a, b = a + 7, b + 6
            w = vase_v[i, j]
            slow = w[0] * w[0] + w[1] * w[1] + w[2] * w[2] < CALM_SPEED * CALM_SPEED
            slow = slow and w[3] * w[3] + w[4] * w[4] + w[5] * w[5] < CALM_TURN * CALM_TURN
            calm[i, j] = calm[i, j] + 1 if slow else 0
            status[i, j] = AT_REST if calm[i, j] >= CALM_STEPS else MOVING
