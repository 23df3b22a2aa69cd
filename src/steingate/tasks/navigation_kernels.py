"""Observations, rewards and costs of the Goal and Circle tasks, in compiled code.

Arrays over the batch have one row per simulation. ``xy`` (R, 2) is the layout of one simulation: agent, then objects
in placement order; ``goal``, ``hazards`` and ``vases`` are the rows at which these kinds start. ``q`` and ``v`` are
the agent's state in MuJoCo's order and world axes (Point: 3 and 3 entries, Car: 13 and 11), ``acc`` (3,) is the
acceleration of its origin. ``position`` (3,), ``turn`` (3, 3) and ``ball`` (3, 3) are scratch arrays.
"""

from __future__ import annotations

import math

import numpy as np

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
def write_rotation(quaternion, out):
    """Write the rotation matrix (3, 3) of a quaternion, which is normalized first."""
    w, x, y, z = quaternion[0], quaternion[1], quaternion[2], quaternion[3]
    norm = math.sqrt(w * w + x * x + y * y + z * z)
    w, x, y, z = w / norm, x / norm, y / norm, z / norm
    out[0, 0] = w * w + x * x - y * y - z * z
    out[0, 1] = 2.0 * (x * y - w * z)
    out[0, 2] = 2.0 * (x * z + w * y)
    out[1, 0] = 2.0 * (x * y + w * z)
    out[1, 1] = w * w - x * x + y * y - z * z
    out[1, 2] = 2.0 * (y * z - w * x)
    out[2, 0] = 2.0 * (x * z - w * y)
    out[2, 1] = 2.0 * (y * z + w * x)
    out[2, 2] = w * w - x * x - y * y + z * z


@compiled(error_model="numpy")
def add_lidar_target(x, y, position, turn, lidar_range, bins):
    """Add a target at the world point (x, y) to the 16 bins of a lidar block.

    The signal 1 - distance / range goes to the bin of the target's direction in the agent's frame and, weighted
    linearly, to both neighbors; a bin keeps its maximum. The agent's height is subtracted too, so a tilted agent gets
    slightly displaced targets, as in the original.
    """
    wx, wy, wz = x - position[0], y - position[1], -position[2]
    ex = turn[0, 0] * wx + turn[1, 0] * wy + turn[2, 0] * wz
    ey = turn[0, 1] * wx + turn[1, 1] * wy + turn[2, 1] * wz
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
def _write_sensors(q, v, acc, position, turn, ball, obs):
    """Write the 12 (Point) or 24 (Car) sensor entries of ``obs``, and ``position``, ``turn`` and ``ball``.

    Accelerometer, velocimeter, gyro and magnetometer in the agent's frame; the Car also has the angular velocity and
    the rotation matrix of its ball.
    """
    car = q.shape[0] > 3
    if car:
        write_rotation(q[3:7], turn)
        position[2] = q[2]
    else:
        c, s = math.cos(q[2]), math.sin(q[2])
        turn[0, 0], turn[0, 1], turn[0, 2] = c, -s, 0.0
        turn[1, 0], turn[1, 1], turn[1, 2] = s, c, 0.0
        turn[2, 0], turn[2, 1], turn[2, 2] = 0.0, 0.0, 1.0
        position[2] = AGENT_HEIGHT
    position[0], position[1] = q[0], q[1]
    vz = v[2] if car else 0.0
    for j in range(3):
        obs[j] = turn[0, j] * acc[0] + turn[1, j] * acc[1] + turn[2, j] * (acc[2] + GRAVITY)
        obs[3 + j] = turn[0, j] * v[0] + turn[1, j] * v[1] + turn[2, j] * vz
        obs[6 + j] = v[3 + j] if car else 0.0
        obs[9 + j] = turn[1, j] * MAGNETIC_NORTH
    if car:
        write_rotation(q[9:13], ball)
        for j in range(3):
            obs[12 + j] = v[8 + j]
            for k in range(3):
                obs[15 + 3 * j + k] = ball[j, k]
    else:
        obs[8] = v[2]


@compiled(error_model="numpy")
def _observe_goal(q, v, acc, xy, vase_q, goal, hazards, vases, lidar_range, position, turn, ball, obs):
    """Write one observation of a Goal task."""
    _write_sensors(q, v, acc, position, turn, ball, obs)
    first = 24 if q.shape[0] > 3 else 12
    for j in range(first, obs.shape[0]):
        obs[j] = 0.0
    add_lidar_target(xy[goal, 0], xy[goal, 1], position, turn, lidar_range, obs[first : first + LIDAR_BINS])
    if obs.shape[0] > first + LIDAR_BINS:
        bins = obs[first + LIDAR_BINS : first + 2 * LIDAR_BINS]
        for j in range(hazards, vases):
            add_lidar_target(xy[j, 0], xy[j, 1], position, turn, lidar_range, bins)
        bins = obs[first + 2 * LIDAR_BINS :]
        for j in range(vase_q.shape[0]):
            add_lidar_target(vase_q[j, 0], vase_q[j, 1], position, turn, lidar_range, bins)


@compiled(error_model="numpy")
def _observe_circle(q, v, acc, lidar_range, position, turn, ball, obs):
    """Write one observation of a Circle task."""
    _write_sensors(q, v, acc, position, turn, ball, obs)
    first = obs.shape[0] - LIDAR_BINS
    for j in range(first, obs.shape[0]):
        obs[j] = 0.0
    add_lidar_target(0.0, 0.0, position, turn, lidar_range, obs[first:])


@compiled(error_model="numpy")
def _goal_distance(q, xy, goal):
    dx, dy = q[0] - xy[goal, 0], q[1] - xy[goal, 1]
    return math.sqrt(dx * dx + dy * dy)


