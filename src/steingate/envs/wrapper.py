"""Base class of wrappers of vector environments."""

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete


class VectorEnvWrapper:
    """A vector environment around ``envs``; everything that a subclass does not override is that of ``envs``.

    The attributes that the trainer uses are defined explicitly, because protocols ignore ``__getattr__``.
    """

    def __init__(self, envs: Any) -> None:
        self.envs = envs
        self.num_envs: int = envs.num_envs

    def __getattr__(self, name: str) -> Any:
        if name == "envs":  # not yet set while an object is copied
            raise AttributeError(name)
        return getattr(self.envs, name)

    @property
    def single_action_space(self) -> Box | Discrete:
        """Space of one action."""
        space: Box | Discrete = self.envs.single_action_space
        return space

    @property
    def current_env(self) -> int | None:
        """Index of the environment that was called last, if they are called one after the other."""
        index: int | None = self.envs.current_env
        return index

    @property
    def metadata(self) -> dict[str, Any]:
        """Metadata of the wrapped environment."""
        metadata: dict[str, Any] = self.envs.metadata
        return metadata

    def render(self) -> Any:
        """Return one frame per environment."""
        return self.envs.render()

    def snapshot(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the whole state, if the wrapped environment supports it."""
        state: dict[str, npt.NDArray[np.generic]] = self.envs.snapshot()
        return state

    def close(self) -> None:
        """Close the wrapped environment."""
        self.envs.close()
