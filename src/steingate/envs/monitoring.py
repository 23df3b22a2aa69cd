"""Gymnasium wrappers that feed ``info["cost"]`` to a monitor and put its numbers into ``info["monitor"]``."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorWrapper

from steingate.errors import InputError
from steingate.monitoring.episodes import OVERDUE_STEPS, StepWatcher, step_cost
from steingate.monitoring.monitor import Monitor
from steingate.monitoring.monitors import Monitors

INFO_KEY = "monitor"


class MonitorWrapper(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Monitor the episode costs of one environment; the last ``info`` of an episode holds the numbers.

    A reset before the end of an episode discards that episode. Do not reset because costs are high: the
    monitor would not see them.

    Parameters
    ----------
    env
        Environment with ``info["cost"]``.
    monitor
        A ``Monitor``; or ``Monitors``, whose names are then keys of ``info``.
    max_steps
        An episode that has not ended after so many steps counts as a violation.

    Examples
    --------
    >>> env = MonitorWrapper(gymnasium.make("CartPole-v1"), Monitor(limit=25))  # doctest: +SKIP
    >>> obs, reward, terminated, truncated, info = env.step(action)  # doctest: +SKIP
    >>> info["monitor"]["bound"]  # at the end of an episode  # doctest: +SKIP
    """

    def __init__(self, env: Any, monitor: Monitor | Monitors, max_steps: int = OVERDUE_STEPS) -> None:
        super().__init__(env)
        self.monitor = monitor
        self._watcher = StepWatcher(monitor, max_steps=max_steps)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start a new episode."""
        self._watcher.discard(0)
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step; at the end of an episode, add the monitor's numbers to ``info``."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        costs = {name: step_cost(info.get(name)) for name in self._watcher.names}
        numbers = self._watcher(costs, terminated or truncated)
        if numbers is not None:
            info = {**info, INFO_KEY: numbers}
        return obs, reward, terminated, truncated, info


class MonitorVectorWrapper(VectorWrapper):
    """Monitor the episode costs of a vector environment; arguments as of ``MonitorWrapper``, any autoreset mode.

    Episodes are counted in the order in which they began, whichever ends first; ``info["monitor"]["held_back"]`` is
    the number of finished episodes that wait for one that began before them. After ``max_steps`` they wait no longer.
    """

    def __init__(self, env: Any, monitor: Monitor | Monitors, max_steps: int = OVERDUE_STEPS) -> None:
        super().__init__(env)
        self.monitor = monitor
        self._watcher = StepWatcher(monitor, env.num_envs, max_steps)
        self._next_step = env.metadata.get("autoreset_mode") in (AutoresetMode.NEXT_STEP, "NextStep")
        self._resetting = np.zeros(env.num_envs, bool)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start new episodes in all environments, or in those of ``options["reset_mask"]``."""
        mask = (options or {}).get("reset_mask", np.ones(self.num_envs, bool))
        for env in np.flatnonzero(mask).tolist():
            self._watcher.discard(env)
            self._resetting[env] = False
        return self.env.reset(seed=seed, options=options)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step all environments; when episodes are counted, add the monitor's numbers to ``info``."""
        obs, rewards, terminated, truncated, infos = self.env.step(actions)
        # In next-step mode the step after the end of an episode only resets and belongs to no episode.
        ended = (np.asarray(terminated) | np.asarray(truncated)) & ~self._resetting
        costs = {name: self._step_costs(infos, name, ended) for name in self._watcher.names}
        numbers = self._watcher(costs, ended)
        if self._next_step:
            self._resetting = ended
        if numbers is not None:
            infos = {**infos, INFO_KEY: numbers}
        return obs, rewards, terminated, truncated, infos

    def _step_costs(self, infos: Mapping[str, Any], name: str, ended: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """Return the step costs, shape (num_envs,); in same-step mode some are in ``final_info``."""
        costs = np.where(self._resetting, 0.0, np.nan)
        for source, where in ((infos, ~self._resetting), (infos.get("final_info", {}), ended)):
            if name in source:
                valid = np.asarray(source.get(f"_{name}", where)) & where
                costs[valid] = np.asarray(source[name], dtype=np.float64)[valid]
        wrong = ~np.isfinite(costs)
        if wrong.any():
            i = int(wrong.argmax())
            raise InputError(f"Environment {i} gives no finite info[{name!r}]: put one cost per step there.")
        return costs
