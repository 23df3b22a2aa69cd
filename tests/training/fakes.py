"""Environments and algorithms that record their calls, and small runs with them."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from steingate.algorithms.base import GateOutput, Objective
from steingate.policies.normalizer import Stats
from steingate.training.background import InlineExecutor
from steingate.training.config import make_config
from steingate.training.epoch import run_epoch
from steingate.training.state import first_state

TRUST_REGION = {"cg_iters": 2, "backtrack_iters": 2}  # few iterations compile and run faster


def statistics(rows):
    """The statistics of all rows ever seen."""
    mean = rows.mean(axis=0)
    return Stats(len(rows), mean, ((rows - mean) ** 2).sum(axis=0))


def normalize(stats, rows):
    """Normalized observations; raw ones while at most one row has been seen."""
    if stats.count <= 1:
        return rows
    std = np.maximum(np.sqrt(stats.m2 / (stats.count - 1)), 0.01)
    return np.clip((rows - stats.mean) / std, -5.0, 5.0)


def small(algo="cpo", **changes):
    """Return a run of three epochs of twenty steps on two environments."""
    options = {
        "env": "fake",
        "algo": algo,
        "total_steps": 60,
        "steps_per_epoch": 20,
        "num_envs": 2,
        "cost_limit": 4.0,
        "hidden": (4,),
        "vf_epochs": 1,
        "vf_batch_size": 16,
    }
    return make_config({**options, **changes})


class FakeEnv:
    """Two environments without randomness; ``calls`` lists the calls.

    An observation is (steps of this episode, index of the environment, 7). A step of environment i has reward
    ``reward * (i + 1)`` and cost ``cost * (i + 1)``; episodes are truncated after ``length`` steps.
    """

    num_envs, current_env = 2, None

    def __init__(self, length=5, reward=1.0, cost=0.25, actions=None):
        self.single_observation_space = Box(-np.inf, np.inf, (3,))
        self.single_action_space = Box(-1.0, 1.0, (2,)) if actions is None else Discrete(actions)
        self.length, self.reward, self.cost = length, reward, cost
        self.t, self.calls = 0, []

    def _obs(self, t):
        return np.array([[t, i, 7.0] for i in range(self.num_envs)], np.float64)

    def reset(self, *, seed=None):
        self.calls.append(("reset", seed))
        self.t = 0
        return self._obs(0), {}

    def step(self, actions):
        self.calls.append(("step", np.array(actions)))
        self.t += 1
        each = np.arange(1, self.num_envs + 1)
        truncated = np.full(self.num_envs, self.t == self.length)
        info = {"cost": self.cost * each}
        if truncated[0]:
            info["final_obs"] = self._obs(self.t)
            self.t = 0
        return self._obs(self.t), self.reward * each, np.zeros(self.num_envs, bool), truncated, info

    def set_params(self, params):
        self.calls.append(("params", params))

    def close(self):
        self.calls.append(("close", None))

    def of(self, kind):
        """Return the arguments of the calls of one kind, in order."""
        return [given for name, given in self.calls if name == kind]


class RestorableEnv(FakeEnv):
    """The same with snapshots."""

    def snapshot(self):
        return {"t": np.array(self.t)}

    def restore(self, snapshot):
        self.t = int(snapshot["t"])
        return self._obs(self.t)


def recording(cfg, objectives=None, messages=((),), **overrides: Any):
    """Return the algorithm of a run with an update that only records its arguments, and the record.

    With ``objectives`` (one per epoch, the last one repeated) the state is a count of ``decide`` and ``update``,
    and these are the objectives. ``overrides`` replaces further methods and attributes.
    """
    seen = SimpleNamespace(episodes=[], states=[], policies=[], batches=[], objectives=[])
    algorithm = cfg.algo
    kind = type(algorithm)

    def decide(self, context, state, episodes):
        seen.episodes.append(episodes)
        if objectives is None:
            return kind.decide(self, context, state, episodes)
        epoch = state // 2
        output = GateOutput(
            objectives[min(epoch, len(objectives) - 1)],
            {"Gate/Epoch": float(epoch)},
            messages[min(epoch, len(messages) - 1)],
        )
        return state + 1, output

    def update(self, context, state, policy, batch, objective):
        for name, value in (("states", state), ("policies", policy), ("batches", batch), ("objectives", objective)):
            getattr(seen, name).append(value)
        return (state if objectives is None else state + 1), policy, {"Loss/Recorded": float(len(seen.batches))}

    methods = {"decide": decide, "update": update}
    if objectives is not None:
        methods["init"] = lambda self, context, policy: 0
    recorder = object.__new__(type(kind.__name__, (kind,), methods | overrides))
    recorder.__dict__.update({name: value for name, value in vars(algorithm).items() if name not in overrides})
    return recorder, seen


IMPROVE = (Objective(),)


def run_epochs(cfg, algorithm, envs, count=1):
    """Run epochs in this thread; return the last state and all reports."""
    state, reports = first_state(cfg, algorithm, envs), []
    for _ in range(count):
        state, report = run_epoch(algorithm, cfg, state, envs, InlineExecutor())
        reports.append(report)
    return state, reports


def record(cfg, envs=None, count=1, objectives=IMPROVE, messages=((),), **overrides: Any):
    """Run epochs of the recording algorithm; return the record with the last ``state`` and all ``reports``."""
    algorithm, seen = recording(cfg, objectives, messages, **overrides)
    seen.state, seen.reports = run_epochs(cfg, algorithm, envs or RestorableEnv(), count)
    return seen
