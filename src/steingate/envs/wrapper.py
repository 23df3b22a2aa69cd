"""What wrappers of vector environments share: all that they do not change is that of the one inside."""

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete


class Wrapped:
    """A vector environment around another; what the trainer and films ask for is here by name.

    (Protocols do not see what ``__getattr__`` finds.)
    """

    def __init__(self, envs: Any) -> None:
        self.envs = envs
        self.num_envs: int = envs.num_envs

    def __getattr__(self, name: str) -> Any:
        if name == "envs":  # not there yet while a copy is being made
            raise AttributeError(name)
        return getattr(self.envs, name)

    @property
    def single_action_space(self) -> Box | Discrete:
        """The space of one action."""
        space: Box | Discrete = self.envs.single_action_space
        return space

    @property
    def at_work(self) -> int | None:
        """The number of the environment called last, where they are called one by one."""
        number: int | None = self.envs.at_work
        return number

    @property
    def metadata(self) -> dict[str, Any]:
        """What the environment inside says of itself."""
        found: dict[str, Any] = self.envs.metadata
        return found

    def render(self) -> Any:
        """Return one picture for each environment."""
        return self.envs.render()

    def snapshot(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the whole state, if the environment inside can."""
        found: dict[str, npt.NDArray[np.generic]] = self.envs.snapshot()
        return found

    def close(self) -> None:
        """Let go of what the environments hold."""
        self.envs.close()
