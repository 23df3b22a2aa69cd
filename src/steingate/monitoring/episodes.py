"""From steps to episodes: adding up costs in any loop, in the order in which episodes began."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.errors import InputError
from steingate.monitoring.monitor import Monitor
from steingate.monitoring.several import Monitors

COST = "cost"


class EpisodeCosts:
    """Adds up the costs of steps and gives back those of whole episodes, in the order in which they began.

    In a batch, short episodes finish first. Counting them first would favor them, so that an episode waits
    for all that began before it.

    Parameters
    ----------
    num_envs
        Environments that are stepped together.

    Examples
    --------
    >>> episodes = EpisodeCosts(2)
    >>> episodes.add([1.0, 5.0], [False, True])
    []
    >>> episodes.add([1.0, 0.0], [True, False])
    [2.0, 5.0]
    """

    def __init__(self, num_envs: int = 1) -> None:
        self._sums = [0.0] * num_envs
        self._number = list(range(num_envs))  # of the episode in each environment, by start
        self._started = num_envs
        self._next = 0
        self._waiting: dict[int, float | None] = {}

    def add(self, costs: npt.ArrayLike, ended: npt.ArrayLike) -> list[float]:
        """Add one step of every environment and return the costs of episodes that may now be counted.

        Parameters
        ----------
        costs
            Cost of the step, one per environment.
        ended
            Whether the step ended the episode (terminated or truncated).
        """
        step = np.atleast_1d(np.asarray(costs, dtype=np.float64)).tolist()
        ends = np.atleast_1d(np.asarray(ended, dtype=bool)).tolist()
        if not len(step) == len(ends) == len(self._sums):
            raise InputError(
                f"{len(step)} costs and {len(ends)} flags for {len(self._sums)} environments: give one each."
            )
        for env, (cost, end) in enumerate(zip(step, ends, strict=True)):
            self._sums[env] += cost
            if end:
                self._finish(env, self._sums[env])
        return self._released()

    def abandon(self, env: int = 0) -> list[float]:
        """Drop an unfinished episode, because of a reset by hand, and return what it held back."""
        self._finish(env, None)
        return self._released()

    def _finish(self, env: int, total: float | None) -> None:
        self._waiting[self._number[env]] = total
        self._sums[env], self._number[env] = 0.0, self._started
        self._started += 1

    def _released(self) -> list[float]:
        released = []
        while self._next in self._waiting:
            total = self._waiting.pop(self._next)
            self._next += 1
            if total is not None:
                released.append(total)
        return released


class StepWatcher:
    """Feeds a monitor from the steps of any loop; call it once per step.

    Parameters
    ----------
    monitor
        A ``Monitor``, or ``Monitors`` whose names are those of the costs.
    num_envs
        Environments that are stepped together.

    Examples
    --------
    >>> watch = StepWatcher(Monitor(limit=25), num_envs=1)
    >>> watch(cost := 3.0, ended := False)
    >>> watch(4.0, True)["episodes"]
    1
    """

    def __init__(self, monitor: Monitor | Monitors, num_envs: int = 1) -> None:
        self.monitor = monitor
        self.names = tuple(monitor) if isinstance(monitor, Monitors) else (COST,)
        self._episodes = {name: EpisodeCosts(num_envs) for name in self.names}

    def __call__(
        self, costs: npt.ArrayLike | Mapping[str, npt.ArrayLike], ended: npt.ArrayLike
    ) -> dict[str, Any] | None:
        """Add one step of every environment; when episodes are counted, return the monitor's numbers.

        Parameters
        ----------
        costs
            Cost of the step, one per environment; for ``Monitors`` a dictionary of them by name.
        ended
            Whether the step ended the episode (terminated or truncated), one per environment.
        """
        named = costs if isinstance(costs, Mapping) else {COST: costs}
        return self._count({name: self._episodes[name].add(named[name], ended) for name in self.names})

    def abandon(self, env: int) -> dict[str, Any] | None:
        """Drop the unfinished episode of an environment that is reset by hand."""
        return self._count({name: self._episodes[name].abandon(env) for name in self.names})

    def _count(self, released: dict[str, list[float]]) -> dict[str, Any] | None:
        if not released[self.names[0]]:
            return None
        if isinstance(self.monitor, Monitors):
            self.monitor.update_many(released)
        else:
            self.monitor.update_many(released[COST])
        return self.monitor.numbers()


def step_cost(cost: Any) -> float:
    """Return the cost of a step as a number; without one there is nothing to watch."""
    try:
        value = float(cost)
    except (TypeError, ValueError):
        raise InputError(
            f"The environment gives the cost {cost!r}: put one number per step into info['cost']."
        ) from None
    if not isfinite(value):
        raise InputError(f"The environment gives the cost {value}: costs are finite.")
    return value
