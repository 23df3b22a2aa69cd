"""One native task as a Gymnasium ``Env``: the batched core with one simulation."""

from __future__ import annotations

import inspect
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from steingate.tasks.inputs import checked_options
from steingate.tasks.protocol import Array
from steingate.tasks.vector import Info, SafetyVectorEnv, Snapshot

_OPTIONS = [
    name
    for name in inspect.signature(SafetyVectorEnv).parameters
    if name not in ("env_id", "num_envs", "autoreset_mode")
]


class SafetyEnv(gymnasium.Env[Array, Array]):
    """One simulation of a native task; ``info["cost"]`` is the cost of the step.

    Parameters
    ----------
    env_id : str
        A native task, with or without the ``steingate/`` prefix.
    render_mode : None or "rgb_array"
        Whether pictures can be taken.
    **options
        Those of :class:`~steingate.tasks.vector.SafetyVectorEnv` except the number of environments.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012

    def __init__(self, env_id: str, render_mode: str | None = None, **options: Any) -> None:
        checked_options(env_id.removeprefix("steingate/"), options, _OPTIONS)
        options.setdefault("threads", 1)
        self.core = SafetyVectorEnv(
            env_id, 1, render_mode=render_mode, autoreset_mode=AutoresetMode.DISABLED, **options
        )
        self.task = self.core.task
        self.render_mode = render_mode
        self.metadata = {**type(self).metadata, "render_fps": self.core.metadata["render_fps"]}
        self.observation_space = self.core.single_observation_space
        self.action_space = self.core.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, Info]:
        """Return the first observation and info of a new episode.

        Parameters
        ----------
        seed : int or None
            None goes on with the present stream.
        options : dict or None
            Without effect.
        """
        super().reset(seed=seed)
        obs, info = self.core.reset(seed=seed)
        return obs[0].copy(), _single(info)

    def step(self, action: npt.ArrayLike) -> tuple[Array, float, bool, bool, Info]:
        """Return observation, reward, both flags and info after one step.

        Parameters
        ----------
        action : (a,) array
            Clipped to the action space; not-a-number is refused.
        """
        obs, reward, terminated, truncated, info = self.core.step(np.asarray(action)[None])
        return obs[0].copy(), float(reward[0]), bool(terminated[0]), bool(truncated[0]), _single(info)

    def snapshot(self) -> Snapshot:
        """Return the complete state."""
        return self.core.snapshot()

    def restore(self, snapshot: Snapshot) -> Array:
        """Return the observation that was current at a snapshot after going back to it.

        Parameters
        ----------
        snapshot : dict
            What ``snapshot`` returned.
        """
        obs: Array = self.core.restore(snapshot)[0]
        return obs

    def render(self) -> npt.NDArray[np.uint8] | None:
        """Return a picture, or None if no render mode was chosen."""
        frames = self.core.render()
        return None if frames is None else frames[0]

    def close(self) -> None:
        """Let go of everything; closing twice does nothing."""
        self.core.close()


def _single(info: Info) -> Info:
    """Return the info of the one environment as plain numbers."""
    return {name: values[0].item() for name, values in info.items() if not name.startswith("_")}
