"""Evaluation of a policy: whole episodes on fresh seeds, and the bound on its violation probability."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import floor
from os import PathLike
from typing import Any

import numpy as np

from steingate.algorithms.base import EnvParams, Episodes
from steingate.algorithms.common.episodes import cvar
from steingate.certificates.formatting import percent, policy_name, verdict, violations_text
from steingate.certificates.shift import ShiftRadius, shift_radius
from steingate.certificates.violation import certify, clopper_pearson_lower
from steingate.errors import InputError
from steingate.monitoring.episodes import update_until_decided
from steingate.monitoring.monitor import Monitor
from steingate.monitoring.wealth import delta_for_test
from steingate.policies.load import Which
from steingate.policies.zoo import run_folder
from steingate.training.certification import ignored_seeds
from steingate.training.environment import make_envs
from steingate.training.evaluations import add_evaluation, ledger_of, read_evaluations
from steingate.training.logging.rows import negative_cost_warning
from steingate.training.play import Player, load_player, play
from steingate.training.seeding import evaluation_seeds

TAIL = 0.1  # fraction of worst episodes in the CVaR


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Result of :func:`evaluate`: episodes of one policy; episode i was started with ``seeds[i]``.

    Attributes
    ----------
    number : which evaluation of the run this is
    which : "certified" or "last"
    epoch, step : policy updates and environment steps of training before this policy
    sampled : whether actions were sampled, instead of taking their mean
    seeds, episodes : reset seeds, and cost, return and length of the episodes
    limit : cost limit of an episode
    risk : accepted violation probability
    confidence : confidence of the bound; that of all evaluations of the run together is ``joint_confidence``
    bound : upper bound on P(cost > limit): exact, or a monitor's if it decided the number of episodes
    certified : whether these episodes certify P(cost > limit) <= risk
    failure : why they certify nothing, if they are no sample of episodes
    sha256 : of the policy's arrays
    """

    number: int
    which: str
    epoch: int
    step: int
    sampled: bool
    seeds: tuple[int, ...]
    episodes: Episodes
    limit: float
    risk: float
    confidence: float
    joint_confidence: float
    bound: float
    certified: bool
    failure: str = ""
    sha256: str = ""

    @property
    def worst(self) -> int:
        """Index of the episode with the highest cost."""
        return int(np.argmax(self.episodes.cost))

    @property
    def violations(self) -> int:
        """Number of episodes with cost > limit."""
        return int(np.sum(self.episodes.cost > self.limit))

    @property
    def violation_rate(self) -> float:
        """Fraction of the episodes with cost > limit."""
        return self.violations / len(self.episodes.cost)

    @property
    def shift(self) -> ShiftRadius | None:
        """How much the distribution of the episodes may change with the risk still certified; else None."""
        return shift_radius(self.bound, self.risk) if self.certified else None

    def __str__(self) -> str:
        counts, confidence = (self.violations, len(self.episodes.cost)), floor(1000 * self.confidence) / 1000
        known = violations_text(*counts, self.limit, self.bound, confidence)
        outcome: bool | None = self.certified
        if self.failure:
            advice = f"They certify nothing: {self.failure}."
        elif self.certified:
            advice = "Next: export it (steingate export), and monitor it where it acts (steingate monitor)."
        elif clopper_pearson_lower(*counts, self.confidence) > self.risk:
            advice = "Train longer, or accept a higher risk (--risk)."
        else:
            outcome, advice = (
                None,
                "Too few episodes to tell: give more (--episodes), or as many as needed (--until-certified).",
            )
        joint = f"Evaluation {self.number} of this run; all together have {percent(self.joint_confidence)} confidence."
        return verdict(outcome, self.risk, known, self.policy, advice, joint)

    @property
    def policy(self) -> str:
        """The policy in words, such as "the last policy (step 1,000,000), without exploration noise"."""
        return policy_name(self.which, self.step, self.sampled)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON types."""
        cost, ret = self.episodes.cost, self.episodes.ret
        own = (
            "epoch",
            "step",
            "limit",
            "risk",
            "confidence",
            "joint_confidence",
            "violations",
            "violation_rate",
            "bound",
        )
        return {
            "number": self.number,
            "policy": self.which,
            "actions": "sampled" if self.sampled else "mean",
            "episodes": len(cost),
            **{name: getattr(self, name) for name in own},
            "certified": self.certified,
            "shift": None if self.shift is None else self.shift._asdict(),
            "return": {"mean": float(ret.mean()), "std": float(ret.std())},
            "cost": {"mean": float(cost.mean()), "std": float(cost.std())},
            "length": {"mean": float(self.episodes.length.mean())},
            "cvar": {"tail": TAIL, "cost": cvar(cost, TAIL)[0]},
            "worst": {
                "seed": self.seeds[self.worst],
                "cost": float(cost[self.worst]),
                "return": float(ret[self.worst]),
            },
            "sentence": str(self),
        }


def evaluate(
    path: str | PathLike[str], episodes: int = 100, *, seed: int = 0, sample: bool = False, policy: Which | None = None,
    limit: float | None = None, risk: float | None = None, confidence: float | None = None,
    until_certified: bool = False, env: Any = None, trust_code: bool = False,
    warn: Callable[[str], None] = warnings.warn, stop: Callable[[], bool] = lambda: False,
) -> Evaluation:  # fmt: skip
    """Play whole episodes with a policy of a run, and bound its violation probability P(cost > limit).

    The evaluations of a run are counted in its ``evaluations.jsonl``. The k-th one has the error probability
    6 (1 - confidence) / (pi k)^2 and episodes of its own, so that repeating until one is good is no cheat.

    Parameters
    ----------
    path
        The run folder, the run, or a name of ``steingate zoo``.
    episodes
        Number of episodes.
    seed
        Seed of the episodes; they differ from those of training, of its tests and of earlier evaluations.
    sample
        Sample actions as in training, instead of taking the mean.
    policy
        ``"certified"`` or ``"last"``; by default the certified one, else the last with a warning.
    limit, risk, confidence
        Cost limit, accepted violation probability, and confidence that the bounds of all evaluations of this run have
        together; by default those of the run.
    until_certified
        Stop as soon as an anytime-valid monitor certifies the policy or shows that it is unsafe, after at most
        ``episodes``. The bound is then the monitor's.
    env
        The environment, if it was given as a Python object or has moved.
    trust_code
        Import the code that a run from another machine names (environment, algorithm, cost or risk function).
    warn
        Called with warnings: no certified policy, negative costs, damaged files.
    stop
        Called before every step; it may raise to end the evaluation.

    Examples
    --------
    >>> import steingate
    >>> result = steingate.evaluate("runs/allowance/SafetyPointGoal1-v0/seed-0", 100)  # doctest: +SKIP
    >>> print(result)  # doctest: +SKIP
    >>> result.episodes.cost, result.violations, result.bound, result.certified  # doctest: +SKIP
    """
    if episodes < 1:
        raise InputError(f"episodes must be at least 1, got {episodes}.")
    player = load_player(path, warn, policy, env, trust_code)
    ledger, before = ledger_of(run_folder(path), player.sha256)
    cfg, lines = player.cfg, len(read_evaluations(ledger))
    earlier = before + lines
    seeds = evaluation_seeds(seed, episodes, earlier + 1)
    limit = cfg.cost_limit if limit is None else limit
    risk = cfg.certify.budget if risk is None else risk
    joint = 1.0 - cfg.certify.delta if confidence is None else confidence
    if not 0.0 < joint < 1.0:
        raise InputError(f"confidence must be between 0 and 1, got {joint}.")
    delta = delta_for_test(earlier + 1, round(1.0 - joint, 15))
    monitor = Monitor(limit, risk, delta)
    played, failure = play_episodes(player, seeds, sample, stop, monitor if until_certified else None)
    cost = played.cost
    if (cost < 0.0).any():
        warn(negative_cost_warning(cfg, cost))
    if until_certified:
        bound, certified = monitor.bound, monitor.certified and not monitor.unsafe
    else:
        exact = certify(np.maximum(cost, 0.0), limit, risk, 1.0 - delta)
        bound, certified = exact.bound, exact.certified
    step = player.epoch * cfg.steps_per_epoch
    found = Evaluation(
        earlier + 1, player.which, player.epoch, step, sample, tuple(seeds[: len(cost)]), played, limit, risk,
        1.0 - delta, joint, bound, certified and not failure, failure, player.sha256,
    )  # fmt: skip
    record = {"sha256": found.sha256, "seed": seed, "until_certified": until_certified, **found.to_dict()}
    add_evaluation(ledger, lines, {"time": datetime.now(UTC).isoformat(timespec="seconds"), **record})
    return found


def play_episodes(
    player: Player, seeds: Sequence[int], sample: bool, stop: Callable[[], bool], monitor: Monitor | None = None
) -> tuple[Episodes, str]:
    """Play one episode per seed, or until the monitor has decided; return them and why they are no sample, if so."""
    envs = make_envs(player.cfg, params=EnvParams(player.cost_budget_fraction))
    groups: list[Episodes] = []
    marks: list[list[int]] = []
    try:
        for first in range(0, len(seeds), envs.num_envs):
            marks.append([])
            groups.append(play(envs, player, seeds[first : first + envs.num_envs], sample, stop, marks=marks[-1]))
            if monitor is not None:
                update_until_decided(monitor, np.maximum(groups[-1].cost, 0.0).tolist())
                if monitor.certified or monitor.unsafe:
                    break
    finally:
        envs.close()
    count = len(seeds) if monitor is None else monitor.episodes
    cost, ret, length, truncated = (
        np.concatenate([getattr(each, name) for each in groups])[:count]
        for name in ("cost", "ret", "length", "truncated")
    )
    return Episodes(cost, ret, length, truncated=truncated), ignored_seeds(marks)
