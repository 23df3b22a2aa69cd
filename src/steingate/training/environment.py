"""What the trainer needs of an environment: ``TrainerEnv``, and what only some methods and options need."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete

from steingate.gates.base import Array

Flags = npt.NDArray[np.bool_]
Info = dict[str, Any]


class TrainerEnv(Protocol):
    """A vector environment with same-step autoreset and ``info["cost"]``.

    ``info["final_obs"]`` holds the last observations of episodes that ended, and ``info["original_reward"]``
    the true reward where the one returned is another.
    """

    num_envs: int

    @property
    def single_observation_space(self) -> Box:
        """The space of one observation, a vector."""
        ...

    @property
    def single_action_space(self) -> Box | Discrete:
        """The space of one action: a vector, or a choice."""
        ...

    @property
    def current_env(self) -> int | None:
        """The number of the environment called last, where they are called one by one; for messages."""
        ...

    def reset(self, *, seed: Sequence[int] | int | None = None) -> tuple[Array, Info]:
        """Start new episodes everywhere."""
        ...

    def step(self, actions: Array) -> tuple[Array, Array, Flags, Flags, Info]:
        """Step every environment once: observations, rewards, terminated, truncated, info.

        Actions are (E, a), or (E,) integers for choices.
        """
        ...

    def close(self) -> None:
        """Let go of what the environments hold."""
        ...


def new_notes(envs: TrainerEnv) -> tuple[str, ...]:
    """Return what the environments have to say about themselves and have not said yet."""
    waiting: list[str] = getattr(envs, "messages", [])
    said = tuple(waiting)
    waiting.clear()
    return said


@runtime_checkable
class Saved(Protocol):
    """Environments that can be saved in the middle of an episode."""

    def snapshot(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole state."""
        ...

    def restore(self, snapshot: Mapping[str, npt.NDArray[Any]]) -> Array:
        """Go back to a snapshot and return the observations that were current then."""
        ...


@runtime_checkable
class ShowsBudget(Protocol):
    """Environments that show what an episode has spent."""

    def set_budget(self, share: float, worth: float = 0.0) -> None:
        """Let episodes spend this share of the budget, and price what they spend by this worth."""
        ...
