"""One environment of somebody else's making: flat observations, a cost with every step, a limit on steps."""

import copy as copying
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steingate.envs.spaces import flat_actions, flat_observations
from steingate.errors import InputError

Cost = Callable[[Any, Any, Any, dict[str, Any]], float]


class Told(NamedTuple):
    """What one step says; where it ended the episode, ``obs`` is the first of the next."""

    obs: NDArray[np.float64]
    reward: float
    cost: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]
    final: NDArray[np.float64] | None  # last observation of an episode that ended


class OneEnv:
    """An environment that resets itself when an episode ends.

    Parameters
    ----------
    env : has reset, step and two spaces
    name : how messages call it
    cost : cost of a transition, for environments that give none or another one
    limit : truncate after so many steps; without it the environment decides alone
    """

    def __init__(self, env: Any, name: str, cost: Cost | None = None, limit: int | None = None) -> None:
        for attribute in ("reset", "step", "observation_space", "action_space"):
            if not hasattr(env, attribute):
                raise InputError(f"{name!r} is not an environment: it has no {attribute!r}.")
        if limit is not None and limit < 1:
            raise InputError(f"max_episode_steps is {limit}: a positive number is expected.")
        self.env, self.name, self._cost, self._limit = env, name, cost, limit
        self.observation_space, self._flatten = flat_observations(env.observation_space, name)
        self.action_space, self._shaped = flat_actions(env.action_space, name)
        self.elapsed = 0
        self._last: Any = None  # observation before a step, as the environment gave it

    @property
    def max_episode_steps(self) -> int | None:
        """The most steps of an episode, where somebody says."""
        return self._limit or _stated_limit(self.env)

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Start an episode; without a seed the environment's own stream goes on."""
        arguments: dict[str, Any] = {} if seed is None else {"seed": seed}
        if options is not None:
            arguments["options"] = options
        answer = self.env.reset(**arguments)
        if not (isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], dict)):
            raise InputError(f"Environment {self.name!r} must return (observation, info) from reset.")
        self.elapsed = 0
        return self._observed(answer[0]), answer[1]

    def step(self, action: Any) -> Told:
        """Step once, and reset if that ended the episode."""
        own = self._shaped(action)
        answer = self.env.step(own)
        match answer:
            case (obs, reward, cost, terminated, truncated, dict(info)):
                pass
            case (obs, reward, terminated, truncated, dict(info)):
                cost = info.get("cost")
            case _:
                size = len(answer) if isinstance(answer, tuple) else 1
                raise InputError(
                    f"Environment {self.name!r} returns {size} values from step: "
                    "Gymnasium's five, or six with the cost in third place, are expected."
                )
        if self._cost is not None:
            cost = self._cost(self._last, own, obs, info)
        cost = _number(cost, self.name)
        seen = self._observed(obs)
        self.elapsed += 1
        late = self._limit is not None and self.elapsed >= self._limit
        ends = (bool(terminated), bool(truncated) or late)
        if not any(ends):
            return Told(seen, float(reward), cost, *ends, info, None)
        final = seen.copy()  # which may be the environment's own buffer
        return Told(self.reset()[0], float(reward), cost, *ends, info, final)

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Return the state, if the environment has ``snapshot`` and ``restore`` itself."""
        parts = self._saving("snapshot")()
        return {key: np.asarray(value) for key, value in parts.items()}

    def restore(self, parts: dict[str, NDArray[Any]], elapsed: int) -> None:
        """Go back to a snapshot, so many steps into an episode."""
        self._saving("restore")(parts)
        self.elapsed = elapsed

    def close(self) -> None:
        """Close the environment, if it can be closed."""
        getattr(self.env, "close", lambda: None)()

    def _saving(self, method: str) -> Callable[..., Any]:
        """Return a method of the innermost environment, which foreign environments seldom have."""
        if self._cost is not None:  # it needs the observation before, in a form that may be no array
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

    def _observed(self, obs: Any) -> NDArray[np.float64]:
        """Return an observation flat, and keep the original for a cost function (copied: it may change)."""
        flat = self._flatten(obs)
        if flat.shape != self.observation_space.shape:
            size = self.observation_space.shape[0]
            raise InputError(
                f"Environment {self.name!r} gives {flat.size} numbers as observation: its space has {size}."
            )
        if self._cost is not None:
            self._last = copying.deepcopy(obs)
        return flat


def said_and_place(error: BaseException) -> tuple[str, str]:
    """Return what an environment's error says, on one line, and where it was raised."""
    if isinstance(error, EnvFailedError):
        return error.said, error.place
    what = " ".join(str(error).split()).rstrip(".")
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {what}" if what else type(error).__name__, place


class EnvFailedError(Exception):
    """An environment raised an error in another process."""

    def __init__(self, said: str, place: str) -> None:
        super().__init__(said)
        self.said, self.place = said, place


def _number(cost: Any, name: str) -> float:
    """Return a cost as a float, or say what is missing."""
    if cost is None:
        raise InputError(
            f"Environment {name!r} gives no cost: put it into info['cost'], "
            "return it third of six values from step, or pass cost=function(obs, action, next_obs, info)."
        )
    array = np.asarray(cost)
    if array.size != 1 or not (np.issubdtype(array.dtype, np.number) or array.dtype == np.bool_):
        raise InputError(f"Environment {name!r} gives the cost {cost!r}: one number is expected.")
    return float(array.item())


def _stated_limit(env: Any) -> int | None:
    """Return the episode length an environment or its wrappers state, if they do."""
    spec = getattr(env, "spec", None)
    stated = [getattr(spec, "max_episode_steps", None)]
    while env is not None:
        fields = getattr(env, "__dict__", {})
        stated += [fields.get("max_episode_steps"), fields.get("_max_episode_steps")]
        env = fields.get("env")
    return next((int(limit) for limit in stated if isinstance(limit, int | np.integer) and limit > 0), None)
