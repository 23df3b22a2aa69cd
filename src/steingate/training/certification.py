"""Certification: sequential tests of policies on fresh episodes, and the report ``certification.json``."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from steingate.algorithms.base import EnvParams
from steingate.certificates.formatting import policy_name, verdict, violations_text
from steingate.certificates.shift import shift_radius
from steingate.monitoring.monitor import Monitor
from steingate.monitoring.wealth import delta_for_test, upper_bound
from steingate.training.config import RunConfig
from steingate.training.config_file import versions
from steingate.training.environment import TrainerEnv, set_params
from steingate.training.play import CHUNK, EpisodeTooLongError, Player, play
from steingate.training.seeding import Purpose, certification_seed

_MIN_SAMPLE = 8  # episodes from which equal ones are taken as a sign that seeds have no effect


class CertificationTest(NamedTuple):
    """Result of one test: fresh episodes of one policy with the mean action."""

    epoch: int  # policy updates before this policy
    episodes: int
    violations: int  # episodes with cost > limit
    mean_return: float
    mean_cost: float
    bound: float  # upper bound on P(cost > limit), wrong with probability delta
    delta: float
    certified: bool
    failure: str = ""  # why the policy could not be tested
    budget: float = 0.0  # accepted P(cost > limit)
    limit: float = 0.0
    purpose: int = 0  # Purpose.TEST or FINAL_TEST; with the number it decides ``delta`` and the seeds
    number: int = 0
    sha256: str = ""  # of the policy

    def holds_for(self, cfg: RunConfig) -> bool:
        """Whether the test, computed again from its counts, certifies its policy for the settings of a run."""
        if not self.certified or self.failure or not 0 <= self.violations <= self.episodes or self.number < 1:
            return False
        settings = cfg.cost_limit, cfg.certify.budget, delta_for_test(self.number, 0.5 * cfg.certify.delta)
        bound = upper_bound(self.violations, self.episodes - self.violations, self.delta)
        return (self.limit, self.budget, self.delta) == settings and bound <= self.budget


def min_episodes(budget: float, delta: float) -> int:
    """Return the smallest number of episodes, all without a violation, that certifies a policy.

    >>> min_episodes(0.1, 0.05)
    36
    """
    return Monitor(1.0, budget, delta).more_episodes


def ignored_seeds(marks: Sequence[Sequence[int]]) -> str:
    """Return why episodes are no random sample, or "" if they may be one.

    ``marks`` are checksums of the episodes, in groups that ran at the same time, each in an environment of its own. If
    all episodes of each group are equal although their seeds differ, the seeds have no effect.
    """
    total = sum(map(len, marks))
    parallel = [group for group in marks if len(group) > 1]
    equal = all(len(set(group)) == 1 for group in parallel) if parallel else len({m for g in marks for m in g}) == 1
    if total < _MIN_SAMPLE or not equal:
        return ""
    return f"its {total} episodes repeat although their seeds differ: the environment must use reset(seed=...)"


def certify_checkpoint(
    envs: TrainerEnv, player: Player, *, budget: float, delta: float, seeds: Callable[[int], int], max_episodes: int,
    longest: int, stop: Callable[[], bool] = lambda: False,
) -> tuple[CertificationTest, int]:  # fmt: skip
    """Test P(cost > limit) <= ``budget`` on fresh episodes; return the result and the number of steps taken.

    The test stops as soon as an anytime-valid monitor certifies this, shows the opposite, or cannot certify it any more
    with the remaining episodes.

    ``seeds`` is a function from the index of an episode to its reset seed. An episode that is more than ten times as
    long as ``longest``, the longest of training, and longer than 1000 steps ends the test. ``stop`` is called before
    every step; if it returns true, ``RolloutStoppedError`` is raised.
    """
    monitor = Monitor(1.0, budget, delta)  # counts violations: it gets 2 for a violation and 0 otherwise
    played: list[tuple[float, float]] = []  # (return, cost)
    marks: list[list[int]] = []
    steps, failure, chunk = 0, "", min(CHUNK, max(longest, 1))
    max_length = max(10 * longest, 1000)
    set_params(envs, EnvParams(player.cost_budget_fraction))

    def decided() -> bool:
        left = max_episodes - monitor.episodes
        return monitor.certified or monitor.unsafe or monitor.more_episodes > left

    while not decided():
        numbers = range(monitor.episodes, min(monitor.episodes + envs.num_envs, max_episodes))
        marks.append([])
        try:
            batch = play(envs, player, [seeds(i) for i in numbers], False, stop, chunk, max_length, marks[-1])
        except EpisodeTooLongError:
            failure = f"an episode had not ended after {max_length} steps"
            break
        steps += int(batch.length.max()) * envs.num_envs
        for ret, cost in zip(batch.ret.tolist(), batch.cost.tolist(), strict=True):
            if not decided():
                monitor.update(2.0 if cost > player.cfg.cost_limit else 0.0)
                played.append((ret, cost))
    failure = failure or ignored_seeds(marks)
    rets, costs = zip(*(played or [(0.0, 0.0)]), strict=True)
    certified = monitor.certified and not monitor.unsafe and not failure
    test = CertificationTest(
        player.epoch, monitor.episodes, monitor.violations, float(np.mean(rets)), float(np.mean(costs)),
        monitor.bound, delta, certified, failure, budget, player.cfg.cost_limit,
    )  # fmt: skip
    return test, steps


def certification_report(
    cfg: RunConfig, epoch: int, best: CertificationTest | None, tests: Sequence[CertificationTest], finished: bool,
    ledger: tuple[int, int], failure: str = "", fresh: dict[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return the content of ``certification.json`` after ``epoch`` epochs; ``finished`` if these are all.

    ``best`` is the test of the best certified policy, ``tests`` are those of the last policy and of the one closest to
    a certificate. ``ledger`` has the number of tests so far during training and at its end, ``failure`` why no policy
    could be tested, and ``fresh`` estimates of the certified policy from episodes that did not select it.
    """
    last = next((test for test in tests if finished and test.epoch == epoch), None)
    failed = [test for test in tests if best is None and not test.certified]
    closest = min(failed, key=lambda test: test.bound, default=None)
    seeds, shift = None, None
    if best is not None:
        purpose = Purpose(best.purpose)
        seeds = [certification_seed(cfg.seed, purpose, best.number, i) for i in range(best.episodes)]
        shift = shift_radius(min(best.bound, best.budget), best.budget)._asdict()

    def numbers(test: CertificationTest | None) -> dict[str, Any] | None:
        return None if test is None else {"step": test.epoch * cfg.steps_per_epoch, **test._asdict()}

    spent = sum(delta_for_test(k, 0.5 * cfg.certify.delta) for tests in ledger for k in range(1, tests + 1))
    return {
        "certified": best is not None,
        "finished": finished,
        "which": None if best is None else "last" if finished and best.epoch == epoch else "earlier",
        "epoch": epoch,
        "step": epoch * cfg.steps_per_epoch,
        "limit": cfg.cost_limit,
        "budget": cfg.certify.budget,
        "delta": cfg.certify.delta,
        "policy": numbers(best),
        "shift": shift,
        "seeds": seeds,
        "fresh_episodes": fresh,
        "last": numbers(last),
        "closest": numbers(closest),
        "ledger": {"training_tests": ledger[0], "final_tests": ledger[1], "delta_spent": spent},
        "identity": cfg.identity,
        "versions": versions(),
        "failure": failure,
        "sentence": _sentence(cfg, best, last, closest, finished, failure, fresh),
    }


