"""Running a policy for only as many episodes as its certificate needs."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from steingate.errors import InputError, RunError
from steingate.monitoring.episodes import step_cost
from steingate.monitoring.monitor import Monitor

MAX_STEPS = 1_000_000


@dataclass(frozen=True, eq=False)
class Verdict:
    """What came out of running a policy until enough was known; true in conditions when it is certified.

    Attributes
    ----------
    certified, unsafe : what the monitor has shown
    episodes : how many were run
    bound : upper bound on P(cost > limit)
    sentence : the same in words, and what to do
    monitor : the monitor itself, for everything else
    """

    certified: bool
    unsafe: bool
    episodes: int
    bound: float
    sentence: str
    monitor: Monitor

    def __bool__(self) -> bool:
        return self.certified


def until_certified(costs: Iterable[float], monitor: Monitor, max_episodes: int = 1000) -> Verdict:
    """Take episode costs until they certify the policy or show it unsafe, and return the verdict.

    Parameters
    ----------
    costs
        Costs of episodes of one fixed policy, one after another; no more are drawn than needed.
    monitor
        What counts them; usually a fresh one.
    max_episodes
        The most to draw, whatever they say.
    """
    if max_episodes < 1:
        raise InputError(f"max_episodes is {max_episodes}: at least one is needed.")
    drawn = iter(costs)
    for _ in range(max_episodes):
        if monitor.certified or monitor.unsafe:
            break
        cost = next(drawn, None)
        if cost is None:
            break
        monitor.update(cost)
    return Verdict(
        monitor.certified, monitor.unsafe, monitor.episodes, monitor.bound, monitor.sentence, monitor
    )


def certify_policy(
    policy: Callable[[Any], Any],
    env: Any,
    *,
    limit: float = 25.0,
    budget: float = 0.1,
    delta: float = 0.05,
    max_episodes: int = 1000,
    seed: int = 0,
    **settings: Any,
) -> Verdict:
    """Run a policy for only as many episodes as its certificate needs, and return the verdict.

    Parameters
    ----------
    policy
        Function from an observation to an action. It must not learn meanwhile.
    env
        One environment (see ``play``), or a function that makes one, which is then closed at the end.
    limit, budget, delta, **settings
        Those of the ``Monitor``.
    max_episodes
        The most to run; after them the verdict may be neither certified nor unsafe.
    seed
        Decides the episodes.

    Examples
    --------
    >>> verdict = certify_policy(policy, gymnasium.make("steingate/SafetyPointGoal1-v0"))  # doctest: +SKIP
    >>> verdict.certified, verdict.episodes, verdict.sentence  # doctest: +SKIP
    """
    monitor = Monitor(limit, budget, delta, **settings)
    if not callable(policy):
        raise InputError(f"The policy is {policy!r}: give a function from an observation to an action.")
    made = isinstance(env, type) or (callable(env) and not hasattr(env, "step"))
    world = env() if made else env
    if not (hasattr(world, "step") and hasattr(world, "reset")):
        raise InputError(f"{env!r} is not an environment: pass one, such as gymnasium.make(...).")
    try:
        return until_certified((cost for cost, _ in play(policy, world, seed)), monitor, max_episodes)
    finally:
        if made and hasattr(world, "close"):
            world.close()


def play(
    policy: Callable[[Any], Any], env: Any, seed: int = 0, max_steps: int = MAX_STEPS
) -> Iterator[tuple[float, float]]:
    """Yield cost and return of one episode after another, without end.

    Parameters
    ----------
    policy
        Function from an observation to an action. One that sees what the episode has spent, a ``Policy`` with
        ``extra``, gets that number at the end of its observations.
    env
        One environment: ``reset(seed=...)``, and ``step`` with Gymnasium's five values and ``info["cost"]``,
        or with six, the cost in third place.
    seed
        Decides the episodes; each has a seed of its own.
    max_steps
        An episode that takes longer is an error.
    """
    extra = getattr(policy, "extra", None)
    number = 0
    while True:
        key = np.random.SeedSequence(seed, spawn_key=(number,))
        obs, _ = env.reset(seed=int(key.generate_state(1)[0]))
        total_cost = total_reward = 0.0
        account = 0.0 if extra is None else extra.start
        for _ in range(max_steps):
            seen = obs if extra is None else np.append(obs, account)
            obs, reward, cost, ended = _stepped(env.step(policy(seen)))
            account = account if extra is None else extra.following(account, cost)
            total_cost += cost
            total_reward += reward
            if ended:
                break
        else:
            raise RunError(
                f"Episode {number + 1} has not ended after {max_steps} steps; give it a time limit."
            )
        yield total_cost, total_reward
        number += 1


def _stepped(answer: Any) -> tuple[Any, float, float, bool]:
    match answer:
        case (obs, reward, cost, terminated, truncated, dict()):
            pass
        case (obs, reward, terminated, truncated, dict(info)):
            cost = info.get("cost")
        case _:
            raise InputError(
                "The environment's step must return Gymnasium's five values, or six with the cost."
            )
    return obs, float(reward), step_cost(cost), bool(terminated) or bool(truncated)
