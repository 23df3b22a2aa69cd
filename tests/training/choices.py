"""Tasks with discrete actions whose best policies under a limit are known."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from scipy.optimize import linprog

STAY, GO = 0, 1


class Arms(gymnasium.Env):
    """Ten choices between two arms that the task calls 3 and 4: the better one costs 1.

    The arms pay 0 and 1. Under a limit of 5 the best policies take the better arm half of the time.
    """

    length = 10

    def __init__(self, start=3):
        self.observation_space = Box(0.0, 1.0, (1,))
        self.action_space = Discrete(2, start=start)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(1), {}

    def step(self, action):
        assert self.action_space.contains(action)
        arm = int(action - self.action_space.start)
        self.t += 1
        return (
            np.array([self.t / self.length]),
            float(arm),
            False,
            self.t >= self.length,
            {"cost": float(arm)},
        )


class Ring(gymnasium.Env):
    """Four places in a ring; staying pays by place, going on may slip, and the richest place costs.

    A constrained Markov decision process small enough to be solved by linear programming: see
    :func:`best_return`.
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
    """Return the largest mean return of ``Ring`` whose mean cost is at most ``limit``, by linear programming.

    Variables are the probabilities of (time, place, action); each time's flow comes from the one before.
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


def pole_cost(obs, action, next_obs, info):
    """Return 1 where CartPole's cart is right of 0.3: the pole must be balanced on the left."""
    return float(next_obs[0] > 0.3)
