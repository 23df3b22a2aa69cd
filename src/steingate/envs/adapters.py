"""Adapter for one Gymnasium environment: flat observations, a cost per step, a step limit, autoreset."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from steingate.errors import InputError

CostFunction = Callable[[Any, Any, Any, dict[str, Any]], float]


class ResetResult(NamedTuple):
    """Result of a reset."""

    obs: NDArray[np.float64]
    info: dict[str, Any]


class StepResult(NamedTuple):
    """Result of one step. If the episode ended, ``obs`` is the first observation of the next episode."""

    obs: NDArray[np.float64]
    reward: float
    cost: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]
    final_obs: NDArray[np.float64] | None  # last observation of an episode that ended


class EnvAdapter:
    """An environment with flat float64 observations and a cost, reset automatically at the end of an episode.

    Parameters
    ----------
    env : environment with ``reset``, ``step``, ``observation_space`` and ``action_space``. ``step`` returns Gymnasium's
        five values with ``info["cost"]``, or six values with the cost in third place.
    name : name of the environment in error messages
    cost : function of (obs, action, next_obs, info) that replaces the cost of the environment
    max_episode_steps : truncate episodes after this number of steps; by default the environment decides
    """

    def __init__(
        self, env: Any, name: str, cost: CostFunction | None = None, max_episode_steps: int | None = None
    ) -> None:
        for attribute in ("reset", "step", "observation_space", "action_space"):
            if not hasattr(env, attribute):
                raise InputError(f"{name!r} is not an environment: it has no {attribute!r}.")
        if max_episode_steps is not None and max_episode_steps < 1:
            raise InputError(f"max_episode_steps is {max_episode_steps}: a positive number is expected.")
        self.env, self.name, self._cost, self.max_episode_steps = env, name, cost, max_episode_steps
        self.observation_space, self._flatten = flatten_observations(env.observation_space, name)
        self.action_space, self._to_env_action = flatten_actions(env.action_space, name)
        self.elapsed_steps = 0
        self._previous_obs: Any = None  # unflattened; only with a cost function

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> ResetResult:
        """Start an episode; without a seed the random generator of the environment continues."""
        given = {"seed": seed, "options": options}
        result = self.env.reset(**{name: value for name, value in given.items() if value is not None})
        if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict)):
            raise InputError(f"Environment {self.name!r} must return (observation, info) from reset.")
        self.elapsed_steps = 0
        return ResetResult(self._observe(result[0]), result[1])

    def step(self, action: Any) -> StepResult:
        """Step once, and reset if the episode ended."""
        env_action = self._to_env_action(action)
        result = self.env.step(env_action)
        size = len(result) if isinstance(result, tuple) else 1
        if size not in (5, 6):
            raise InputError(
                f"Environment {self.name!r} returns {size} values from step: "
                "Gymnasium's five, or six with the cost in third place, are expected."
            )
        obs, reward, *costs, terminated, truncated, info = result
        cost = costs[0] if costs else info.get("cost")
        if self._cost is not None:
            cost = self._cost(self._previous_obs, env_action, obs, info)
        cost = _to_float(cost, self.name, self.elapsed_steps + 1)
        flat = self._observe(obs)
        self.elapsed_steps += 1
        truncated = bool(truncated) or self.elapsed_steps == self.max_episode_steps
        if terminated or truncated:
            return StepResult(self.reset().obs, float(reward), cost, bool(terminated), truncated, info, flat)
        return StepResult(flat, float(reward), cost, False, False, info, None)

    def render(self) -> Any:
        """Return a frame."""
        return self.env.render()

    def snapshot(self) -> tuple[dict[str, NDArray[Any]], int]:
        """Return the state as named arrays and the elapsed steps; the environment needs ``snapshot``, ``restore``."""
        state = self._state_method("snapshot")()
        return {key: np.asarray(value) for key, value in state.items()}, self.elapsed_steps

    def restore(self, state: dict[str, NDArray[Any]], elapsed_steps: int) -> None:
        """Return to a snapshot."""
        self._state_method("restore")(state)
        self.elapsed_steps = elapsed_steps

    def close(self) -> None:
        """Close the environment, if it has a ``close`` method."""
        getattr(self.env, "close", lambda: None)()

    def _state_method(self, method: str) -> Any:
        """Return ``snapshot`` or ``restore`` of the innermost environment."""
        found = getattr(getattr(self.env, "unwrapped", self.env), method, None)
        if found is None or self._cost is not None:  # a cost function needs the previous observation
            raise InputError(
                f"Environment {self.name!r} cannot be saved within an episode, which takes snapshot() and restore(), "
                "and a cost in info: let every epoch start from a reset."
            )
        return found

    def _observe(self, obs: Any) -> NDArray[np.float64]:
        """Return a flat copy of an observation; store a copy of the original for the cost function."""
        flat = self._flatten(obs)
        if flat.shape != self.observation_space.shape:
            size = self.observation_space.shape[0]
            raise InputError(f"Environment {self.name!r} observes {flat.size} numbers: its space has {size}.")
        if self._cost is not None:
            self._previous_obs = copy.deepcopy(obs)
        return flat


def flatten_observations(space: Any, name: str) -> tuple[spaces.Box, Callable[[Any], NDArray[np.float64]]]:
    """Return the flat float64 Box of an observation space and the function that copies an observation into it.

    Dict and Tuple spaces are concatenated in their own order; Discrete spaces become one-hot vectors. Images and
    spaces without a fixed length are refused.
    """
    observation_layout(space, name)
    if isinstance(space, spaces.Box):
        low, high = space.low.ravel().astype(np.float64), space.high.ravel().astype(np.float64)
        return spaces.Box(low, high, dtype=np.float64), lambda obs: np.array(obs, np.float64).ravel()
    box: Any = spaces.utils.flatten_space(space)
    flat = spaces.Box(box.low.astype(np.float64), box.high.astype(np.float64), dtype=np.float64)
    return flat, lambda obs: np.array(spaces.utils.flatten(space, obs), np.float64)


def observation_layout(space: Any, name: str) -> dict[str, Any]:
    """Return how ``flatten_observations`` orders an observation, for stored policies (``policies.policy``)."""
    match space:
        case spaces.Dict():
            return {"dict": [[key, observation_layout(part, name)] for key, part in space.spaces.items()]}
        case spaces.Tuple():
            return {"tuple": [observation_layout(part, name) for part in space.spaces]}
        case spaces.Discrete():
            return {"one_hot": [int(space.n), int(space.start)]}
        case spaces.MultiDiscrete():
            pairs = zip(space.nvec.ravel().tolist(), space.start.ravel().tolist(), strict=True)
            return {"tuple": [{"one_hot": list(pair)} for pair in pairs]}
        case spaces.Box(dtype=np.uint8, shape=(_, _, _)):
            kind = f"images of shape {space.shape}: turn them into features in a wrapper"
        case spaces.Box() | spaces.MultiBinary():
            return {"numbers": int(np.prod(space.shape, dtype=np.int64))}
        case _:
            kind = f"a {type(space).__name__} space: use Box, Discrete, MultiDiscrete, MultiBinary, Dict and Tuple"
    raise InputError(f"Environment {name!r} observes {kind}.")


def flatten_actions(space: Any, name: str) -> tuple[spaces.Box | spaces.Discrete, Callable[[Any], Any]]:
    """Return the action space of the learner and the function from its actions to those of the environment.

    A Discrete space stays as it is. A Box with finite bounds becomes a flat float64 Box, to which actions are clipped.
    Other spaces are refused.
    """
    if isinstance(space, spaces.Discrete):
        return spaces.Discrete(int(space.n), start=int(space.start)), np.int64
    problem = None
    if not isinstance(space, spaces.Box):
        problem = f"{type(space).__name__} actions: map numbers (Discrete) or a Box to them"
    elif not np.issubdtype(space.dtype, np.floating):
        problem = f"Box actions of type {space.dtype}: map floating-point ones to them"
    elif not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
        problem = "actions without finite bounds: give them finite low and high"
    if problem is not None:
        raise InputError(f"Environment {name!r} has {problem} in a gymnasium.ActionWrapper.")
    low, high = space.low.ravel().astype(np.float64), space.high.ravel().astype(np.float64)

    def to_env_action(action: NDArray[np.float64]) -> NDArray[Any]:
        return np.clip(action, low, high).reshape(space.shape).astype(space.dtype)

    return spaces.Box(low, high, dtype=np.float64), to_env_action


def _to_float(cost: Any, name: str, step: int) -> float:
    array = np.asarray(cost)
    if array.size != 1 or array.dtype.kind not in "biuf":
        given = "no cost" if cost is None else f"the cost {cost!r}"
        raise InputError(
            f"Environment {name!r} gives {given} at step {step}: put it into info['cost'] as one number, 0.0 if there "
            "is none, return it third of six values from step, or pass cost=function(obs, action, next_obs, info)."
        )
    return float(array.item())
