"""Reward, cost, goal redraw and starts of the navigation tasks, compiled, over the whole batch.

Arrays have a row per simulation and otherwise the meanings of ``nav_sensors``.
"""

from __future__ import annotations

import math

import numpy as np

from steingate.compiled import compiled
from steingate.tasks.catalog import (
    AGENT_HEIGHT,
    CIRCLE_RADIUS,
    GOAL_RADIUS,
    HAZARD_RADIUS,
    VASE_SPEED_LIMIT,
    WALL,
)
from steingate.tasks.layouts import draw_goal
from steingate.tasks.nav_sensors import observe_circle, observe_goal
from steingate.tasks.streams import next_double

REWARD_LIMIT = 10.0


@compiled(error_model="numpy")
def goal_distance(q, xy, goal):
    """Return the planar distance from the agent to the goal."""
    dx, dy = q[0] - xy[goal, 0], q[1] - xy[goal, 1]
    return math.sqrt(dx * dx + dy * dy)


@compiled(error_model="numpy")
def inside_hazard(q, xy, hazards, vases):
    """Return whether the agent's origin is inside some hazard."""
    for j in range(hazards, vases):
        dx, dy = q[0] - xy[j, 0], q[1] - xy[j, 1]
        if math.sqrt(dx * dx + dy * dy) < HAZARD_RADIUS:
            return True
    return False


@compiled(error_model="numpy")
def some_vase_moves(vase_v):
    """Return whether the origin of some vase has at least the speed that costs."""
    for j in range(vase_v.shape[0]):
        s = vase_v[j, 0] * vase_v[j, 0] + vase_v[j, 1] * vase_v[j, 1] + vase_v[j, 2] * vase_v[j, 2]
        if math.sqrt(s) >= VASE_SPEED_LIMIT:
            return True
    return False


@compiled(error_model="numpy")
def circle_reward(q, v):
    """Return the reward of a Circle task: angular progress, most on the circle itself."""
    x, y = q[0], q[1]
    r = math.sqrt(x * x + y * y)
    return 0.1 * ((x * v[1] - y * v[0]) / r) / (1.0 + abs(r - CIRCLE_RADIUS))


@compiled(error_model="numpy")
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
            q[i], v[i], acc[i], xy[i], vase_q[i], goal, hazards, vases, lidar_range, position, turn, ball,
            obs[i],
        )  # fmt: skip


@compiled(error_model="numpy")
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


@compiled(error_model="numpy")
def upright(yaw, pose):
    """Write the quaternion of a rotation about the vertical into ``pose[3:7]``, all else in it being zero.

    Normalized, because rounding decides whether the wheels of a Car that starts exactly on the floor carry
    load: a quaternion a little short would lift them.
    """
    w, z = math.cos(yaw / 2.0), math.sin(yaw / 2.0)
    norm = math.sqrt(w * w + z * z)
    pose[3], pose[6] = w / norm, z / norm


@compiled(error_model="numpy")
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


@compiled(error_model="numpy")
def first_goal_observations(ids, q, v, acc, xy, vase_q, last, goal, hazards, vases, lidar_range, obs):
    """Write the observations that open episodes of a Goal task, and the first distances."""
    position, turn, ball = np.empty(3), np.empty((3, 3)), np.empty((3, 3))
    for i in ids:
        last[i] = goal_distance(q[i], xy[i], goal)
        observe_goal(
            q[i], v[i], acc[i], xy[i], vase_q[i], goal, hazards, vases, lidar_range, position, turn, ball,
            obs[i],
        )  # fmt: skip


@compiled(error_model="numpy")
def first_circle_observations(ids, q, v, acc, lidar_range, obs):
    """Write the observations that open episodes of a Circle task."""
    position, turn, ball = np.empty(3), np.empty((3, 3)), np.empty((3, 3))
    for i in ids:
        observe_circle(q[i], v[i], acc[i], lidar_range, position, turn, ball, obs[i])
