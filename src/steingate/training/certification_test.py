"""Testing a policy: fresh noise-free episodes, only as many as it takes to certify it or to give it up."""

from collections.abc import Callable
from math import pi

import numpy as np

from steingate.monitoring.monitor import Monitor
from steingate.training.candidates import Trial
from steingate.training.environment import ShowsBudget, TrainerEnv
from steingate.training.play import CHUNK, EndlessError, Player, play

_PATIENCE = 10  # an episode may take so many times the longest of training
_SHORTEST = 1000  # or this many steps


def delta_of(number: int, delta: float) -> float:
    """Return what test ``number`` = 1, 2, ... may spend of ``delta``: all of them together spend it whole.

    >>> round(sum(delta_of(k, 0.05) for k in range(1, 10_000)), 4)
    0.05
    """
    return delta * 6.0 / (pi * number) ** 2


def clean_episodes(budget: float, delta: float) -> int:
    """Return how many episodes, all within the limit, certify a policy.

    >>> clean_episodes(0.1, 0.05)
    36
    """
    return Monitor(1.0, budget, delta).clean_episodes_needed


def try_policy(
    envs: TrainerEnv,
    player: Player,
    *,
    budget: float,
    delta: float,
    seeds: Callable[[int], int],
    episodes: int,
    longest: int,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[Trial, int]:
    """Return what fresh episodes show about P(cost > limit) <= ``budget``, and how many steps they took.

    Parameters
    ----------
    envs
        Environments of their own, never those that train.
    player
        The policy, at its mean action.
    budget, delta
        Largest accepted share of episodes over the limit; chance of a wrong certificate, whenever it comes.
    seeds
        The reset seed of episode 0, 1, ...
    episodes
        The most to count. It ends earlier: when certified, when shown unsafe, or when even episodes within
        the limit alone could not certify any more.
    longest
        Steps of the longest episode in training. One that takes ten times as long (and over a thousand steps)
        ends the test.
    stop
        True abandons the test with ``RolloutStoppedError``.
    """
    limit = player.cfg.cost_limit
    monitor = Monitor(1.0, budget, delta)  # counts: over is 2, within is 0, so any limit and cost will do
    returns: list[float] = []
    costs: list[float] = []
    steps, why = 0, ""
    if isinstance(envs, ShowsBudget):
        envs.set_budget(player.budget)
    chunk = min(CHUNK, max(longest, 1))
    patience = max(_PATIENCE * longest, _SHORTEST)
    while not _over(monitor, episodes):
        numbers = range(monitor.episodes, min(monitor.episodes + envs.num_envs, episodes))
        try:
            wave = play(envs, player, [seeds(i) for i in numbers], False, stop, chunk, patience)
        except EndlessError:
            why = f"an episode had not ended after {patience} steps"
            break
        steps += int(wave.length.max()) * envs.num_envs
        for ret, cost in zip(wave.ret.tolist(), wave.cost.tolist(), strict=True):
            if _over(monitor, episodes):
                break
            monitor.update(2.0 if cost > limit else 0.0)
            returns.append(ret)
            costs.append(cost)
    mean_return, mean_cost = (float(np.mean(values)) if values else 0.0 for values in (returns, costs))
    trial = Trial(
        player.epoch, monitor.episodes, monitor.over, mean_return, mean_cost, monitor.bound, delta,
        monitor.certified and not monitor.unsafe and not why, why,
    )  # fmt: skip
    return trial, steps


def _over(monitor: Monitor, episodes: int) -> bool:
    """Return whether more episodes are of no use."""
    if monitor.certified or monitor.unsafe:
        return True
    return monitor.clean_episodes_needed > episodes - monitor.episodes
