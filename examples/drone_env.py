"""A drone in wind: ``steingate train --env ./drone_env.py:Drone --cost-limit 5`` in this folder.

The drone flies to one goal after another on a square field with a no-fly zone in its middle. The shortest way to a
goal often leads through the zone, and gusts push the drone into it. Every step inside costs 1. There is no lidar: the
observation is 8 numbers.
"""

from typing import Any

import gymnasium
import numpy as np

FIELD = 5.0  # half edge of the field, m
ZONE = 2.0  # radius of the no-fly zone at the origin, m
GOAL = 0.5  # a goal is reached within this distance, m
PERIOD = 0.1  # s
MAX_ACCELERATION = 4.0  # m/s²
DRAG = 0.5  # 1/s, relative to the air
GUST = 1.5  # standard deviation of the wind speed, m/s
CALM = 0.05  # fraction by which the wind returns to zero per step


class Drone(gymnasium.Env):
    """A point mass with two thrusters. The action (2,) is the acceleration, as a fraction of the largest.

    Observation (8,): position, velocity, vector to the goal, wind. Reward: the distance gained, in meters, and 1 for
    each goal that is reached. An episode has 250 steps.
    """

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (8,), np.float64)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.max_episode_steps = 250

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Start at a random place outside the zone, at rest, in a random wind."""
        super().reset(seed=seed)
        self.steps = 0
        self.position, self.velocity = self._place(), np.zeros(2)
        self.wind = GUST * self.np_random.standard_normal(2)
        self.goal = self._place()
        return self._observation(), {}

    def step(self, action):
        """Fly for a tenth of a second."""
        thrust = MAX_ACCELERATION * np.clip(np.asarray(action, np.float64), -1.0, 1.0)
        self.wind = (1.0 - CALM) * self.wind + GUST * np.sqrt(CALM * (2.0 - CALM)) * self.np_random.standard_normal(2)
        before = np.linalg.norm(self.goal - self.position)
        self.velocity += PERIOD * (thrust - DRAG * (self.velocity - self.wind))
        moved = self.position + PERIOD * self.velocity
        self.position = np.clip(moved, -FIELD, FIELD)
        self.velocity[moved != self.position] = 0.0  # the fence stops the drone
        distance = np.linalg.norm(self.goal - self.position)
        reward = before - distance
        if distance < GOAL:
            reward += 1.0
            self.goal = self._place()
        self.steps += 1
        cost = float(np.linalg.norm(self.position) < ZONE)
        return self._observation(), float(reward), False, self.steps >= self.max_episode_steps, {"cost": cost}

    def _place(self):
        """Return a random place at least 0.5 m outside the zone."""
        while True:
            place = self.np_random.uniform(-FIELD, FIELD, 2)
            if np.linalg.norm(place) > ZONE + 0.5:
                return place

    def _observation(self):
        return np.concatenate([self.position, self.velocity, self.goal - self.position, self.wind])
