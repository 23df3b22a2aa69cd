"""What navigation agents see, compiled: sensors in the agent's frame and the pseudo lidar.

Rows of ``xy`` are the layout: agent, then objects in placement order; ``goal``, ``hazards`` and ``vases`` say
where in it the kinds start. Agent states ``q`` and ``v`` are in engine order (Point: 3 and 3 entries, Car: 13
and 11).
"""

from __future__ import annotations

import math

from steingate.compiled import compiled
from steingate.tasks.catalog import AGENT_HEIGHT, GRAVITY, LIDAR_BINS, MAGNETIC_NORTH


@compiled(error_model="numpy")
def rotation(quaternion, out):
    """Write the rotation matrix of a quaternion, normalized first, into ``out`` (3, 3)."""
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


@compiled(error_model="numpy")
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


@compiled(error_model="numpy")
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


@compiled(error_model="numpy")
def observe_circle(q, v, acc, lidar_range, position, turn, ball, obs):
    """Write one observation of a Circle task."""
    sense(q, v, acc, position, turn, ball, obs)
    first = obs.shape[0] - LIDAR_BINS
    for j in range(first, obs.shape[0]):
        obs[j] = 0.0
    see(0.0, 0.0, position, turn, lidar_range, obs[first:])
