"""Foreign environments behind the same VectorEnv protocol as the native tasks.

A foreign environment is anything with ``reset(seed=...) -> (obs, info)`` and a ``step`` that returns either
Gymnasium's five values with ``info["cost"]`` or the six values ``(obs, reward, cost, terminated, truncated,
info)``. A cost function ``cost(obs, action, next_obs, info) -> float`` replaces whatever cost the environment
gives; it sees observations and actions as the environment itself does.

The environments are stepped one after the other in this process. Seeds are handed on as they are (modulo
2**32, which is all that older generators take), and the reset at the end of an episode gives no seed, so the
environment's own stream goes on. A run that starts each epoch from a reset with new seeds therefore
repeats itself exactly whenever the environment depends on nothing but its seed and its actions.
"""

import copy as copying
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from steingate.envs.inputs import checked_seeds
from steingate.envs.spaces import flat_actions, flat_observations
from steingate.errors import InputError

Cost = Callable[[Any, Any, Any, dict[str, Any]], float]


class ForeignVectorEnv(VectorEnv[NDArray[np.float64], NDArray[np.float64], NDArray[Any]]):
    """N environments of somebody else's making, seen as one native batch.

    Observations are flat float64 vectors and actions flat Boxes. ``info["cost"]`` holds the cost of every
    step, also of those that end an episode. An environment that ends is reset in the same step; its last
    observation is then its row of ``info["final_obs"]`` (rows valid where ``info["_final_obs"]``), its last
    info is in ``info["final_info"]``.

    Parameters
    ----------
    factory : makes one environment
    num_envs : number of environments
    name : how messages call the environment
    cost : cost of a transition, for environments that give none or another one
    max_episode_steps : truncate after so many steps; without it the environment decides alone
    copy : False returns the observation buffer itself, overwritten by the next step
    """

    def __init__(
        self,
        factory: Callable[[], Any],
        num_envs: int,
        *,
        name: str,
        cost: Cost | None = None,
        max_episode_steps: int | None = None,
        copy: bool = True,
    ) -> None:
        self.name = name
        self.envs = [factory() for _ in range(num_envs)]
        first = self.envs[0]
        for attribute in ("reset", "step", "observation_space", "action_space"):
            if not hasattr(first, attribute):
                raise InputError(f"{name!r} is not an environment: it has no {attribute!r}.")
        if len({id(env) for env in self.envs}) < num_envs:
            raise InputError(f"{name!r} gives the same environment twice: make a new one at each call.")
        if max_episode_steps is not None and max_episode_steps < 1:
            raise InputError(f"max_episode_steps is {max_episode_steps}: a positive number is expected.")
        self.num_envs = num_envs
        self.max_episode_steps = max_episode_steps or _stated_limit(first)
        self._limit = max_episode_steps
        self.single_observation_space, self._flatten = flat_observations(first.observation_space, name)
        self.single_action_space, self._shaped = flat_actions(first.action_space, name)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.metadata = {**getattr(first, "metadata", {}), "autoreset_mode": AutoresetMode.SAME_STEP}
        self.render_mode = getattr(first, "render_mode", None)
        self._cost = cost
        self._copy = copy
        self._observations = np.zeros((num_envs, *self.single_observation_space.shape))
        self._last: list[Any] = [None] * num_envs
        self._elapsed = np.zeros(num_envs, dtype=np.int64)
        self.at_work: int | None = None  # which environment has been called last

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Start new episodes and return what they show; an integer seed means ``seed + i`` for row i."""
        infos: dict[str, Any] = {}
        for i, one in enumerate(checked_seeds(seed, self.num_envs)):
            short = None if one is None else one % 2**32
            infos = self._add_info(infos, self._reset_one(i, short, options), i)
        return self._returned(), infos

    def step(
        self, actions: ArrayLike
    ) -> tuple[
        NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]
    ]:
        """Step every environment once and reset those that ended."""
        actions = np.asarray(actions, dtype=np.float64)
        if actions.shape != self.action_space.shape:
            raise InputError(
                f"Actions for {self.name!r} have shape {actions.shape} instead of {self.action_space.shape}."
            )
        bad = ~np.isfinite(actions).all(axis=1)
        if bad.any():
            raise InputError(
                f"The action for environment {int(bad.argmax())} of {self.name!r} is not finite."
            )
        rewards, costs = np.zeros(self.num_envs), np.zeros(self.num_envs)
        terminated = np.zeros(self.num_envs, dtype=np.bool_)
        truncated = np.zeros(self.num_envs, dtype=np.bool_)
        infos: dict[str, Any] = {}
        final_infos: dict[str, Any] = {}
        final_obs = np.zeros_like(self._observations)
        for i in range(self.num_envs):
            rewards[i], costs[i], terminated[i], truncated[i], info = self._step_one(i, actions[i])
            infos = self._add_info(infos, info, i)
            if terminated[i] or truncated[i]:
                final_infos = self._add_info(final_infos, {**info, "cost": costs[i]}, i)
                final_obs[i] = self._observations[i]
                self._reset_one(i, None, None)
        infos["cost"] = costs
        infos["_cost"] = np.ones(self.num_envs, dtype=np.bool_)
        ended = terminated | truncated
        if ended.any():
            infos["final_obs"], infos["_final_obs"] = final_obs, ended
            infos["final_info"], infos["_final_info"] = final_infos, ended.copy()
        return self._returned(), rewards, terminated, truncated, infos

    def render(self) -> tuple[Any, ...]:
        """Return one frame per environment, as the environments draw themselves."""
        return tuple(env.render() for env in self.envs)

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Return the whole state, if the environments have ``snapshot`` and ``restore`` themselves."""
        state: dict[str, NDArray[Any]] = {
            "elapsed": self._elapsed.copy(),
            "observations": self._observations.copy(),
        }
        for i, env in enumerate(self.envs):
            parts = self._saving(env, "snapshot")()
            state.update({f"env{i}/{key}": np.asarray(value) for key, value in parts.items()})
        return state

    def restore(self, snapshot: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        """Return the observations that were current at a snapshot after going back to it."""
        if snapshot["elapsed"].shape != (self.num_envs,):
            raise InputError(
                f"This snapshot holds {snapshot['elapsed'].size} environments: {self.num_envs} are expected."
            )
        for i, env in enumerate(self.envs):
            start = f"env{i}/"
            parts = {
                key.removeprefix(start): value for key, value in snapshot.items() if key.startswith(start)
            }
            self._saving(env, "restore")(parts)
        self._elapsed[:] = snapshot["elapsed"]
        self._observations[:] = snapshot["observations"]
        return self._observations.copy()

    def close_extras(self, **kwargs: Any) -> None:
        """Close the environments."""
        for env in self.envs:
            env.close()

    def _saving(self, env: Any, method: str) -> Callable[..., Any]:
        """Return a method of the innermost environment, which foreign environments seldom have."""
        if self._cost is not None:  # it needs the observation before, in a form that may be no array
            raise InputError(
                f"Environment {self.name!r} has a cost function, so it cannot be saved within an episode: "
                "let every epoch start from a reset."
            )
        found = getattr(getattr(env, "unwrapped", env), method, None)
        if found is None:
            raise InputError(
                f"Environment {self.name!r} cannot be saved within an episode because it has no {method}(): "
                "give it snapshot() and restore(), or let every epoch start from a reset."
            )
        return found  # type: ignore[no-any-return]

    def _reset_one(self, i: int, seed: int | None, options: dict[str, Any] | None) -> dict[str, Any]:
        """Reset environment i and return its info."""
        self.at_work = i
        arguments: dict[str, Any] = {} if seed is None else {"seed": seed}
        if options is not None:
            arguments["options"] = options
        answer = self.envs[i].reset(**arguments)
        if not (isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], dict)):
            raise InputError(f"Environment {self.name!r} must return (observation, info) from reset.")
        self._observe(i, answer[0])
        self._elapsed[i] = 0
        return answer[1]

    def _step_one(
        self, i: int, action: NDArray[np.float64]
    ) -> tuple[float, float, bool, bool, dict[str, Any]]:
        """Step environment i and return reward, cost, the two flags and its info."""
        self.at_work = i
        own = self._shaped(action)
        answer = self.envs[i].step(own)
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
            cost = self._cost(self._last[i], own, obs, info)
        cost = _number(cost, self.name)
        self._observe(i, obs)
        self._elapsed[i] += 1
        late = self._limit is not None and self._elapsed[i] >= self._limit
        return float(reward), cost, bool(terminated), bool(truncated) or late, info

    def _observe(self, i: int, obs: Any) -> None:
        """Store an observation, and the original for a cost function (copied: it may be a buffer in use)."""
        flat = self._flatten(obs)
        if flat.shape != self._observations[i].shape:
            size = self._observations.shape[1]
            raise InputError(
                f"Environment {self.name!r} gives {flat.size} numbers as observation: its space has {size}."
            )
        self._observations[i] = flat
        if self._cost is not None:
            self._last[i] = copying.deepcopy(obs)

    def _returned(self) -> NDArray[np.float64]:
        """Return the observations, copied unless the caller asked for the buffer."""
        return self._observations.copy() if self._copy else self._observations


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
