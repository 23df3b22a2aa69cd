"""Observations, rewards and costs of the Goal and Circle tasks, in compiled code.

Arrays over the batch have one row per simulation. ``xy`` (R, 2) is the layout of one simulation: agent, then objects
in placement order; ``goal``, ``hazards`` and ``vases`` are the rows at which these kinds start. ``q`` and ``v`` are
the agent's state in MuJoCo's order and world axes (Point: 3 and 3 entries, Car: 13 and 11), ``acc`` (3,) is the
acceleration of its origin. Circle tasks have ``goal`` -1 and the circle's center, the origin, in place of the goal.
"""

from __future__ import annotations

import math

from steingate.compiled import compiled
from steingate.tasks.catalog import (
    AGENT_HEIGHT,
    CIRCLE_RADIUS,
    GOAL_RADIUS,
    GRAVITY,
    HAZARD_RADIUS,
    LIDAR_BINS,
    MAGNETIC_NORTH,
    VASE_SPEED_LIMIT,
    WALL,
)
from steingate.tasks.layouts import draw_goal, next_double

REWARD_LIMIT = 10.0


@compiled(error_model="numpy")
def rotation(quaternion):
    """Return the rotation matrix of a quaternion, which is normalized first, as a tuple of rows."""
    w, x, y, z = quaternion[0], quaternion[1], quaternion[2], quaternion[3]
    norm = math.sqrt(w * w + x * x + y * y + z * z)
    w, x, y, z = w / norm, x / norm, y / norm, z / norm
    return (
        (w * w + x * x - y * y - z * z, 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)),
        (2.0 * (x * y + w * z), w * w - x * x + y * y - z * z, 2.0 * (y * z - w * x)),
        (2.0 * (x * z - w * y), 2.0 * (y * z + w * x), w * w - x * x - y * y + z * z),
    )


@compiled(error_model="numpy")
def add_lidar_target(x, y, position, turn, lidar_range, bins):
    """Add a target at the world point (x, y) to the 16 bins of a lidar block.

    The signal 1 - distance / range goes to the bin of the target's direction in the agent's frame and, weighted
    linearly, to both neighbors; a bin keeps its maximum. The agent's height is subtracted too, so a tilted agent gets
    slightly displaced targets, as in the original. ``turn`` is the agent's rotation by rows.
    """
    wx, wy, wz = x - position[0], y - position[1], -position[2]
    ex = turn[0][0] * wx + turn[1][0] * wy + turn[2][0] * wz
    ey = turn[0][1] * wx + turn[1][1] * wy + turn[2][1] * wz
    signal = max(0.0, lidar_range - math.sqrt(ex * ex + ey * ey)) / lidar_range
    angle = math.atan2(ey, ex)
    if angle < 0.0:
        angle += 2.0 * math.pi
    place = angle / (2.0 * math.pi / LIDAR_BINS)
    b = min(int(place), LIDAR_BINS - 1)  # the smallest negative angles round up to a full turn
    t = place - b
    after, before = (b + 1) % LIDAR_BINS, (b - 1) % LIDAR_BINS
    bins[b] = max(bins[b], signal)
    bins[after] = max(bins[after], t * signal)
    bins[before] = max(bins[before], (1.0 - t) * signal)


@compiled(error_model="numpy")
def _observe(q, v, acc, xy, vase_q, goal, hazards, vases, lidar_range, obs):
    """Write one observation: sensors in the agent's frame, then a lidar block per kind of object.

    The sensors are accelerometer, velocimeter, gyro and magnetometer, 3 entries each; the Car also has the angular
    velocity (3) and the rotation matrix (9) of its ball.
    """
    car = q.shape[0] > 3
    if car:
        turn, height = rotation(q[3:7]), q[2]
    else:
        c, s = math.cos(q[2]), math.sin(q[2])
        turn, height = ((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)), AGENT_HEIGHT
    position = q[0], q[1], height
    vz = v[2] if car else 0.0
    for j in range(3):
        obs[j] = turn[0][j] * acc[0] + turn[1][j] * acc[1] + turn[2][j] * (acc[2] + GRAVITY)
        obs[3 + j] = turn[0][j] * v[0] + turn[1][j] * v[1] + turn[2][j] * vz
        obs[6 + j] = v[3 + j] if car else 0.0
        obs[9 + j] = turn[1][j] * MAGNETIC_NORTH
    first = 12
    if car:
        first, ball = 24, rotation(q[9:13])
        for j in range(3):
            obs[12 + j] = v[8 + j]
            for k in range(3):
                obs[15 + 3 * j + k] = ball[j][k]
    else:
        obs[8] = v[2]
    for j in range(first, obs.shape[0]):
        obs[j] = 0.0
    x, y = (xy[goal, 0], xy[goal, 1]) if goal >= 0 else (0.0, 0.0)
    add_lidar_target(x, y, position, turn, lidar_range, obs[first : first + LIDAR_BINS])
    for j in range(hazards, vases):
        bins = obs[first + LIDAR_BINS : first + 2 * LIDAR_BINS]
        add_lidar_target(xy[j, 0], xy[j, 1], position, turn, lidar_range, bins)
    for j in range(vase_q.shape[0]):
        add_lidar_target(vase_q[j, 0], vase_q[j, 1], position, turn, lidar_range, obs[first + 2 * LIDAR_BINS :])


