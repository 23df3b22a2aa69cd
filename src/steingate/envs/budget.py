"""Environments that show how much cost an episode has had: one more number in the observation.

``Remaining`` is the safety state of Sauté and Simmer, which also takes the reward away once the budget is
spent; ``Running`` is the cost so far. The number is the last of the observation and is meant to stay as it is
where the others are normalised.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box
from gymnasium.vector.utils import batch_space

from steingate.errors import InputError

Array = npt.NDArray[np.float64]


class Extra(NamedTuple):
    """What a policy without the wrapper needs to keep the number itself: z <- (z + cost * gain) / discount."""

    start: float
    gain: float
    discount: float


class Law(Protocol):
    """How the number begins, follows the cost, and changes the reward."""

    def first(self, share: float, after_end: bool) -> float:
        """Return the number at the start of an episode, for a share of the budget."""
        ...

    def following(self, number: Array, cost: Array, share: float) -> Array:
        """Return the number after a step."""
        ...

    def reward(self, number: Array, reward: Array) -> Array:
        """Return the reward to learn from, by the number after the step."""
        ...

    def extra(self, share: float) -> Extra:
        """Return the same as plain numbers."""
        ...

    @property
    def true_at_end(self) -> bool:
        """Whether a final observation shows the number of its own episode, not of the next."""
        ...


@dataclass(frozen=True)
class Remaining:
    """The share of a cost budget that is left: z <- (z - cost / budget) / discount, from 1 at the start.

    ``budget`` is the limit, discounted over an episode. A controlled share of it (Simmer) is where z starts,
    and the scale stays ``budget``. Three flags hold what the published code does instead.
    """

    budget: float
    discount: float = 0.999
    unsafe_reward: float = -1.0
    true_at_end: bool = True  # published: a final observation shows the number of the next episode
    scale_by_share: bool = False  # published: the cost is divided by the controlled budget
    restart_full: bool = False  # published: after an episode within an epoch z starts at 1

    def first(self, share: float, after_end: bool) -> float:
        """Return the number at the start of an episode."""
        return 1.0 if after_end and self.restart_full else share

    def following(self, number: Array, cost: Array, share: float) -> Array:
        """Return the number after a step."""
        scale = self.budget * share if self.scale_by_share else self.budget
        return (number - cost / scale) / self.discount

    def reward(self, number: Array, reward: Array) -> Array:
        """Return the reward while some budget is left, the unsafe reward afterwards."""
        return np.where(number > 0.0, reward, self.unsafe_reward)

    def extra(self, share: float) -> Extra:
        """Return start, gain and discount."""
        scale = self.budget * share if self.scale_by_share else self.budget
        return Extra(self.first(share, False), -1.0 / scale, self.discount)


@dataclass(frozen=True)
class Running:
    """The cost of the episode so far, divided by ``limit``; the reward stays as it is."""

    limit: float
    true_at_end: bool = True

    def first(self, share: float, after_end: bool) -> float:
        """Return 0."""
        del share, after_end
        return 0.0

    def following(self, number: Array, cost: Array, share: float) -> Array:
        """Return the number after a step."""
        del share
        return number + cost / self.limit

    def reward(self, number: Array, reward: Array) -> Array:
        """Return the reward."""
        del number
        return reward

    def extra(self, share: float) -> Extra:
        """Return start, gain and discount."""
        del share
        return Extra(0.0, 1.0 / self.limit, 1.0)


class Augmented:
    """A vector environment with one more number in the observation, by ``law``.

    ``info["cost"]`` stays the original cost and ``info["original_reward"]`` is the original reward. Everything
    else (rendering, spaces of actions, attributes) is that of the environment inside.

    Parameters
    ----------
    envs : a vector environment with same-step autoreset and ``info["cost"]``
    law : what the number is
    """

    extra_features = 1

    def __init__(self, envs: Any, law: Law) -> None:
        space = envs.single_observation_space
        self.envs, self.law, self.share = envs, law, 1.0
        self.num_envs = envs.num_envs
        low, high = np.append(space.low, -np.inf), np.append(space.high, np.inf)
        self.single_observation_space = Box(low, high, dtype=np.float64)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.number = np.full(self.num_envs, law.first(self.share, False))

    def __getattr__(self, name: str) -> Any:
        if name == "envs":  # not there yet while a copy is being made
            raise AttributeError(name)
        return getattr(self.envs, name)

    def set_budget(self, share: float) -> None:
        """Let episodes start with this share of the budget from the next reset on."""
        if not 0.0 < share <= 1.0:
            raise InputError(f"The share of the budget is {share!r}: it must be above 0 and at most 1.")
        self.share = float(share)

    def reset(self, **options: Any) -> tuple[Array, dict[str, Any]]:
        """Start new episodes and return what they show."""
        obs, info = self.envs.reset(**options)
        mask = (options.get("options") or {}).get("reset_mask")
        self.number[slice(None) if mask is None else np.asarray(mask)] = self.law.first(self.share, False)
        return self._shown(obs), info

    def step(
        self, actions: Any
    ) -> tuple[Array, Array, npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]:
        """Step every environment once."""
        obs, reward, terminated, truncated, info = self.envs.step(actions)
        self.number = self.law.following(self.number, info["cost"], self.share)
        info["original_reward"] = reward
        shaped = self.law.reward(self.number, reward)
        ended = terminated | truncated
        if ended.any():
            last = self.number
            self.number = np.where(ended, self.law.first(self.share, True), last)
            if "final_obs" in info:
                shown = last if self.law.true_at_end else self.number
                info["final_obs"] = np.column_stack([info["final_obs"], shown])
        return self._shown(obs), shaped, terminated, truncated, info

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state, if the environment inside can."""
        own = {"budget/number": self.number.copy(), "budget/share": np.array(self.share)}
        return {**self.envs.snapshot(), **own}

    def restore(self, snapshot: Mapping[str, npt.NDArray[Any]]) -> Array:
        """Return the observations that were current at a snapshot after going back to it."""
        inner = {name: value for name, value in snapshot.items() if not name.startswith("budget/")}
        obs = self.envs.restore(inner)
        self.number = np.array(snapshot["budget/number"], np.float64)
        self.share = float(snapshot["budget/share"])
        return self._shown(obs)

    def extra(self) -> Extra:
        """Return how the number is kept, for a policy that acts without this wrapper."""
        return self.law.extra(self.share)

    def _shown(self, obs: Array) -> Array:
        return np.column_stack([obs, self.number])
