"""What a family of tasks owes the batched core.

The core (``vector``) knows episodes, the task knows the world. ``navigation.Navigation`` (Goal, Circle) and
``velocity.Velocity`` are the two families there are.

``Family(spec, num_envs, threads=..., physics=..., layout_stream=...)`` builds everything that lasts: compiled
model, simulations, streams, scratch arrays. It then has

``out : Outputs``
    preallocated arrays over the batch, written by ``reset`` (rows of ``ids`` only, and only ``obs``) and by
    ``step`` (all rows, all fields).
``reset(ids, seeds)``
    start a new episode in the simulations ``ids`` (sorted int32 array). ``seeds[j]`` is the seed of
    ``ids[j]``, or None to go on with that simulation's own stream. Other simulations must not change in any
    bit.
``step(actions)``
    one environment step of all simulations; ``actions`` is a finite C-contiguous float64 (N, a) array, not
    yet clipped, not to be changed. Step counting, truncation, autoreset and info belong to the core. A goal
    reached during the step is redrawn here (``out.obs`` already shows the new one).
``snapshot() -> dict[str, array]`` and ``restore(dict)``
    the complete state as plain numeric arrays with first axis N, so that continuing is bit-equal.
``newer : tuple of str``
    entries of the snapshot that those of earlier versions lack; ``restore`` does without them.
``scene(i) -> dict[str, array]``
    what the renderer needs of simulation i; see ``scene``.
``close()``
    let go of simulations and threads; called once.

What a simulation does may depend only on its own stream, state and actions, never on its neighbors or on
threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from steingate.tasks.catalog import TaskSpec

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Outputs:
    """The arrays a task writes: one row per simulation.

    Attributes
    ----------
    obs : (N, d) observation after the step, or after the reset
    reward, cost : (N,) float64
    parts : (P, N) float64, the indicators in the order of ``TaskSpec.cost_parts``
    terminated : (N,) bool
    goal_met : (N,) bool, always False in tasks without goals
    """

    obs: Array
    reward: Array
    cost: Array
    parts: Array
    terminated: npt.NDArray[np.bool_]
    goal_met: npt.NDArray[np.bool_]

    @classmethod
    def empty(cls, spec: TaskSpec, num_envs: int) -> Outputs:
        """Return zeroed arrays of the right shapes.

        Parameters
        ----------
        spec : TaskSpec
            The task.
        num_envs : int
            Number of simulations.
        """
        return cls(
            obs=np.zeros((num_envs, spec.observation_size)),
            reward=np.zeros(num_envs),
            cost=np.zeros(num_envs),
            parts=np.zeros((len(spec.cost_parts), num_envs)),
            terminated=np.zeros(num_envs, bool),
            goal_met=np.zeros(num_envs, bool),
        )


class BatchTask(Protocol):
    """What the batched core asks of a task family; see the module's text."""

    out: Outputs
    newer: tuple[str, ...]

    def reset(self, ids: npt.NDArray[np.int32], seeds: Sequence[int | None]) -> None:
        """Start new episodes."""

    def step(self, actions: Array) -> None:
        """Advance all simulations by one environment step."""

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """Return the complete state."""

    def restore(self, state: dict[str, npt.NDArray[Any]]) -> None:
        """Go back to a state."""

    def scene(self, index: int) -> dict[str, npt.NDArray[Any]]:
        """Return what the renderer needs of one simulation."""

    def close(self) -> None:
        """Let go of everything."""
