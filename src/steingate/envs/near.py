"""Environments that show how near things are more sharply: powers at the end of the observation."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box
from gymnasium.vector.utils import batch_space

from steingate.gates.nearness import Array, Nearness


class Near:
    """A vector environment whose observations have powers of their numbers between 0 and 1 appended.

    Everything else is that of the environment inside.

    Parameters
    ----------
    envs : a vector environment with same-step autoreset
    powers : exponents, such as (4.0, 12.0, 36.0)
    """

    def __init__(self, envs: Any, powers: tuple[float, ...]) -> None:
        space = envs.single_observation_space
        self.envs, self.nearness = envs, Nearness.of(space.low, space.high, powers)
        low, high = (
            np.append(end, np.full(self.nearness.added, i)) for i, end in enumerate((space.low, space.high))
        )
        self.single_observation_space = Box(low, high, dtype=np.float64)
        self.observation_space = batch_space(self.single_observation_space, envs.num_envs)

    def __getattr__(self, name: str) -> Any:
        if name == "envs":  # not there yet while a copy is being made
            raise AttributeError(name)
        return getattr(self.envs, name)

    def reset(self, **options: Any) -> tuple[Array, dict[str, Any]]:
        """Start new episodes and return what they show."""
        obs, info = self.envs.reset(**options)
        return self.nearness(obs), info

    def step(
        self, actions: Any
    ) -> tuple[Array, Array, npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]:
        """Step every environment once."""
        obs, reward, terminated, truncated, info = self.envs.step(actions)
        if "final_obs" in info:
            info["final_obs"] = self.nearness(info["final_obs"])
        return self.nearness(obs), reward, terminated, truncated, info

    def restore(self, snapshot: Mapping[str, npt.NDArray[Any]]) -> Array:
        """Return the observations that were current at a snapshot after going back to it."""
        return self.nearness(self.envs.restore(snapshot))
