"""Gymnasium wrappers that feed a monitor from ``info["cost"]`` and put its numbers into ``info``."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper

from steingate.errors import InputError
from steingate.monitoring.episodes import StepWatcher, step_cost
from steingate.monitoring.monitor import Monitor
from steingate.monitoring.several import Monitors

KEY = "monitor"


class MonitorCosts(gymnasium.Wrapper[Any, Any, Any, Any]):
    """One environment whose episode costs a monitor counts; the last ``info`` of an episode has its numbers.

    A reset before the end of an episode drops that episode. Do not reset *because* of high costs: the monitor
    would not see them.

    Parameters
    ----------
    env
        Environment with ``info["cost"]``.
    monitor
        A ``Monitor``; or ``Monitors``, whose names are then keys of ``info``.

    Examples
    --------
    >>> env = MonitorCosts(gymnasium.make("CartPole-v1"), Monitor(limit=25))  # doctest: +SKIP
    >>> obs, reward, terminated, truncated, info = env.step(action)  # doctest: +SKIP
    >>> info["monitor"]["bound"]  # at the end of an episode  # doctest: +SKIP
    """

    def __init__(self, env: gymnasium.Env[Any, Any], monitor: Monitor | Monitors) -> None:
        super().__init__(env)
        self.monitor = monitor
        self._watch = StepWatcher(monitor)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a new episode."""
        self._watch.abandon(0)
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step, and at the end of an episode add the monitor's numbers to ``info``."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        costs = {name: step_cost(info.get(name)) for name in self._watch.names}
        numbers = self._watch(costs, terminated or truncated)
        if numbers is not None:
            info = {**info, KEY: numbers}
        return obs, reward, terminated, truncated, info


class MonitorVectorCosts(VectorWrapper):
    """The same for a batch; episodes are counted in the order in which they began, whoever finishes first.

    Parameters
    ----------
    env
        Vector environment with ``info["cost"]``, in any autoreset mode.
    monitor
        A ``Monitor``; or ``Monitors``, whose names are then keys of ``info``.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], monitor: Monitor | Monitors) -> None:
        super().__init__(env)
        self.monitor = monitor
        self._watch = StepWatcher(monitor, env.num_envs)
        self._next_step = env.metadata.get("autoreset_mode") in (AutoresetMode.NEXT_STEP, "NextStep")
        self._resetting = np.zeros(env.num_envs, bool)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start new episodes, all or those of ``options["reset_mask"]``."""
        mask = (options or {}).get("reset_mask")
        chosen = np.ones(self.num_envs, bool) if mask is None else np.asarray(mask)
        for env in np.flatnonzero(chosen).tolist():
            self._watch.abandon(env)
            self._resetting[env] = False
        return self.env.reset(seed=seed, options=options)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step all, and when episodes are counted add the monitor's numbers to ``info``."""
        obs, rewards, terminated, truncated, infos = self.env.step(actions)
        # In next-step mode the step after an end only resets: it belongs to no episode.
        ended = (np.asarray(terminated) | np.asarray(truncated)) & ~self._resetting
        costs = {
            name: np.where(self._resetting, 0.0, self._step_costs(infos, name, ended))
            for name in self._watch.names
        }
        numbers = self._watch(costs, ended)
        if self._next_step:
            self._resetting = ended
        if numbers is not None:
            infos = {**infos, KEY: numbers}
        return obs, rewards, terminated, truncated, infos

    def _step_costs(
        self, infos: Mapping[str, Any], name: str, ended: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.float64]:
        """Return the cost of the step of each environment; a same-step reset moves it to ``final_info``."""
        final = infos.get("final_info")
        given = np.zeros(self.num_envs, bool)
        costs = np.zeros(self.num_envs)
        for source, wanted in ((infos, np.ones(self.num_envs, bool)), (final, ended)):
            if isinstance(source, Mapping) and name in source:
                known = np.asarray(source.get(f"_{name}", np.ones(self.num_envs, bool))) & wanted
                costs[known] = np.asarray(source[name], dtype=np.float64)[known]
                given |= known
        missing = ~given & ~self._resetting
        if missing.any():
            raise InputError(
                f"Environment {int(missing.argmax())} gives no info[{name!r}]: put one cost per step there."
            )
        if not np.isfinite(costs).all():
            raise InputError(f"info[{name!r}] holds {costs[~np.isfinite(costs)][0]}: costs are finite.")
        return costs
