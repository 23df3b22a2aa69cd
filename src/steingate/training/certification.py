"""Certification: sequential tests of policies on fresh episodes, and the report ``certification.json``.

A test plays fresh episodes with the mean action and stops as soon as the anytime-valid bound on
P(cost > limit) certifies the policy, shows that it is unsafe, or cannot decide within the remaining episodes
(``steingate.monitoring.monitor``).
"""

from collections.abc import Callable, Sequence
from math import pi
from typing import Any, NamedTuple

import numpy as np

from steingate.certificates.words import at_most
from steingate.monitoring.monitor import Monitor
from steingate.monitoring.text import percent
from steingate.training.config import RunConfig
from steingate.training.environment import ShowsBudget, TrainerEnv
from steingate.training.evaluate import CHUNK, EpisodeTooLongError, Player, play

# An episode of a test may take 10 times the steps of the longest episode of training, and at least 1000.
_LENGTH_FACTOR, _MIN_LENGTH = 10, 1000


class CertificationTest(NamedTuple):
    """Result of one test: fresh episodes of one policy with the mean action."""

    epoch: int  # policy updates before this policy
    episodes: int
    violations: int  # episodes with cost > limit
    ret: float  # mean return
    cost: float  # mean cost
    bound: float  # on P(cost > limit), wrong with probability delta
    delta: float
    certified: bool
    reason: str = ""  # why the test ended early, if it failed to play an episode


def delta_for_test(number: int, delta: float) -> float:
    """Return the error probability of test ``number`` = 1, 2, ...; over all tests they add up to ``delta``.

    >>> round(sum(delta_for_test(k, 0.05) for k in range(1, 10_000)), 4)
    0.05
    """
    return delta * 6.0 / (pi * number) ** 2


def min_episodes(budget: float, delta: float) -> int:
    """Return the smallest number of episodes, all without a violation, that certifies a policy.

    >>> min_episodes(0.1, 0.05)
    36
    """
    return Monitor(1.0, budget, delta).more_episodes


