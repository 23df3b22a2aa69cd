"""From steps to episodes: sums of step costs in any loop, and running a policy until it is certified."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count, islice
from math import inf, isfinite, nextafter
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.errors import InputError, RunError
from steingate.monitoring.monitor import Monitor
from steingate.monitoring.monitors import Monitors, by_name

COST = "cost"
MAX_STEPS = 1_000_000
OVERDUE_STEPS = 100_000


class EpisodeCosts:
    """Sums of step costs of the episodes of several environments, returned in the order in which they began.

    In a batch, short episodes finish first. Counting them first would favor them, so an episode is held back
    until all that began before it have finished. An environment that hangs would hold back all others for ever:
    an episode that has not ended after ``max_steps`` is overdue, and its cost is infinite.

    Examples
    --------
    >>> episodes = EpisodeCosts(2)
    >>> episodes.add([1.0, 5.0], [False, True])
    []
    >>> episodes.add([1.0, 0.0], [True, False])
    [2.0, 5.0]
    """

    def __init__(self, num_envs: int = 1, max_steps: int = OVERDUE_STEPS) -> None:
        if max_steps < 1:
            raise InputError(f"max_steps must be at least 1, got {max_steps}.")
        self.max_steps, self.overdue = max_steps, 0
        self._sums, self._steps = [0.0] * num_envs, [0] * num_envs
        # Number of the current episode of each environment, by start; None in the rest of an overdue one.
        self._number: list[int | None] = list(range(num_envs))
        self._started = num_envs
        self._next = 0
        self._finished: dict[int, float | None] = {}

    def add(self, costs: npt.ArrayLike, ended: npt.ArrayLike) -> list[float]:
        """Add one step of every environment and return the costs of the episodes that may now be counted.

        ``costs`` of the step and whether it ``ended`` the episode (terminated or truncated) have shape (num_envs,).
        """
        step = np.atleast_1d(np.asarray(costs, dtype=np.float64)).tolist()
        ends = np.atleast_1d(np.asarray(ended, dtype=bool)).tolist()
        if not len(step) == len(ends) == len(self._sums):
            raise InputError(
                f"{len(step)} costs and {len(ends)} flags for {len(self._sums)} environments: give one each."
            )
        for env, (cost, end) in enumerate(zip(step, ends, strict=True)):
            self._sums[env] += cost
            self._steps[env] += 1
            if end:
                self._finish(env, self._sums[env])
                self._begin(env)
            elif self._steps[env] == self.max_steps:
                self._finish(env, inf)
                self.overdue += 1
        return self._release()

    def discard(self, env: int = 0) -> list[float]:
        """Discard the unfinished episode of an environment that is reset, and return those it held back."""
        self._finish(env, None)
        self._begin(env)
        return self._release()

    @property
    def held_back(self) -> int:
        """Number of finished episodes that wait for one that began before them."""
        return sum(total is not None for total in self._finished.values())

    def _finish(self, env: int, total: float | None) -> None:
        number = self._number[env]
        if number is not None:
            self._finished[number], self._number[env] = total, None

    def _begin(self, env: int) -> None:
        self._sums[env], self._steps[env], self._number[env] = 0.0, 0, self._started
        self._started += 1

    def _release(self) -> list[float]:
        released = []
        while self._next in self._finished:
            total = self._finished.pop(self._next)
            self._next += 1
            if total is not None:
                released.append(total)
        return released


class StepWatcher:
    """Updates a monitor from the steps of any loop; call it once per step.

    Episodes are counted in the order in which they began, so an episode that lasts holds back those that began later;
    the metrics show how many. After ``max_steps`` it is overdue and counts as a violation of every limit.

    Parameters
    ----------
    monitor : a ``Monitor``, or ``Monitors`` with the names of the costs
    num_envs : number of environments that are stepped together
    max_steps : largest number of steps of an episode; choose the time limit of the environment

    Examples
    --------
    >>> watcher = StepWatcher(Monitor(limit=25), num_envs=1)
    >>> watcher(cost := 3.0, ended := False)
    >>> watcher(4.0, True)["episodes"]
    1
    """

    def __init__(self, monitor: Monitor | Monitors, num_envs: int = 1, max_steps: int = OVERDUE_STEPS) -> None:
        self.monitor = monitor
        self.names = tuple(by_name(monitor, COST))
        self._held_back = 0
        self._episodes = {name: EpisodeCosts(num_envs, max_steps) for name in self.names}

    def __call__(
        self, costs: npt.ArrayLike | Mapping[str, npt.ArrayLike], ended: npt.ArrayLike
    ) -> dict[str, Any] | None:
        """Add one step of every environment; return the metrics if an episode ended or became overdue.

        They are those of the monitor, ``held_back`` and ``overdue`` (numbers of episodes). ``costs`` of the step, for
        ``Monitors`` a dictionary by name, and whether it ``ended`` the episode have shape (num_envs,).
        """
        named = costs if isinstance(costs, Mapping) else {COST: costs}
        return self._count({name: each.add(named[name], ended) for name, each in self._episodes.items()})

    def discard(self, env: int) -> dict[str, Any] | None:
        """Discard the unfinished episode of an environment that is reset."""
        return self._count({name: each.discard(env) for name, each in self._episodes.items()})

    def _count(self, released: dict[str, list[float]]) -> dict[str, Any] | None:
        episodes, before = self._episodes[self.names[0]], self._held_back
        self._held_back = episodes.held_back
        if not released[self.names[0]] and self._held_back == before:
            return None
        costs = {}
        for name, monitor in by_name(self.monitor, COST).items():
            overdue = max(monitor.cap, nextafter(monitor.limit, inf))
            costs[name] = [overdue if total == inf else total for total in released[name]]
        if isinstance(self.monitor, Monitors):
            self.monitor.update_many(costs)
        else:
            self.monitor.update_many(costs[COST])
        return {**self.monitor.metrics(), "held_back": self._held_back, "overdue": episodes.overdue}


def step_cost(cost: Any) -> float:
    """Return the cost of a step as a float; anything but a finite number raises ``InputError``."""
    try:
        value = float(cost)
    except (TypeError, ValueError):
        raise InputError(
            f"The environment gives the cost {cost!r}: put one number per step into info['cost']."
        ) from None
    if not isfinite(value):
        raise InputError(f"The environment gives the cost {value}: costs are finite.")
    return value


def certify_policy(
    policy: Callable[[Any], Any],
    env: Any,
    limit: float,
    budget: float = 0.1,
    delta: float = 0.05,
    *,
    max_episodes: int = 1000,
    seed: int = 0,
    **settings: Any,
) -> Monitor:
    """Run a policy until it is certified or shown unsafe, and return the monitor.

    Parameters
    ----------
    policy : function from an observation to an action; it must not learn meanwhile. See ``run_episodes``.
    env : one environment
    limit, budget, delta, **settings : settings of the ``Monitor``
    max_episodes : largest number of episodes; after it the result may be neither ``certified`` nor ``unsafe``
    seed : seed of the episodes

    Examples
    --------
    >>> env = gymnasium.make("steingate/SafetyPointGoal1-v0")  # doctest: +SKIP
    >>> result = certify_policy(policy, env, limit=25)  # doctest: +SKIP
    >>> result.certified, result.episodes, result.summary  # doctest: +SKIP
    """
    monitor = Monitor(limit, budget, delta, **settings)
    if not callable(policy):
        raise InputError(f"The policy is {policy!r}: give a function from an observation to an action.")
    if not (hasattr(env, "step") and hasattr(env, "reset")) or isinstance(env, type):
        raise InputError(f"{env!r} is not an environment: pass one, such as gymnasium.make(...).")
    update_until_decided(monitor, (cost for cost, _ in run_episodes(policy, env, seed)), max_episodes)
    return monitor


def update_until_decided(monitor: Monitor, costs: Iterable[float], max_episodes: int = 1000) -> None:
    """Update a monitor with episode costs until it is certified or unsafe; no more are drawn than needed."""
    if max_episodes < 1:
        raise InputError(f"max_episodes must be at least 1, got {max_episodes}.")
    if monitor.certified or monitor.unsafe:
        return
    for cost in islice(costs, max_episodes):
        monitor.update(cost)
        if monitor.certified or monitor.unsafe:
            return


def run_episodes(
    policy: Callable[[Any], Any], env: Any, seed: int = 0, max_steps: int = MAX_STEPS
) -> Iterator[tuple[float, float]]:
    """Yield (cost, return) of one episode after another, without end.

    Parameters
    ----------
    policy : function from an observation to an action. If it has the methods ``reset()`` and ``observe(cost)``, they
        are called at the start of each episode and after each step.
    env : one environment: ``reset(seed=...)``, and ``step`` with Gymnasium's five values and ``info["cost"]``, or with
        six, the cost in third place
    seed : seed of the episodes; episode i is reset with a seed that depends on (seed, i)
    max_steps : a longer episode raises ``RunError``
    """
    stateful = hasattr(policy, "reset") and hasattr(policy, "observe")
    for number in count():
        key = np.random.SeedSequence(seed, spawn_key=(number,))
        obs, _ = env.reset(seed=int(key.generate_state(1)[0]))
        if stateful:
            policy.reset()  # type: ignore[attr-defined]
        total_cost = total_reward = 0.0
        for _ in range(max_steps):
            obs, reward, cost, ended = _parse_step(env.step(policy(obs)))
            if stateful:
                policy.observe(cost)  # type: ignore[attr-defined]
            total_cost += cost
            total_reward += reward
            if ended:
                break
        else:
            raise RunError(f"Episode {number + 1} has not ended after {max_steps} steps; give it a time limit.")
        yield total_cost, total_reward


def _parse_step(step: Any) -> tuple[Any, float, float, bool]:
    match step:
        case (obs, reward, cost, terminated, truncated, dict()):
            pass
        case (obs, reward, terminated, truncated, dict(info)):
            cost = info.get("cost")
        case _:
            raise InputError("The environment's step must return Gymnasium's five values, or six with the cost.")
    return obs, float(reward), step_cost(cost), bool(terminated) or bool(truncated)