@compiled(error_model="numpy")
def _inside_hazard(q, xy, hazards, vases):
    for j in range(hazards, vases):
        dx, dy = q[0] - xy[j, 0], q[1] - xy[j, 1]
        if math.sqrt(dx * dx + dy * dy) < HAZARD_RADIUS:
            return True
    return False


@compiled(error_model="numpy")
def _any_vase_moves(vase_v):
    """Return whether the origin of a vase has at least the speed that costs."""
    for j in range(vase_v.shape[0]):
        s = vase_v[j, 0] * vase_v[j, 0] + vase_v[j, 1] * vase_v[j, 1] + vase_v[j, 2] * vase_v[j, 2]
        if math.sqrt(s) >= VASE_SPEED_LIMIT:
            return True
    return False


@compiled(error_model="numpy")
def _circle_reward(q, v):
    """Return 0.1 (x v_y - y v_x) / r / (1 + |r - R|) with the circle's radius R."""
    x, y = q[0], q[1]
    r = math.sqrt(x * x + y * y)
    return 0.1 * ((x * v[1] - y * v[0]) / r) / (1.0 + abs(r - CIRCLE_RADIUS))


@compiled(error_model="numpy")
def finish_goal(
    q, v, acc, xy, vase_q, vase_v, touch, distance, streams, low, high, keepout, goal, hazards, vases,
    lidar_range, obs, reward, cost, parts, terminated, goal_met,
):  # fmt: skip
    """Write the results of one step of a Goal task and replace goals that were reached.

    Reward and cost belong to the old goal; the observation shows the new one. ``distance`` (N,) is the distance to the
    goal before the step and receives the new one.
    """
    position, turn, ball = np.empty(3), np.empty((3, 3)), np.empty((3, 3))
    for i in range(q.shape[0]):
        if streams.shape[1] != 4:
            next_double(streams[i])  # the original draws its number of substeps, which is always ten
        d = _goal_distance(q[i], xy[i], goal)
        met = d <= GOAL_RADIUS
        gain = distance[i] - d
        if met:
            gain += 1.0
        reward[i] = min(max(gain, -REWARD_LIMIT), REWARD_LIMIT)
        distance[i] = d
        cost[i] = 0.0
        if parts.shape[0] > 0:
            parts[0, i] = 1.0 if _inside_hazard(q[i], xy[i], hazards, vases) else 0.0
            cost[i] = parts[0, i]
        if parts.shape[0] > 1:
            parts[1, i] = 1.0 if touch[i] else 0.0
            parts[2, i] = 1.0 if _any_vase_moves(vase_v[i]) else 0.0
            cost[i] = max(cost[i], parts[1, i], parts[2, i])
        terminated[i] = False
        goal_met[i] = met
        if met:
            xy[i, 0, 0], xy[i, 0, 1] = q[i, 0], q[i, 1]
            for j in range(vase_q.shape[1]):
                xy[i, vases + j, 0], xy[i, vases + j, 1] = vase_q[i, j, 0], vase_q[i, j, 1]
            terminated[i] = not draw_goal(streams[i], low, high, keepout, goal, xy[i])
            distance[i] = _goal_distance(q[i], xy[i], goal)
        _observe_goal(
            q[i], v[i], acc[i], xy[i], vase_q[i], goal, hazards, vases, lidar_range, position, turn, ball, obs[i]
        )


@compiled(error_model="numpy")
def finish_circle(q, v, acc, streams, level, lidar_range, obs, reward, cost, parts, terminated, goal_met):
    """Write the results of one step of a Circle task."""
    position, turn, ball = np.empty(3), np.empty((3, 3)), np.empty((3, 3))
    for i in range(q.shape[0]):
        if streams.shape[1] != 4:
            next_double(streams[i])
        reward[i] = min(max(_circle_reward(q[i], v[i]), -REWARD_LIMIT), REWARD_LIMIT)
        out = (level > 0 and abs(q[i, 0]) > WALL) or (level > 1 and abs(q[i, 1]) > WALL)
        cost[i] = 1.0 if out else 0.0
        if parts.shape[0] > 0:
            parts[0, i] = cost[i]
        terminated[i] = False
        goal_met[i] = False
        _observe_circle(q[i], v[i], acc[i], lidar_range, position, turn, ball, obs[i])


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
def start_episodes(ids, q, xy, yaw, vase_q, vase_height, vases):
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
        for j in range(vase_q.shape[1]):
            _write_upright(yaw[i, vases + j], vase_q[i, j])
            vase_q[i, j, 0] = xy[i, vases + j, 0]
            vase_q[i, j, 1] = xy[i, vases + j, 1]
            vase_q[i, j, 2] = vase_height


@compiled(error_model="numpy")
def observe_goal_starts(ids, q, v, acc, xy, vase_q, distance, goal, hazards, vases, lidar_range, obs):
    """Write the first observations of episodes of a Goal task, and the distances to the goals."""
    position, turn, ball = np.empty(3), np.empty((3, 3)), np.empty((3, 3))
    for i in ids:
        distance[i] = _goal_distance(q[i], xy[i], goal)
        _observe_goal(
            q[i], v[i], acc[i], xy[i], vase_q[i], goal, hazards, vases, lidar_range, position, turn, ball, obs[i]
        )


@compiled(error_model="numpy")
def observe_circle_starts(ids, q, v, acc, lidar_range, obs):
    """Write the first observations of episodes of a Circle task."""
    position, turn, ball = np.empty(3), np.empty((3, 3)), np.empty((3, 3))
    for i in ids:
        _observe_circle(q[i], v[i], acc[i], lidar_range, position, turn, ball, obs[i])
