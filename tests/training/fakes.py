"""Parts that write down what they are given, and small runs made of them."""

from types import SimpleNamespace

import numpy as np
from gymnasium.spaces import Box, Discrete

from steingate.algorithms.common.base import Algorithm, Step
from steingate.gates.base import Decision, Gate, Mode, Ruling
from steingate.training.assemble import build_algorithm
from steingate.training.config import make_config
from steingate.training.epoch import run_epoch
from steingate.training.background import InlineExecutor
from steingate.training.state import first_state

IMPROVE = (Decision(Mode.IMPROVE),)
SECOND_ORDER = {"cg_iters": 2, "search_steps": 2}


def small(algo="cpo", **changes):
    """A run of three epochs of twenty steps on two environments."""
    settings = {
        "env": "told",
        "algo": algo,
        "total_steps": 60,
        "steps_per_epoch": 20,
        "num_envs": 2,
        "cost_limit": 4.0,
        "hidden": (4,),
        "critic_passes": 1,
        "critic_batch": 16,
    }
    return make_config({**settings, **changes})


class Unsaved:
    """Two environments whose observations, rewards and costs are known; it writes down what it is told.

    An observation is (steps of this episode, number of the environment, 7). A step of environment i pays
    ``reward * (i + 1)`` and costs ``cost * (i + 1)``; the time limit cuts episodes after ``length`` steps.
    """

    num_envs, current_env = 2, None

    def __init__(self, length=5, reward=1.0, cost=0.25):
        self.single_observation_space = Box(-np.inf, np.inf, (3,))
        self.single_action_space = Box(-1.0, 1.0, (2,))
        self.length, self.reward, self.cost = length, reward, cost
        self.t, self.told = 0, []

    def _obs(self, t):
        return np.array([[t, i, 7.0] for i in range(self.num_envs)], np.float64)

    def reset(self, *, seed=None):
        self.told.append(("reset", seed))
        self.t = 0
        return self._obs(0), {}

    def step(self, actions):
        self.told.append(("step", np.array(actions)))
        self.t += 1
        each = np.arange(1, self.num_envs + 1)
        over = np.full(self.num_envs, self.t == self.length)
        info = {"cost": self.cost * each}
        if over[0]:
            info["final_obs"] = self._obs(self.t)
            self.t = 0
        return self._obs(self.t), self.reward * each, np.zeros(self.num_envs, bool), over, info

    def close(self):
        self.told.append(("close", None))

    def of(self, kind):
        """What it was told of one kind, in order."""
        return [what for name, what in self.told if name == kind]


class Told(Unsaved):
    """The same, and it can be saved."""

    def snapshot(self):
        return {"t": np.array(self.t)}

    def restore(self, parts):
        self.t = int(parts["t"])
        return self._obs(self.t)


class Choosing(Told):
    """The same with two choices instead of two numbers."""

    def __init__(self):
        super().__init__()
        self.single_action_space = Discrete(2)


class Budgeted(Told):
    """The same, and it may be told what share of a budget episodes start with."""

    def set_budget(self, share, worth=0.0):
        self.told.append(("budget", (share, worth)))


def spying_step(passes=None):
    """A step that leaves the policy alone and writes down batches and decisions; its state counts moves."""
    seen = SimpleNamespace(states=[], batches=[], decisions=[], params=[])

    def move(state, params, batch, decision):
        seen.states.append(state)
        seen.params.append(params)
        seen.batches.append(batch)
        seen.decisions.append(decision)
        return params, state + 1, {"step/moved": float(state)}

    return Step(lambda params: 0, move, passes), seen


def spying(decisions=IMPROVE, notes=((),), passes=None, **parts):
    """An algorithm that decides as told and writes down what its gate and step are given."""
    step, seen = spying_step(passes)
    seen.episodes = []

    def decide(state, episodes):
        seen.episodes.append(episodes)
        decision = decisions[min(state, len(decisions) - 1)]
        return Ruling(decision, state + 1, {"gate/asked": float(state)}, notes[min(state, len(notes) - 1)])

    return Algorithm(Gate(lambda: 0, decide), step, **parts), seen


def watched(cfg):
    """The algorithm of a configuration with a step that writes down instead of moving."""
    step, seen = spying_step()
    return build_algorithm(cfg)._replace(step=step), seen


def epochs(cfg, algo, envs, count=1):
    """Run epochs at once, in this thread; return the last state and all reports."""
    discrete = isinstance(envs.single_action_space, Discrete)
    state, reports = first_state(cfg, algo, envs.single_observation_space.shape[0], 2, discrete), []
    for _ in range(count):
        state, report = run_epoch(algo, cfg, state, envs, InlineExecutor())
        reports.append(report)
    return state, reports
