"""Environments that show more of what they see: see ``gates.sight``."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box
from gymnasium.vector.utils import batch_space

from steingate.envs.wrapper import VectorEnvWrapper
from steingate.gates.sight import Array, Sight


class Seeing(VectorEnvWrapper):
    """A vector environment whose observations have the numbers of a sight appended.

    Everything else is that of the environment inside.

    Parameters
    ----------
    envs : a vector environment with same-step autoreset
    powers : exponents of the numbers that lie between 0 and 1, such as (4.0, 12.0, 36.0)
    places : whether to show where the things are that a lidar sees; for environments that say in ``senses``
        where in an observation it is
    """

    def __init__(self, envs: Any, powers: tuple[float, ...] = (), places: bool = False) -> None:
        super().__init__(envs)
        space = envs.single_observation_space
        senses = getattr(envs, "senses", None) if places else None
        self.sight = Sight.of(space.low, space.high, powers, senses)
        bounded, free = self.sight.bounded, self.sight.added - self.sight.bounded
        low = np.concatenate([space.low, np.zeros(bounded), np.full(free, -np.inf)])
        high = np.concatenate([space.high, np.ones(bounded), np.full(free, np.inf)])
        self.single_observation_space = Box(low, high, dtype=np.float64)
        self.observation_space = batch_space(self.single_observation_space, envs.num_envs)

    def reset(self, **options: Any) -> tuple[Array, dict[str, Any]]:
        """Start new episodes and return what they show."""
        obs, info = self.envs.reset(**options)
        return self.sight(obs), info

    def step(
        self, actions: Any
    ) -> tuple[Array, Array, npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]:
        """Step every environment once."""
        obs, reward, terminated, truncated, info = self.envs.step(actions)
        if "final_obs" in info:
            info["final_obs"] = self.sight(info["final_obs"])
        return self.sight(obs), reward, terminated, truncated, info

    def restore(self, snapshot: Mapping[str, npt.NDArray[Any]]) -> Array:
        """Return the observations that were current at a snapshot after going back to it."""
        return self.sight(self.envs.restore(snapshot))
