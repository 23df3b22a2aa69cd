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
        return self.envs.single_action_space

    @property
    def current_env(self) -> int | None:
        """Index of the environment that was called last, if they are called one after the other."""
        return self.envs.current_env

    @property
    def metadata(self) -> dict[str, Any]:
        """Metadata of the wrapped environment."""
        return self.envs.metadata

    def render(self) -> Any:
        """Return one frame per environment."""
        return self.envs.render()

    def snapshot(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the whole state, if the wrapped environment supports it."""
        return self.envs.snapshot()

    def close(self) -> None:
        """Close the wrapped environment."""
        self.envs.close()
