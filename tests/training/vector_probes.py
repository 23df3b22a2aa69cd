"""Vectorized tasks with known best policies, small enough to learn in a second."""

import numpy as np
from gymnasium.spaces import Box


class VectorProbe:
    """Episodes of ``length`` steps for all environments at once; the outcome of a step is ``pay``'s."""

    length = 1

    def __init__(self, num_envs):
        self.num_envs = num_envs
        self.single_observation_space = Box(0.0, 1.0, (1,))  # time, as a share of the episode
        self.single_action_space = Box(-1.0, 1.0, (1,))
        self.rng, self.t = np.random.default_rng(0), 0

    def reset(self, *, seed=None, options=None):
        self.rng, self.t = np.random.default_rng(list(seed)), 0
        return np.zeros((self.num_envs, 1)), {}

    def step(self, actions):
        reward, cost = self.pay(actions[:, 0])
        self.t += 1
        end = np.full(self.num_envs, self.t == self.length)
        info = {"cost": cost}
        if end[0]:
            self.t = 0
            info["final_obs"] = np.ones((self.num_envs, 1))
        obs = np.full((self.num_envs, 1), self.t / self.length)
        return obs, reward, end, np.zeros(self.num_envs, bool), info


class Gamble(VectorProbe):
    """One choice: a sure cost of 18, or a little more reward at a cost of 60 with chance 0.3.

    Both cost 18 on average, which a limit of 25 allows; only the tail differs.
    """

    def pay(self, a):
        risky = a > 0.0
        unlucky = self.rng.random(self.num_envs) < 0.3
        return np.where(risky, 1.5, 1.0), np.where(risky, 60.0 * unlucky, 18.0)