@compiled(error_model="numpy")
def observe(ids, q, v, acc, xy, vase_q, goal, hazards, vases, lidar_range, obs):
    """Write the observations of the simulations ``ids``."""
    for i in ids:
        _observe(q[i], v[i], acc[i], xy[i], vase_q[i], goal, hazards, vases, lidar_range, obs[i])


@compiled(error_model="numpy")
def _distance(q, xy, row):
    dx, dy = q[0] - xy[row, 0], q[1] - xy[row, 1]
    return math.sqrt(dx * dx + dy * dy)


@compiled(error_model="numpy")
def finish_step(
    q, v, acc, xy, vase_q, vase_v, touch, distance, streams, low, high, keepout, goal, hazards, vases, level,
    lidar_range, obs, reward, cost, parts, terminated, goal_met,
):  # fmt: skip
    """Write the results of one step and replace goals that were reached.

    Reward and cost belong to the old goal; the observation shows the new one. ``distance`` (N,) is the distance to the
    goal before the step and receives the new one. The reward of Circle is 0.1 (x v_y - y v_x) / r / (1 + |r - R|) with
    the circle's radius R.
    """
    for i in range(q.shape[0]):
        if streams.shape[1] != 4:
            next_double(streams[i])  # the original draws its number of substeps, which is always ten
        parts[:, i] = 0.0
        if parts.shape[0] > 0:
            if goal < 0 and (abs(q[i, 0]) > WALL or (level > 1 and abs(q[i, 1]) > WALL)):
                parts[0, i] = 1.0
            for j in range(hazards, vases):
                if _distance(q[i], xy[i], j) < HAZARD_RADIUS:
                    parts[0, i] = 1.0
        if parts.shape[0] > 1:
            parts[1, i] = 1.0 if touch[i] else 0.0
            for j in range(vase_v.shape[1]):
                w = vase_v[i, j]
                if math.sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]) >= VASE_SPEED_LIMIT:
                    parts[2, i] = 1.0
        cost[i] = 0.0
        for part in range(parts.shape[0]):
            cost[i] = max(cost[i], parts[part, i])
        terminated[i] = goal_met[i] = False
        if goal < 0:
            x, y = q[i, 0], q[i, 1]
            r = math.sqrt(x * x + y * y)
            gain = 0.1 * ((x * v[i, 1] - y * v[i, 0]) / r) / (1.0 + abs(r - CIRCLE_RADIUS))
        else:
            d = _distance(q[i], xy[i], goal)
            gain = distance[i] - d
            distance[i] = d
            if d <= GOAL_RADIUS:
                gain += 1.0
                goal_met[i] = True
                xy[i, 0, 0], xy[i, 0, 1] = q[i, 0], q[i, 1]
                for j in range(vase_q.shape[1]):
                    xy[i, vases + j, 0], xy[i, vases + j, 1] = vase_q[i, j, 0], vase_q[i, j, 1]
                terminated[i] = not draw_goal(streams[i], low, high, keepout, goal, xy[i])
                distance[i] = _distance(q[i], xy[i], goal)
        reward[i] = min(max(gain, -REWARD_LIMIT), REWARD_LIMIT)
        _observe(q[i], v[i], acc[i], xy[i], vase_q[i], goal, hazards, vases, lidar_range, obs[i])


@compiled(error_model="numpy")
def _write_upright(yaw, pose):
    """Write the quaternion of a rotation about the vertical axis into ``pose[3:7]``, which is zero before.

    It is normalized, because rounding decides whether the wheels of a Car that starts exactly on the floor carry load:
    a quaternion that is too short would lift them.
    """
    w, z = math.cos(yaw / 2.0), math.sin(yaw / 2.0)
    norm = math.sqrt(w * w + z * z)
    pose[3], pose[6] = w / norm, z / norm


@compiled(error_model="numpy")
def start_episodes(ids, q, xy, yaw, vase_q, vase_height, goal, vases, distance):
    """Move agents and vases of the simulations ``ids`` to their layouts; their poses are zero before."""
    for i in ids:
        q[i, 0] = xy[i, 0, 0]
        q[i, 1] = xy[i, 0, 1]
        if q.shape[1] > 3:
            q[i, 2] = AGENT_HEIGHT
            _write_upright(yaw[i, 0], q[i])
            q[i, 9] = 1.0
        else:
            q[i, 2] = yaw[i, 0]
        if goal >= 0:
            distance[i] = _distance(q[i], xy[i], goal)
        for j in range(vase_q.shape[1]):
            _write_upright(yaw[i, vases + j], vase_q[i, j])
            vase_q[i, j, 0] = xy[i, vases + j, 0]
            vase_q[i, j, 1] = xy[i, vases + j, 1]
            vase_q[i, j, 2] = vase_height
