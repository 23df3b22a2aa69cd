"""Recorded navigation states in the form the navigation tasks keep them, and how to put them there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from tests.parity.recordings import Index, Recording, step_index

from steingate.tasks.catalog import TaskSpec, find_task
from steingate.tasks.contact_plan import CALM_SPEED, CALM_TURN, MOVING, STILL
from steingate.tasks.models import STATE_SIZE
from steingate.tasks.navigation import Navigation

Array = npt.NDArray[np.float64]
Steps = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class States:
    """Recorded states, one per row of the file, in world axes.

    Attributes
    ----------
    q, v : agents' states
    vase_q, vase_v : (rows, V, 7 or 6) vases' states
    goal : (rows, 2) goal valid for the step that follows
    hazards, vases : (episodes, n, 2) places after reset
    """

    q: Array
    v: Array
    vase_q: Array
    vase_v: Array
    goal: Array
    hazards: Array
    vases: Array


@dataclass(frozen=True)
class Case:
    """One recording with what its criteria need.

    Attributes
    ----------
    touching : (steps,) whether the agent touches an object at the end of the step
    threads, physics : how to run the task
    """

    spec: TaskSpec
    recording: Recording
    index: Index
    states: States
    touching: Flags
    threads: int
    physics: str

    @property
    def regular(self) -> Flags:
        """Return the rows (as flags) at which rounding does not decide: all but the Car's first."""
        flags = np.ones(len(self.states.q), dtype=np.bool_)
        if self.spec.agent == "car":
            flags[self.index.starts] = False
        return flags

    def actions(self, steps: Steps) -> Array:
        """Return the recorded actions of some steps.

        Parameters
        ----------
        steps : int array
            The steps.
        """
        return np.ascontiguousarray(self.recording["step_action"][steps])

    def task(self, count: int) -> Navigation:
        """Return a batch of the task, on the reference stream.

        Parameters
        ----------
        count : int
            Number of simulations.
        """
        return Navigation(
            self.spec, count, threads=self.threads, physics=self.physics, layout_stream="reference"
        )

    def put(self, task: Navigation, rows: Steps) -> None:
        """Set agents and vases of all simulations to recorded states.

        Parameters
        ----------
        task : Navigation
            As many simulations as rows.
        rows : int array
            The states.
        """
        states = self.states
        task.q[:], task.v[:], task.warm[:] = states.q[rows], states.v[rows], 0.0
        task.vase_q[:], task.vase_v[:], task.vase_warm[:] = states.vase_q[rows], states.vase_v[rows], 0.0
        speed = np.linalg.norm(task.vase_v[:, :, :3], axis=2)
        turn = np.linalg.norm(task.vase_v[:, :, 3:], axis=2)
        task.status[:] = np.where((speed < CALM_SPEED) & (turn < CALM_TURN), STILL, MOVING)
        task.calm[:] = 0

    def place(self, task: Navigation, steps: Steps) -> None:
        """Set goals and hazards of all simulations to those of recorded steps.

        Parameters
        ----------
        task : Navigation
            As many simulations as steps.
        steps : int array
            The steps.
        """
        if self.spec.family == "goal":
            task.xy[:, task.law.goal] = self.states.goal[self.index.before[steps]]
            task.xy[:, task.law.rows("hazards")] = self.states.hazards[self.index.episode[steps]]

    def gaps(self, task: Navigation, rows: Steps) -> Array:
        """Return the largest differences (N, 2) of the agents' qpos and qvel to recorded ones.

        Parameters
        ----------
        task : Navigation
            As many simulations as rows.
        rows : int array
            The states.
        """
        qpos = np.abs(task.q - self.states.q[rows]).max(axis=1)
        qvel = np.abs(task.v - self.states.v[rows]).max(axis=1)
        return np.stack([qpos, qvel], axis=1)


def read_case(recording: Recording, threads: int, physics: str) -> Case:
    """Return the case of a navigation recording.

    Parameters
    ----------
    recording : Recording
        A ``nav`` file.
    threads : int
        Threads for the engine.
    physics : str
        Mode of the task.
    """
    spec = find_task(recording.env_id)
    touching = recording["step_n_agent_contacts"].sum(axis=1) > 0
    return Case(spec, recording, step_index(recording), _states(spec, recording), touching, threads, physics)


def _states(spec: TaskSpec, recording: Recording) -> States:
    """Return the recorded states in world axes; the original's Point lives in the frame of its first pose."""
    nq, nv = STATE_SIZE[spec.agent]
    qpos, qvel = recording["row_qpos"], recording["row_qvel"]
    q, v = qpos[:, :nq].copy(), qvel[:, :nv].copy()
    if spec.agent == "point":
        episode = np.repeat(np.arange(len(recording["ep_len"])), recording["ep_len"] + 1)
        yaw = recording["agent_rot0"][episode]
        q[:, :2] = recording["agent_xy0"][episode] + _turned(qpos[:, :2], yaw)
        q[:, 2] += yaw
        v[:, :2] = _turned(qvel[:, :2], yaw)
    names = recording.meta["obj_names"]
    places = {
        kind: recording["obj_pos0"][:, [i for i, name in enumerate(names) if name.startswith(kind)], :2]
        for kind in ("hazard", "vase")
    }
    return States(
        q=q,
        v=v,
        vase_q=qpos[:, nq:].reshape(len(q), spec.count("vases"), 7),
        vase_v=qvel[:, nv:].reshape(len(q), spec.count("vases"), 6),
        goal=recording["row_goal_pos"][:, :2] if spec.family == "goal" else np.zeros((len(q), 2)),
        hazards=places["hazard"],
        vases=places["vase"],
    )


def _turned(xy: Array, yaw: Array) -> Array:
    """Return vectors (n, 2) turned by angles (n,)."""
    c, s = np.cos(yaw), np.sin(yaw)
    return np.stack([c * xy[:, 0] - s * xy[:, 1], s * xy[:, 0] + c * xy[:, 1]], axis=1)
