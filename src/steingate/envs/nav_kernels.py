"""Observation, reward, cost and goal redraw of the navigation tasks, compiled, over the whole batch.

Rows of ``xy`` are the layout: agent, then objects in placement order. ``goal``, ``hazards`` and ``vases`` say
where in it the kinds start. Agent states are ``q`` and ``v`` in engine order (Point: 3 and 3 entries, Car: 13
and 11).
"""

from __future__ import annotations

import math

import numba
import numpy as np

from steingate.envs.catalog import (
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
from steingate.envs.layouts import draw_goal
from steingate.envs.streams import next_double

REWARD_LIMIT = 10.0


@numba.njit(nogil=True, cache=True, error_model="numpy")
def rotation(quaternion, out):
    """Write the rotation matrix of a quaternion, normalised first, into ``out`` (3, 3)."""
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


@numba.njit(nogil=True, cache=True, error_model="numpy")
def see(x, y, position, turn, lidar_range, bins):
    """Enter one target at the world point (x, y) into the 16 lidar bins.

    Parameters
    ----------
    x, y : float
        The target.
    position : (3,) array
        The agent's origin; its height is subtracted too, so a tilted agent sees targets slightly displaced.
    turn : (3, 3) array
        The agent's rotation matrix.
    lidar_range : float
        Distance at which the signal is 0.
    bins : (16,) array
        Changed in place.
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


@numba.njit(nogil=True, cache=True, error_model="numpy")
def sense(q, v, acc, position, turn, ball, obs):
    """Write the sensor entries of the observation, and the agent's position and rotation matrix.

    Parameters
    ----------
    q, v : arrays
        The agent's state.
    acc : (3,) array
        Acceleration of the agent's origin in world axes.
    position, turn, ball : (3,), (3, 3) and (3, 3) arrays
        Receive origin, rotation matrix and, of a Car, the ball's rotation matrix.
    obs : array
        Receives 12 (Point) or 24 (Car) entries.
    """
    car = q.shape[0] > 3
    if car:
        rotation(q[3:7], turn)
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
        rotation(q[9:13], ball)
        for j in range(3):
            obs[12 + j] = v[8 + j]
            for k in range(3):
                obs[15 + 3 * j + k] = ball[j, k]
    else:
        obs[8] = v[2]


@numba.njit(nogil=True, cache=True, error_model="numpy")
def observe_goal(q, v, acc, xy, vase_q, goal, hazards, vases, lidar_range, position, turn, ball, obs):
    """Write one observation of a Goal task; the other arrays but ``obs`` are scratch."""
    sense(q, v, acc, position, turn, ball, obs)
    first = 24 if q.shape[0] > 3 else 12
    for j in range(first, obs.shape[0]):
        obs[j] = 0.0
    see(xy[goal, 0], xy[goal, 1], position, turn, lidar_range, obs[first : first + LIDAR_BINS])
    if obs.shape[0] > first + LIDAR_BINS:
        bins = obs[first + LIDAR_BINS : first + 2 * LIDAR_BINS]
        for j in range(hazards, vases):
            see(xy[j, 0], xy[j, 1], position, turn, lidar_range, bins)
        bins = obs[first + 2 * LIDAR_BINS :]
        for j in range(vase_q.shape[0]):
            see(vase_q[j, 0], vase_q[j, 1], position, turn, lidar_range, bins)


@numba.njit(nogil=True, cache=True, error_model="numpy")
def observe_circle(q, v, acc, lidar_range, position, turn, ball, obs):
    """Write one observation of a Circle task."""
    sense(q, v, acc, position, turn, ball, obs)
    first = obs.shape[0] - LIDAR_BINS
    for j in range(first, obs.shape[0]):
        obs[j] = 0.0
    see(0.0, 0.0, position, turn, lidar_range, obs[first:])


@numba.njit(nogil=True, cache=True, error_model="numpy")
def goal_distance(q, xy, goal):
    """Return the planar distance from the agent to the goal."""
    dx, dy = q[0] - xy[goal, 0], q[1] - xy[goal, 1]
    return math.sqrt(dx * dx + dy * dy)


@numba.njit(nogil=True, cache=True, error_model="numpy")
def inside_hazard(q, xy, hazards, vases):
    """Return whether the agent's origin is inside some hazard."""
    for j in range(hazards, vases):
        dx, dy = q[0] - xy[j, 0], q[1] - xy[j, 1]
        if math.sqrt(dx * dx + dy * dy) < HAZARD_RADIUS:
            return True
    return False


@numba.njit(nogil=True, cache=True, error_model="numpy")
def some_vase_moves(vase_v):
    """Return whether the origin of some vase has at least the speed that costs."""
    for j in range(vase_v.shape[0]):
        s = vase_v[j, 0] * vase_v[j, 0] + vase_v[j, 1] * vase_v[j, 1] + vase_v[j, 2] * vase_v[j, 2]
        if math.sqrt(s) >= VASE_SPEED_LIMIT:
            return True
    return False


@numba.njit(nogil=True, cache=True, error_model="numpy")
def circle_reward(q, v):
    """Return the reward of a Circle task: angular progress, most on the circle itself."""
    x, y = q[0], q[1]
    r = math.sqrt(x * x + y * y)
    return 0.1 * ((x * v[1] - y * v[0]) / r) / (1.0 + abs(r - CIRCLE_RADIUS))


@numba.njit(nogil=True, cache=True, error_model="numpy")
def finish_goal(
    q, v, acc, xy, vase_q, vase_v, touch, last, streams, low, high, keepout, goal, hazards, vases,
    lidar_range, obs, reward, cost, parts, terminated, goal_met,
):  # fmt: skip
    """Write all results of one step of a Goal task, in the original's order, and redraw reached goals.

    Reward and cost belong to the old goal; the observation already shows the new one.
    """
    position, turn, ball = np.empty(3), np.empty((3, 3)), np.empty((3, 3))
    for i in range(q.shape[0]):
        if streams.shape[1] != 4:
            next_double(streams[i])  # the original draws its number of substeps, always ten
        d = goal_distance(q[i], xy[i], goal)
        met = d <= GOAL_RADIUS
        gain = last[i] - d
        if met:
            gain += 1.0
        reward[i] = min(max(gain, -REWARD_LIMIT), REWARD_LIMIT)
        last[i] = d
        cost[i] = 0.0
        if parts.shape[0] > 0:
            parts[0, i] = 1.0 if inside_hazard(q[i], xy[i], hazards, vases) else 0.0
            cost[i] = parts[0, i]
        if parts.shape[0] > 1:
            parts[1, i] = 1.0 if touch[i] else 0.0
            parts[2, i] = 1.0 if some_vase_moves(vase_v[i]) else 0.0
            cost[i] = max(cost[i], parts[1, i], parts[2, i])
        terminated[i] = False
        goal_met[i] = met
        if met:
            xy[i, 0, 0], xy[i, 0, 1] = q[i, 0], q[i, 1]
            for j in range(vase_q.shape[1]):
                xy[i, vases + j, 0], xy[i, vases + j, 1] = vase_q[i, j, 0], vase_q[i, j, 1]
            terminated[i] = not draw_goal(streams[i], low, high, keepout, goal, xy[i])
            last[i] = goal_distance(q[i], xy[i], goal)
        observe_goal(
            q[i],
            v[i],
            acc[i],
            xy[i],
            vase_q[i],
            goal,
            hazards,
            vases,
            lidar_range,
            position,
            turn,
            ball,
            obs[i],
        )


@numba.njit(nogil=True, cache=True, error_model="numpy")
def finish_circle(q, v, acc, streams, level, lidar_range, obs, reward, cost, parts, terminated, goal_met):
    """Write all results of one step of a Circle task."""
    position, turn, ball = np.empty(3), np.empty((3, 3)), np.empty((3, 3))
    for i in range(q.shape[0]):
        if streams.shape[1] != 4:
            next_double(streams[i])
        reward[i] = min(max(circle_reward(q[i], v[i]), -REWARD_LIMIT), REWARD_LIMIT)
        out = (level > 0 and abs(q[i, 0]) > WALL) or (level > 1 and abs(q[i, 1]) > WALL)
        cost[i] = 1.0 if out else 0.0
        if parts.shape[0] > 0:
            parts[0, i] = cost[i]
        terminated[i] = False
        goal_met[i] = False
        observe_circle(q[i], v[i], acc[i], lidar_range, position, turn, ball, obs[i])


@numba.njit(nogil=True, cache=True, error_model="numpy")
def upright(yaw, pose):
    """Write the quaternion of a rotation about the vertical into ``pose[3:7]``, all else in it being zero.

    Normalised, because rounding decides whether the wheels of a Car that starts exactly on the floor carry
    load: a quaternion a little short would lift them.
    """
    w, z = math.cos(yaw / 2.0), math.sin(yaw / 2.0)
    norm = math.sqrt(w * w + z * z)
    pose[3], pose[6] = w / norm, z / norm


@numba.njit(nogil=True, cache=True, error_model="numpy")
def start_episodes(ids, q, xy, rot, vase_q, vase_height, vases):
    """Put agents and vases where the layouts say; their poses are zero before."""
    for i in ids:
        q[i, 0] = xy[i, 0, 0]
        q[i, 1] = xy[i, 0, 1]
        if q.shape[1] > 3:
            q[i, 2] = AGENT_HEIGHT
            upright(rot[i, 0], q[i])
            q[i, 9] = 1.0
        else:
            q[i, 2] = rot[i, 0]
        for j in range(vase_q.shape[1]):
            upright(rot[i, vases + j], vase_q[i, j])
            vase_q[i, j, 0] = xy[i, vases + j, 0]
            vase_q[i, j, 1] = xy[i, vases + j, 1]
            vase_q[i, j, 2] = vase_height


@numba.njit(nogil=True, cache=True, error_model="numpy")
def first_goal_observations(ids, q, v, acc, xy, vase_q, last, goal, hazards, vases, lidar_range, obs):
    """Write the observations that open episodes of a Goal task, and the first distances."""
    position, turn, ball = np.empty(3), np.empty((3, 3)), np.empty((3, 3))
    for i in ids:
        last[i] = goal_distance(q[i], xy[i], goal)
        observe_goal(
            q[i],
            v[i],
            acc[i],
            xy[i],
            vase_q[i],
            goal,
            hazards,
            vases,
            lidar_range,
            position,
            turn,
            ball,
            obs[i],
        )


@numba.njit(nogil=True, cache=True, error_model="numpy")
def first_circle_observations(ids, q, v, acc, lidar_range, obs):
    """Write the observations that open episodes of a Circle task."""
    position, turn, ball = np.empty(3), np.empty((3, 3)), np.empty((3, 3))
    for i in ids:
        observe_circle(q[i], v[i], acc[i], lidar_range, position, turn, ball, obs[i])
