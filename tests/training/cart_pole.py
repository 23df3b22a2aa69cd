"""A cart-pole of variable length with a cost: the further right the more reward, and there steps cost."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box

_GRAVITY, _MASS, _POLE, _HALF, _FORCE, _TIME = 9.8, 1.1, 0.1, 0.5, 10.0, 0.02


class CartPole(gymnasium.Env):
    """Push a cart to balance its pole: 1 + x per step, cost 1 where x > 0.3, over when the pole falls."""

    def __init__(self, limit=200):
        self.observation_space = Box(-np.inf, np.inf, (4,))
        self.action_space = Box(-1.0, 1.0, (1,))
        self.limit = limit

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state, self.t = self.np_random.uniform(-0.05, 0.05, 4), 0
        return self.state.copy(), {}

    def step(self, action):
        _, v, angle, turn = self.state
        force = _FORCE * float(np.clip(action[0], -1.0, 1.0))
        sine, cosine = np.sin(angle), np.cos(angle)
        pull = (force + _POLE * _HALF * turn**2 * sine) / _MASS
        spin = (_GRAVITY * sine - cosine * pull) / (_HALF * (4.0 / 3.0 - _POLE * cosine**2 / _MASS))
        push = pull - _POLE * _HALF * spin * cosine / _MASS
        self.state = self.state + _TIME * np.array([v, push, turn, spin])
        self.t += 1
        fallen = bool(abs(self.state[2]) > 0.21 or abs(self.state[0]) > 2.4)
        cost = float(self.state[0] > 0.3)
        return self.state.copy(), 1.0 + self.state[0], fallen, self.t >= self.limit, {"cost": cost}
