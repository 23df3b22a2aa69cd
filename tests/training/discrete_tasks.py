"""Tasks with discrete actions whose best policies under a cost limit are known."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from scipy.optimize import linprog

STAY, GO = 0, 1


class Bandit(gymnasium.Env):
    """Ten steps with two actions, numbered 3 and 4: action 4 pays 1 and costs 1, action 3 nothing."""

    length = 10

    def __init__(self):
        self.observation_space = Box(0.0, 1.0, (1,))
        self.action_space = Discrete(2, start=3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(1), {}

    def step(self, action):
        assert self.action_space.contains(action)
        pay = float(action - 3)
        self.t += 1
        return np.array([self.t / self.length]), pay, False, self.t >= self.length, {"cost": pay}


class Ring(gymnasium.Env):
    """Four places in a ring: STAY pays by place, GO may slip, and staying at the best place costs 1.

    A constrained Markov decision process small enough for linear programming, see :func:`best_return`.
    """

    pay, charge = np.array([0.0, 0.4, 0.0, 1.0]), np.array([0.0, 0.0, 0.0, 1.0])
    slip, length = 0.1, 12

    def __init__(self):
        self.observation_space = Discrete(4)
        self.action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.t = 0, 0
        return self.place, {}

    def step(self, action):
        pay, cost = self.pay[self.place] * (action == STAY), self.charge[self.place] * (action == STAY)
        if action == GO and self.np_random.random() >= self.slip:
            self.place = (self.place + 1) % 4
        self.t += 1
        return self.place, float(pay), False, self.t >= self.length, {"cost": float(cost)}


def best_return(limit):
    """Return the largest mean return of ``Ring`` with mean cost at most ``limit``, by linear programming.

    The variables are the probabilities of (time, place, action); the flow into a time comes from the one before.
    """
    steps, places = Ring.length, 4

    def at(t, s, a):
        return (t * places + s) * 2 + a

    size = steps * places * 2
    reward, cost = np.zeros(size), np.zeros(size)
    flow, inflow = np.zeros((steps * places, size)), np.zeros(steps * places)
    inflow[0] = 1.0
    for t in range(steps):
        for s in range(places):
            reward[at(t, s, STAY)], cost[at(t, s, STAY)] = Ring.pay[s], Ring.charge[s]
            for a in (STAY, GO):
                flow[t * places + s, at(t, s, a)] += 1.0
                if t + 1 < steps:
                    stays = 1.0 if a == STAY else Ring.slip
                    flow[(t + 1) * places + s, at(t, s, a)] -= stays
                    flow[(t + 1) * places + (s + 1) % places, at(t, s, a)] -= 1.0 - stays
    found = linprog(-reward, A_ub=cost[None], b_ub=[limit], A_eq=flow, b_eq=inflow, bounds=(0.0, 1.0))
    return -found.fun