def _sentence(
    cfg: RunConfig, best: CertificationTest | None, last: CertificationTest | None, closest: CertificationTest | None,
    finished: bool, failure: str, fresh: dict[str, Any] | None,
) -> str:  # fmt: skip
    """Return the verdict on the certified policy, else on the last one, else on the closest one."""

    def known(test: CertificationTest) -> str:
        if test.failure:
            return f"it could not be tested because {test.failure}"
        return violations_text(test.violations, test.episodes, cfg.cost_limit, test.bound, 1.0 - cfg.certify.delta)

    risk, unfinished = cfg.certify.budget, "" if finished else "Training is not finished."
    test = best or last or closest
    if test is None:
        return verdict(False, risk, failure or "no policy has been tested yet", "", unfinished)
    policy = policy_name("last" if last and test.epoch == last.epoch else "", test.epoch * cfg.steps_per_epoch)
    found = advice = ""
    if best is None:
        others = "No other policy is certified, either. " * (closest is not None and closest.epoch != test.epoch)
        advice = f"{others}Train longer, or accept a higher risk (--certify.budget)." * finished
    elif last is not None and last.epoch != best.epoch:
        also = "certified too, with a lower return" if last.certified else f"not certified: {known(last)}"
        advice = f"The last policy is {also}."
    if best is not None and fresh is not None:
        mean = f"{fresh['return']:.4g} ± {fresh['return_error']:.2g}"
        found = f"Mean return in {fresh['episodes']} other fresh episodes: {mean}."
    return verdict(best is not None, risk, known(test), policy, found, advice, unfinished)
