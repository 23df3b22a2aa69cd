"""Wrapper that ends the training episodes an algorithm wants to end."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.algorithms.base import Algorithm, Array, RunContext
from steingate.envs.wrapper import VectorEnvWrapper


class EarlyTerminationWrapper(VectorEnvWrapper):
    """A vector environment whose episodes also terminate where ``algorithm.ends_episode`` says so.

    Parameters
    ----------
    envs : a vector environment with same-step autoreset, ``info["cost"]`` and ``options["reset_mask"]`` of reset
    algorithm : has ``ends_episode``
    context : the run
    """

    def __init__(self, envs: Any, algorithm: Algorithm, context: RunContext) -> None:
        super().__init__(envs)
        self._algorithm, self._context = algorithm, context
        self.accumulated_cost = np.zeros(self.num_envs)

    def reset(self, **options: Any) -> tuple[Array, dict[str, Any]]:
        """Start new episodes everywhere."""
        self.accumulated_cost = np.zeros(self.num_envs)
        return self.envs.reset(**options)

    def step(self, actions: Any) -> tuple[Array, Array, npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]:
        """Step every environment once, and reset those whose episode ended or is ended."""
        obs, reward, terminated, truncated, info = self.envs.step(actions)
        self.accumulated_cost = self.accumulated_cost + info["cost"]
        ended = terminated | truncated
        ends = np.asarray(self._algorithm.ends_episode(self._context, self.accumulated_cost), np.bool_) & ~ended
        self.accumulated_cost[ended | ends] = 0.0
        if ends.any():  # the reset overwrites the arrays of the environments
            final, reward = np.where(ends[:, None], obs, info.get("final_obs", obs)), reward.copy()
            info = {**info, "cost": info["cost"].copy(), "final_obs": final}
            terminated, truncated = terminated | ends, truncated.copy()
            obs, _ = self.envs.reset(options={"reset_mask": ends})
        return obs, reward, terminated, truncated, info

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state, if the wrapped environment supports it."""
        return {**super().snapshot(), "early_termination/cost": self.accumulated_cost.copy()}

    def restore(self, snapshot: Mapping[str, npt.NDArray[Any]]) -> Array:
        """Go back to a snapshot and return the observations that were current then."""
        inner = dict(snapshot)
        self.accumulated_cost = np.array(inner.pop("early_termination/cost"), np.float64)
        return self.envs.restore(inner)
