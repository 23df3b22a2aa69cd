"""Wrappers of vector environments: lidar features, an algorithm's safety state and reward, early termination.

They wrap vector environments with same-step autoreset and ``info["cost"]``, as ``make_vec`` returns.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box
from gymnasium.vector.utils import batch_space

from steingate.algorithms.base import Algorithm, Array, EnvParams, RunContext
from steingate.errors import InputError
from steingate.policies.lidar_features import LidarFeatures
from steingate.policies.safety_state import SafetyState

Flags = npt.NDArray[np.bool_]
StepOutput = tuple[Array, Array, Flags, Flags, dict[str, Any]]  # obs, reward, terminated, truncated, info
Snapshot = Mapping[str, npt.NDArray[Any]]


class VectorEnvWrapper:
    """A vector environment around ``envs``; everything that a subclass does not override is that of ``envs``."""

    def __init__(self, envs: Any) -> None:
        self.envs = envs

    def __getattr__(self, name: str) -> Any:
        return getattr(self.envs, name)

    def _extend_observations(self, low: Any, high: Any) -> None:
        """Set the spaces of observations with more components, which have these bounds."""
        space = self.envs.single_observation_space
        bounds = np.append(space.low, low), np.append(space.high, high)
        self.single_observation_space = Box(*bounds, dtype=np.float64)
        self.observation_space = batch_space(self.single_observation_space, self.envs.num_envs)


class LidarFeatureWrapper(VectorEnvWrapper):
    """A vector environment with lidar features at the end of the observation.

    ``powers`` are exponents of the components with bounds 0 and 1, such as (4.0, 12.0, 36.0); ``positions`` appends
    object positions, if the environment has a ``lidar_layout``.
    """

    def __init__(self, envs: Any, powers: tuple[float, ...] = (), positions: bool = False) -> None:
        super().__init__(envs)
        space = envs.single_observation_space
        layout = getattr(envs, "lidar_layout", None) if positions else None
        unit = np.flatnonzero((space.low == 0.0) & (space.high == 1.0)) if powers else np.zeros(0, np.int64)
        self.lidar_features = (layout or LidarFeatures())._replace(indices=tuple(unit.tolist()), powers=powers)
        bounded = len(unit) * len(powers)
        total = self.lidar_features(np.zeros(space.shape)).size - space.shape[0]
        unbounded = np.full(total - bounded, np.inf)
        self._extend_observations(np.append(np.zeros(bounded), -unbounded), np.append(np.ones(bounded), unbounded))

    def reset(self, **options: Any) -> tuple[Array, dict[str, Any]]:
        """Start new episodes."""
        obs, info = self.envs.reset(**options)
        return self.lidar_features(obs), info

    def step(self, actions: Any) -> StepOutput:
        """Step every environment once."""
        obs, reward, terminated, truncated, info = self.envs.step(actions)
        if "final_obs" in info:
            info["final_obs"] = self.lidar_features(info["final_obs"])
        return self.lidar_features(obs), reward, terminated, truncated, info

    def restore(self, snapshot: Snapshot) -> Array:
        """Return to a snapshot; return its observations."""
        return self.lidar_features(self.envs.restore(snapshot))


class EarlyTerminationWrapper(VectorEnvWrapper):
    """A vector environment whose episodes also terminate where ``algorithm.ends_episode`` says so."""

    def __init__(self, envs: Any, algorithm: Algorithm, context: RunContext) -> None:
        super().__init__(envs)
        self._algorithm, self._context = algorithm, context

    def reset(self, **options: Any) -> tuple[Array, dict[str, Any]]:
        """Start new episodes everywhere."""
        self.accumulated_cost = np.zeros(self.num_envs)
        return self.envs.reset(**options)

    def step(self, actions: Any) -> StepOutput:
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
        return {**self.envs.snapshot(), "early_termination/cost": self.accumulated_cost.copy()}

    def restore(self, snapshot: Snapshot) -> Array:
        """Return to a snapshot; return its observations."""
        inner = dict(snapshot)
        self.accumulated_cost = np.array(inner.pop("early_termination/cost"), np.float64)
        return self.envs.restore(inner)


class SafetyStateWrapper(VectorEnvWrapper):
    """A vector environment with the algorithm's safety state as the last component of the observation.

    The reward is that of ``algorithm.shape_reward``; ``info["original_reward"]`` has the reward of the task, and
    ``info["cost"]`` is unchanged. ``params`` are passed to both; :meth:`set_params` changes them.
    """

    def __init__(self, envs: Any, algorithm: Algorithm, context: RunContext, params: EnvParams = EnvParams()) -> None:
        super().__init__(envs)
        self._algorithm, self._context = algorithm, context
        self.set_params(params)
        self._extend_observations(-np.inf, np.inf)

    def set_params(self, params: EnvParams) -> None:
        """Set the parameters of the next steps; running episodes keep the value of their safety state."""
        if not 0.0 < params.cost_budget_fraction <= 1.0:
            raise InputError(f"cost_budget_fraction is {params.cost_budget_fraction!r}: it must be in (0, 1].")
        state = self._algorithm.safety_state(self._context, params)
        assert state is not None
        self.params: EnvParams = params
        self.safety_state: SafetyState = state

    def reset(self, **options: Any) -> tuple[Array, dict[str, Any]]:
        """Start new episodes everywhere."""
        obs, info = self.envs.reset(**options)
        self.z = np.full(self.num_envs, self.safety_state.start)
        return np.column_stack([obs, self.z]), info

    def step(self, actions: Any) -> StepOutput:
        """Step every environment once."""
        obs, reward, terminated, truncated, info = self.envs.step(actions)
        z = np.asarray(self.safety_state.next(self.z, info["cost"]))
        info["original_reward"] = reward
        shaped = self._algorithm.shape_reward(self._context, self.params, z, reward, info["cost"])
        ended = terminated | truncated
        restart = self.safety_state.start if self.safety_state.restart is None else self.safety_state.restart
        self.z = np.where(ended, restart, z)
        if "final_obs" in info:
            final = self.z if self.safety_state.final_shows_restart else z
            info["final_obs"] = np.column_stack([info["final_obs"], final])
        return np.column_stack([obs, self.z]), shaped, terminated, truncated, info

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state, if the wrapped environment supports it."""
        own = {"safety_state/z": self.z.copy(), "safety_state/params": np.array(self.params)}
        return {**self.envs.snapshot(), **own}

    def restore(self, snapshot: Snapshot) -> Array:
        """Return to a snapshot; return its observations."""
        own = ("safety_state/z", "safety_state/params")
        obs = self.envs.restore({name: value for name, value in snapshot.items() if name not in own})
        self.z = np.array(snapshot[own[0]], np.float64)
        self.set_params(EnvParams(*snapshot[own[1]].tolist()))
        return np.column_stack([obs, self.z])
