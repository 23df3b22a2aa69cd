"""Tiny tasks whose right values, actions and statistics are known."""

import time

import gymnasium
import numpy as np
from gymnasium.spaces import Box


class Walk(gymnasium.Env):
    """A random walk on a line: reward for moving right, cost for being right; ends by itself far out.

    Episodes are short and of random length, and the state can be saved, so it serves for everything.
    """

    def __init__(self, limit=12, out=3.0, pause=0.0):
        self.observation_space = Box(-np.inf, np.inf, (3,))
        self.action_space = Box(-2.0, 2.0, (2,))
        self.limit, self.out, self.pause = limit, out, pause

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = self.np_random.normal(), 0
        return self._obs(), {}

    def step(self, action):
        if self.pause:
            time.sleep(self.pause)
        move = 0.3 * float(action[0]) + 0.1 * self.np_random.normal()
        self.x, self.t = self.x + move, self.t + 1
        cost = float(self.x > 0.5) + 0.1 * abs(float(action[1]))
        return self._obs(), move, abs(self.x) > self.out, self.t >= self.limit, {"cost": cost}

    def _obs(self):
        return np.array([self.x, self.t, 7.0])

    def snapshot(self):
        words = []
        state = self.np_random.bit_generator.state["state"]
        for number in (state["state"], state["inc"]):
            words += [number >> 64, number & (2**64 - 1)]
        return {"x": np.array(self.x), "t": np.array(self.t), "rng": np.array(words, np.uint64)}

    def restore(self, parts):
        self.x, self.t = float(parts["x"]), int(parts["t"])
        a, b, c, d = (int(word) for word in parts["rng"])
        whole = self.np_random.bit_generator.state
        whole["state"] = {"state": a << 64 | b, "inc": c << 64 | d}
        self.np_random.bit_generator.state = whole


class Parts(Walk):
    """The walk with its observation in a dict."""

    def __init__(self):
        super().__init__()
        inner = gymnasium.spaces.Tuple([Box(-9.0, 9.0, (2, 2)), gymnasium.spaces.MultiDiscrete([2, 3])])
        self.observation_space = gymnasium.spaces.Dict(
            z=Box(-np.inf, np.inf, (1,)), a=gymnasium.spaces.Discrete(3, start=4), b=inner
        )

    def _obs(self):
        x = np.clip(self.x, -9.0, 9.0)
        return {"a": 4 + self.t % 3, "b": (np.full((2, 2), x), np.array([self.t % 2, self.t % 3])), "z": [self.x]}


class Constant(gymnasium.Env):
    """The same reward and cost on every step; cut by a time limit or really over after ``length`` steps."""

    def __init__(self, length=10, over=False, reward=1.0, cost=0.5):
        self.observation_space = Box(-1.0, 1.0, (3,))
        self.action_space = Box(-1.0, 1.0, (2,))
        self.length, self.over, self.reward, self.cost = length, over, reward, cost

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.array([0.0, 0.3, 0.0]), {}

    def step(self, action):
        self.t += 1
        end = self.t >= self.length
        obs = np.array([self.over * self.t / self.length, 0.3, 0.0])
        return obs, self.reward, end and self.over, end and not self.over, {"cost": self.cost}


class Paid(Constant):
    """Every step costs less than nothing."""

    def __init__(self):
        super().__init__(cost=-0.5)

    def reset(self, *, seed=None, options=None):
        obs, info = super().reset(seed=seed)
        return obs + self.np_random.uniform(0.0, 0.5), info


class Endless(Constant):
    """No episode ever ends."""

    def __init__(self):
        super().__init__(length=10**9)


class Broken(Walk):
    """A walk that gives a NaN as ``what`` on its ``at``-th step over all episodes."""

    def __init__(self, what="reward", at=150):
        super().__init__()
        self.what, self.at, self.total = what, at, 0

    def step(self, action):
        obs, reward, terminated, truncated, info = super().step(action)
        self.total += 1
        if self.total >= self.at:
            if self.what == "raise":
                raise ZeroDivisionError("lost\n the way.")
            if self.what == "reward":
                reward = np.nan
            elif self.what == "cost":
                info = {"cost": np.inf}
            else:
                obs = obs * np.nan
        return obs, reward, terminated, truncated, info


class Costless(Walk):
    """A walk that says nothing of a cost."""

    def step(self, action):
        *rest, _ = super().step(action)
        return *rest, {}


def no_cost(obs, action, next_obs, info):
    """Return the cost of a task in which nothing costs."""
    return 0.0
