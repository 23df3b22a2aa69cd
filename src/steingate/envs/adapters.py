"""Adapter for one Gymnasium environment: flat observations, a cost per step, a step limit, autoreset."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from steingate.errors import InputError

CostFunction = Callable[[Any, Any, Any, dict[str, Any]], float]
_DISCRETE = (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


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
        self.env, self.name, self._cost, self._limit = env, name, cost, max_episode_steps
        self.observation_space, self._flatten = flatten_observations(env.observation_space, name)
        self.action_space, self._to_env_action = flatten_actions(env.action_space, name)
        self.elapsed_steps = 0
        self._previous_obs: Any = None  # unflattened; only with a cost function

    @property
    def max_episode_steps(self) -> int | None:
        """Maximum length of an episode, if the adapter, the environment or a wrapper defines it."""
        return self._limit or _time_limit(self.env)

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Start an episode; without a seed the random generator of the environment continues."""
        given = {"seed": seed, "options": options}
        result = self.env.reset(**{name: value for name, value in given.items() if value is not None})
        if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict)):
            raise InputError(f"Environment {self.name!r} must return (observation, info) from reset.")
        self.elapsed_steps = 0
        return self._observe(result[0]), result[1]

    def step(self, action: Any) -> StepResult:
        """Step once, and reset if the episode ended."""
        env_action = self._to_env_action(action)
        result = self.env.step(env_action)
        match result:
            case (obs, reward, cost, terminated, truncated, dict(info)):
                pass
            case (obs, reward, terminated, truncated, dict(info)):
                cost = info.get("cost")
            case _:
                size = len(result) if isinstance(result, tuple) else 1
                raise InputError(
                    f"Environment {self.name!r} returns {size} values from step: "
                    "Gymnasium's five, or six with the cost in third place, are expected."
                )
        if self._cost is not None:
            cost = self._cost(self._previous_obs, env_action, obs, info)
        cost = _to_float(cost, self.name, self.elapsed_steps + 1)
        flat = self._observe(obs)
        self.elapsed_steps += 1
        truncated = bool(truncated) or (self._limit is not None and self.elapsed_steps >= self._limit)
        ends = bool(terminated), truncated
        if not any(ends):
            return StepResult(flat, float(reward), cost, *ends, info, None)
        final_obs = flat.copy()  # the environment may reuse its buffer
        return StepResult(self.reset()[0], float(reward), cost, *ends, info, final_obs)

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Return the state as named arrays, if the environment implements ``snapshot`` and ``restore``."""
        state = self._state_method("snapshot")()
        return {key: np.asarray(value) for key, value in state.items()}

    def restore(self, state: dict[str, NDArray[Any]], elapsed_steps: int) -> None:
        """Return to a snapshot that was taken ``elapsed_steps`` steps into an episode."""
        self._state_method("restore")(state)
        self.elapsed_steps = elapsed_steps

    def close(self) -> None:
        """Close the environment, if it has a ``close`` method."""
        getattr(self.env, "close", lambda: None)()

    def _state_method(self, method: str) -> Callable[..., Any]:
        """Return ``snapshot`` or ``restore`` of the innermost environment."""
        if self._cost is not None:  # needs the previous observation, which may not be an array
            raise InputError(
                f"Environment {self.name!r} has a cost function, so it cannot be saved within an episode: "
                "let every epoch start from a reset."
            )
        found = getattr(getattr(self.env, "unwrapped", self.env), method, None)
        if found is None:
            raise InputError(
                f"Environment {self.name!r} cannot be saved within an episode because it has no {method}(): "
                "give it snapshot() and restore(), or let every epoch start from a reset."
            )
        return found  # type: ignore[no-any-return]

    def _observe(self, obs: Any) -> NDArray[np.float64]:
        """Return a flat observation; store a copy of the original for the cost function."""
        flat = self._flatten(obs)
        if flat.shape != self.observation_space.shape:
            size = self.observation_space.shape[0]
            raise InputError(f"Environment {self.name!r} observes {flat.size} numbers: its space has {size}.")
        if self._cost is not None:
            self._previous_obs = copy.deepcopy(obs)
        return flat


def flatten_observations(space: Any, name: str) -> tuple[spaces.Box, Callable[[Any], NDArray[np.float64]]]:
    """Return the flat float64 Box of an observation space and the function that flattens an observation.

    Dict and Tuple spaces are concatenated in their own order; Discrete spaces become one-hot vectors. Images and
    spaces without a fixed length are refused.
    """
    _check_observations(space, name)
    if isinstance(space, spaces.Box):
        low, high = space.low.ravel().astype(np.float64), space.high.ravel().astype(np.float64)
        return spaces.Box(low, high, dtype=np.float64), lambda obs: np.asarray(obs, np.float64).ravel()
    box = spaces.utils.flatten_space(space)
    assert isinstance(box, spaces.Box)
    flat = spaces.Box(box.low.astype(np.float64), box.high.astype(np.float64), dtype=np.float64)
    return flat, lambda obs: np.asarray(spaces.utils.flatten(space, obs), dtype=np.float64)


def observation_layout(space: Any) -> dict[str, Any]:
    """Return how ``flatten_observations`` orders an observation, for stored policies (``policies.policy``)."""
    match space:
        case spaces.Dict():
            return {"dict": [[key, observation_layout(part)] for key, part in space.spaces.items()]}
        case spaces.Tuple():
            return {"tuple": [observation_layout(part) for part in space.spaces]}
        case spaces.Discrete():
            return {"one_hot": [int(space.n), int(space.start)]}
        case spaces.MultiDiscrete():
            pairs = zip(space.nvec.ravel().tolist(), space.start.ravel().tolist(), strict=True)
            return {"tuple": [{"one_hot": list(pair)} for pair in pairs]}
    return {"numbers": int(np.prod(space.shape, dtype=np.int64))}


def flatten_actions(space: Any, name: str) -> tuple[spaces.Box | spaces.Discrete, Callable[[Any], Any]]:
    """Return the action space of the learner and the function from its actions to those of the environment.

    A Discrete space stays as it is. A Box with finite bounds becomes a flat float64 Box, to which actions are clipped.
    Other spaces are refused.
    """
    if isinstance(space, spaces.Discrete):
        return spaces.Discrete(int(space.n), start=int(space.start)), np.int64
    if not isinstance(space, spaces.Box):
        advice = ", so number the combinations in a gymnasium.ActionWrapper"
        raise InputError(
            f"Environment {name!r} has {type(space).__name__} actions: only Box and Discrete actions work"
            f"{advice if isinstance(space, _DISCRETE) else ''}."
        )
    if space.dtype is not None and not np.issubdtype(space.dtype, np.floating):
        raise InputError(f"Environment {name!r} has Box actions of type {space.dtype}: only floating-point ones work.")
    if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
        raise InputError(
            f"Environment {name!r} has actions without finite bounds: "
            "give its action_space finite low and high, for example in a gymnasium.ActionWrapper."
        )
    low, high = space.low.ravel().astype(np.float64), space.high.ravel().astype(np.float64)
    shape, dtype = space.shape, space.dtype

    def to_env_action(action: NDArray[np.float64]) -> NDArray[Any]:
        return np.clip(action, low, high).reshape(shape).astype(dtype)

    return spaces.Box(low, high, dtype=np.float64), to_env_action


def _check_observations(space: Any, name: str) -> None:
    """Raise InputError if an observation space contains images or has no fixed length."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        for item in space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces:
            _check_observations(item, name)
    elif isinstance(space, spaces.Box):
        if space.dtype == np.uint8 and len(space.shape) == 3:
            raise InputError(
                f"Environment {name!r} observes images of shape {space.shape}: "
                "only vector observations are supported, so turn them into features in a wrapper."
            )
    elif not isinstance(space, _DISCRETE):
        raise InputError(
            f"Environment {name!r} has {type(space).__name__} observations: only Gymnasium's Box, Discrete, "
            "MultiDiscrete, MultiBinary, Dict and Tuple are supported."
        )


def _to_float(cost: Any, name: str, step: int) -> float:
    if cost is None:
        raise InputError(
            f"Environment {name!r} gives no cost at step {step}: put it into info['cost'], 0.0 if there is none, "
            "return it third of six values from step, or pass cost=function(obs, action, next_obs, info)."
        )
    array = np.asarray(cost)
    if array.size != 1 or not (np.issubdtype(array.dtype, np.number) or array.dtype == np.bool_):
        raise InputError(f"Environment {name!r} gives the cost {cost!r} at step {step}: one number is expected.")
    return float(array.item())


def _time_limit(env: Any) -> int | None:
    """Return the maximum episode length that an environment or one of its wrappers defines."""
    limits = [getattr(getattr(env, "spec", None), "max_episode_steps", None)]
    while env is not None:
        attributes = getattr(env, "__dict__", {})
        limits += [attributes.get("max_episode_steps"), attributes.get("_max_episode_steps")]
        env = attributes.get("env")
    return next((int(limit) for limit in limits if isinstance(limit, int | np.integer) and limit > 0), None)
