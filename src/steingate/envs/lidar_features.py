"""Wrapper that appends lidar features to the observation."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box
from gymnasium.vector.utils import batch_space

from steingate.envs.wrapper import VectorEnvWrapper
from steingate.policies.lidar_features import Array, LidarFeatures


class LidarFeatureWrapper(VectorEnvWrapper):
    """A vector environment with lidar features at the end of the observation.

    Parameters
    ----------
    envs : a vector environment
    powers : exponents of the components between 0 and 1, such as (4.0, 12.0, 36.0)
    positions : whether to append object positions, if the environment has a ``lidar_layout``
    """

    def __init__(self, envs: Any, powers: tuple[float, ...] = (), positions: bool = False) -> None:
        super().__init__(envs)
        space = envs.single_observation_space
        layout = getattr(envs, "lidar_layout", None) if positions else None
        self.lidar_features = LidarFeatures.for_space(space.low, space.high, powers, layout)
        bounded = self.lidar_features.n_powers
        unbounded = self.lidar_features.n_features - bounded
        low = np.concatenate([space.low, np.zeros(bounded), np.full(unbounded, -np.inf)])
        high = np.concatenate([space.high, np.ones(bounded), np.full(unbounded, np.inf)])
        self.single_observation_space = Box(low, high, dtype=np.float64)
        self.observation_space = batch_space(self.single_observation_space, envs.num_envs)

    def reset(self, **options: Any) -> tuple[Array, dict[str, Any]]:
        """Start new episodes."""
        obs, info = self.envs.reset(**options)
        return self.lidar_features(obs), info

    def step(self, actions: Any) -> tuple[Array, Array, npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]:
        """Step every environment once."""
        obs, reward, terminated, truncated, info = self.envs.step(actions)
        if "final_obs" in info:
            info["final_obs"] = self.lidar_features(info["final_obs"])
        return self.lidar_features(obs), reward, terminated, truncated, info

    def restore(self, snapshot: Mapping[str, npt.NDArray[Any]]) -> Array:
        """Go back to a snapshot and return the observations that were current then."""
        return self.lidar_features(self.envs.restore(snapshot))
