"""Wrapper that appends an algorithm's safety state to the observation and replaces the reward."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box
from gymnasium.vector.utils import batch_space

from steingate.algorithms.base import Algorithm, Array, EnvParams, RunContext
from steingate.envs.wrapper import VectorEnvWrapper
from steingate.errors import InputError
from steingate.policies.safety_state import SafetyState


class SafetyStateWrapper(VectorEnvWrapper):
    """A vector environment with the safety state as the last component of the observation.

    The reward is that of ``algorithm.shape_reward``; ``info["original_reward"]`` has the reward of the task, and
    ``info["cost"]`` is unchanged.

    Parameters
    ----------
    envs : a vector environment with same-step autoreset and ``info["cost"]``
    algorithm : defines safety state and reward
    context : the run
    params : what the algorithm passes to both; :meth:`set_params` changes it
    """

    def __init__(self, envs: Any, algorithm: Algorithm, context: RunContext, params: EnvParams = EnvParams()) -> None:
        super().__init__(envs)
        self._algorithm, self._context = algorithm, context
        self.set_params(params)
        space = envs.single_observation_space
        low, high = np.append(space.low, -np.inf), np.append(space.high, np.inf)
        self.single_observation_space = Box(low, high, dtype=np.float64)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.z = np.full(self.num_envs, self.safety_state.start)

    def set_params(self, params: EnvParams) -> None:
        """Set the parameters of the next steps; running episodes keep the value of their safety state."""
        if not 0.0 < params.cost_budget_fraction <= 1.0:
            raise InputError(f"cost_budget_fraction is {params.cost_budget_fraction!r}: it must be in (0, 1].")
        state = self._algorithm.safety_state(self._context, params)
        assert state is not None
        self.params: EnvParams = params
        self.safety_state: SafetyState = state

    def reset(self, **options: Any) -> tuple[Array, dict[str, Any]]:
        """Start new episodes."""
        obs, info = self.envs.reset(**options)
        mask = (options.get("options") or {}).get("reset_mask")
        self.z[slice(None) if mask is None else np.asarray(mask)] = self.safety_state.start
        return self._append(obs), info

    def step(self, actions: Any) -> tuple[Array, Array, npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]:
        """Step every environment once."""
        obs, reward, terminated, truncated, info = self.envs.step(actions)
        z = np.asarray(self.safety_state.next(self.z, info["cost"]))
        info["original_reward"] = reward
        shaped = self._algorithm.shape_reward(self._context, self.params, z, reward, info["cost"])
        ended = terminated | truncated
        self.z = z
        if ended.any():
            restart = self.safety_state.restart
            self.z = np.where(ended, self.safety_state.start if restart is None else restart, z)
            if "final_obs" in info:
                final = self.z if self.safety_state.final_shows_restart else z
                info["final_obs"] = np.column_stack([info["final_obs"], final])
        return self._append(obs), shaped, terminated, truncated, info

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state, if the wrapped environment supports it."""
        own = {"safety_state/z": self.z.copy(), "safety_state/params": np.array(self.params)}
        return {**super().snapshot(), **own}

    def restore(self, snapshot: Mapping[str, npt.NDArray[Any]]) -> Array:
        """Go back to a snapshot and return the observations that were current then."""
        inner = {name: value for name, value in snapshot.items() if not name.startswith("safety_state/")}
        obs = self.envs.restore(inner)
        self.z = np.array(snapshot["safety_state/z"], np.float64)
        self.set_params(EnvParams(*(float(value) for value in snapshot["safety_state/params"])))
        return self._append(obs)

    def _append(self, obs: Array) -> Array:
        return np.column_stack([obs, self.z])
