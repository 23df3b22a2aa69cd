"""What ``SafetyVectorEnv`` and its simulations, ``Navigation`` and ``Velocity``, share: outputs and step counts.

Each of the N simulations depends only on its own random stream, state and actions, not on the others or on threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.compiled import compiled
from steingate.tasks.catalog import TaskSpec

Array = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int32]
State = dict[str, npt.NDArray[Any]]


class Outputs:
    """Results of N simulations; ``parts`` are the indicators in the order of ``TaskSpec.cost_parts``."""

    def __init__(self, task: TaskSpec, num_envs: int) -> None:
        self.obs = np.zeros((num_envs, task.observation_size))
        self.reward, self.cost = np.zeros(num_envs), np.zeros(num_envs)
        self.parts = np.zeros((len(task.cost_parts), num_envs))
        self.terminated, self.goal_met = np.zeros(num_envs, bool), np.zeros(num_envs, bool)


@compiled
def count_step(limit, goal_met, terminated, elapsed, goals, truncated, ended):
    """Update step counts, goal counts and ends of episodes, arrays (N,); return whether an episode ended.

    Compiled, because five NumPy operations would take half as long as the step of a Point.
    """
    any_ended = False
    for i in range(elapsed.size):
        elapsed[i] += 1
        goals[i] += goal_met[i]
        truncated[i] = elapsed[i] >= limit
        ended[i] = truncated[i] or terminated[i]
        any_ended = any_ended or ended[i]
    return any_ended