def certify_checkpoint(
    envs: TrainerEnv,
    player: Player,
    *,
    budget: float,
    delta: float,
    seeds: Callable[[int], int],
    max_episodes: int,
    longest: int,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[CertificationTest, int]:
    """Test P(cost > limit) <= ``budget`` on fresh episodes; return the result and the number of steps taken.

    Parameters
    ----------
    envs
        Environments that are not used for training.
    player
        The policy.
    budget, delta
        Accepted violation probability, and probability of a wrong certificate.
    seeds
        Function from the index of an episode to its reset seed.
    max_episodes
        Largest number of episodes.
    longest
        Length of the longest training episode, in steps. An episode that is more than ten times as long (and
        longer than 1000 steps) ends the test.
    stop
        Called before every step; if it returns true, the test ends with ``RolloutStoppedError``.
    """
    limit = player.cfg.cost_limit
    monitor = Monitor(1.0, budget, delta)  # counts violations: it gets 2 for a violation and 0 otherwise
    returns: list[float] = []
    costs: list[float] = []
    steps, reason = 0, ""
    if isinstance(envs, ShowsBudget):
        envs.set_budget(player.budget)
    chunk = min(CHUNK, max(longest, 1))
    max_length = max(_LENGTH_FACTOR * longest, _MIN_LENGTH)
    while not _decided(monitor, max_episodes):
        numbers = range(monitor.episodes, min(monitor.episodes + envs.num_envs, max_episodes))
        try:
            played = play(envs, player, [seeds(i) for i in numbers], False, stop, chunk, max_length)
        except EpisodeTooLongError:
            reason = f"an episode had not ended after {max_length} steps"
            break
        steps += int(played.length.max()) * envs.num_envs
        for ret, cost in zip(played.ret.tolist(), played.cost.tolist(), strict=True):
            if _decided(monitor, max_episodes):
                break
            monitor.update(2.0 if cost > limit else 0.0)
            returns.append(ret)
            costs.append(cost)
    mean_return, mean_cost = (float(np.mean(values)) if values else 0.0 for values in (returns, costs))
    test = CertificationTest(
        player.epoch, monitor.episodes, monitor.violations, mean_return, mean_cost, monitor.bound, delta,
        monitor.certified and not monitor.unsafe and not reason, reason,
    )  # fmt: skip
    return test, steps


def _decided(monitor: Monitor, max_episodes: int) -> bool:
    """Return whether further episodes cannot change the outcome of a test."""
    if monitor.certified or monitor.unsafe:
        return True
    return monitor.more_episodes > max_episodes - monitor.episodes


def certification_report(
    cfg: RunConfig,
    epoch: int,
    best: CertificationTest | None,
    tests: Sequence[CertificationTest],
    finished: bool,
    final_tests: int,
    reason: str = "",
) -> dict[str, Any]:
    """Return the content of ``certification.json``.

    Parameters
    ----------
    cfg
        The run.
    epoch
        Number of finished epochs.
    best
        Test of the best certified policy.
    tests
        Further tests: of the last policy, and of the candidate closest to a certificate.
    finished
        Whether training is finished.
    final_tests
        Number of tests at the end of training so far.
    reason
        Why no policy could be tested.
    """
    failed = [test for test in tests if not test.certified]
    closest = min(failed, key=lambda test: test.bound, default=None) if best is None else None
    last = next((test for test in tests if test.epoch == epoch), None) if finished else None
    which = None if best is None else "last" if finished and best.epoch == epoch else "earlier"
    return {
        "certified": best is not None,
        "finished": finished,
        "which": which,
        "epoch": epoch,
        "step": epoch * cfg.steps_per_epoch,
        "limit": cfg.cost_limit,
        "budget": cfg.certify.budget,
        "delta": cfg.certify.delta,
        "policy": _numbers(cfg, best),
        "last": _numbers(cfg, last),
        "closest": _numbers(cfg, closest),
        "final_tests": final_tests,
        "reason": reason,
        "sentence": _sentence(cfg, best, which, last, closest, finished, reason),
    }


def _numbers(cfg: RunConfig, test: CertificationTest | None) -> dict[str, Any] | None:
    if test is None:
        return None
    return {
        "epoch": test.epoch,
        "step": test.epoch * cfg.steps_per_epoch,
        "episodes": test.episodes,
        "violations": test.violations,
        "return": test.ret if test.episodes else None,
        "cost": test.cost if test.episodes else None,
        "bound": test.bound,
        "certified": test.certified,
        "reason": test.reason,
    }


def _sentence(
    cfg: RunConfig,
    best: CertificationTest | None,
    which: str | None,
    last: CertificationTest | None,
    closest: CertificationTest | None,
    finished: bool,
    reason: str,
) -> str:
    limit, budget = f"{cfg.cost_limit:g}", percent(cfg.certify.budget)
    confidence = percent(1.0 - cfg.certify.delta)
    if best is not None:
        step = f"{best.epoch * cfg.steps_per_epoch:,}"
        name = f"the last policy (step {step})" if which == "last" else f"the policy of step {step}"
        text = (
            f"Certified: {name} exceeded the cost limit {limit} in {_count(best)}; with {confidence} "
            f"confidence its violation probability is at most {at_most(best.bound)} (budget {budget}); "
            f"mean return {best.ret:.4g}"
        )
        if not finished:
            return f"{text}; training is not finished."
        if which == "last" or last is None:
            return f"{text}."
        if last.certified:
            return f"{text}. The last policy is certified too, with a lower mean return ({last.ret:.4g})."
        return f"{text}. The last policy is not certified: it {_failure(last, limit)}."
    start = f"No policy is certified for cost limit {limit} and a violation probability of at most {budget}"
    if closest is None:
        return f"{start}: {reason or 'no policy has been tested yet'}."
    name = "the last one" if last is closest else f"that of step {closest.epoch * cfg.steps_per_epoch:,}"
    advice = "train longer, or with a lower cost_limit" if finished else "training is not finished"
    return f"{start}: the closest candidate, {name}, {_failure(closest, limit, confidence)}; {advice}."


def _count(test: CertificationTest) -> str:
    return f"{test.violations} of {test.episodes} fresh episodes"


def _failure(test: CertificationTest, limit: str, confidence: str = "") -> str:
    if test.reason:
        return f"could not be tested because {test.reason}"
    bound = ""
    if confidence and test.bound < 1.0:
        bound = f" (with {confidence} confidence a violation probability of at most {at_most(test.bound)})"
    return f"exceeded the cost limit {limit} in {_count(test)}{bound}"
