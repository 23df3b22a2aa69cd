"""Evaluation of a policy: whole episodes on fresh seeds, and the bound on its violation probability."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from steingate.algorithms.base import EnvParams, Episodes
from steingate.algorithms.common.episodes import cvar
from steingate.certificates.formatting import percent, violations_text
from steingate.certificates.violation import certify
from steingate.errors import InputError
from steingate.monitoring.episodes import update_until_decided
from steingate.monitoring.monitor import Monitor
from steingate.policies.load import Which
from steingate.training.certification import policy_name
from steingate.training.environment import make_envs
from steingate.training.logging.rows import negative_cost_warning
from steingate.training.play import load_player, play
from steingate.training.seeding import evaluation_seeds

TAIL = 0.1  # fraction of worst episodes in the CVaR


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Result of :func:`evaluate`: episodes of one policy; episode i was started with ``seeds[i]``.

    Attributes
    ----------
    which : "certified" or "last"
    epoch, step : policy updates and environment steps of training before this policy
    sampled : whether actions were sampled, instead of taking their mean
    seeds, episodes : reset seeds, and cost, return and length of the episodes
    limit : cost limit of an episode
    risk, confidence : accepted violation probability, and confidence of the bound
    bound : upper bound on P(cost > limit): exact, or a monitor's if it decided the number of episodes
    certified : whether these episodes certify P(cost > limit) <= risk
    """

    which: str
    epoch: int
    step: int
    sampled: bool
    seeds: tuple[int, ...]
    episodes: Episodes
    limit: float
    risk: float
    confidence: float
    bound: float
    certified: bool

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

    def __str__(self) -> str:
        policy = policy_name(self.which, self.step, self.sampled)
        count, risk = len(self.episodes.cost), percent(self.risk)
        outcome = violations_text(self.violations, count, self.limit, self.bound, self.confidence)
        if self.certified:
            advice = f"Certified for {risk}."
        elif self.violation_rate <= self.risk:
            advice = f"Too few episodes to certify {risk}; --until-certified uses as many as needed."
        else:
            advice = f"Not certified for {risk}: train longer, or accept a higher risk."
        return f"{policy[0].upper()}{policy[1:]}: {outcome}. {advice}"

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON types."""
        cost, ret = self.episodes.cost, self.episodes.ret
        own = ("epoch", "step", "limit", "risk", "confidence", "violations", "violation_rate", "bound")
        return {
            "policy": self.which,
            "actions": "sampled" if self.sampled else "mean",
            "episodes": len(cost),
            **{name: getattr(self, name) for name in own},
            "certified": self.certified,
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

    Parameters
    ----------
    path
        The run folder, or the run.
    episodes
        Number of episodes.
    seed
        Seed of the episodes; they differ from those of training and of its certification tests.
    sample
        Sample actions as in training, instead of taking the mean.
    policy
        ``"certified"`` or ``"last"``; by default the certified one, else the last with a warning.
    limit, risk, confidence
        Cost limit, accepted violation probability and confidence of the bound; by default those of the run.
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
    player = load_player(Path(path), warn, policy, env, trust_code)
    cfg, seeds = player.cfg, evaluation_seeds(seed, episodes)
    limit = cfg.cost_limit if limit is None else limit
    risk = cfg.certify.budget if risk is None else risk
    confidence = 1.0 - cfg.certify.delta if confidence is None else confidence
    monitor = Monitor(limit, risk, round(1.0 - confidence, 15))
    envs = make_envs(cfg, params=EnvParams(player.cost_budget_fraction))
    played: list[Episodes] = []
    try:
        for first in range(0, episodes, envs.num_envs):
            played.append(play(envs, player, seeds[first : first + envs.num_envs], sample, stop))
            if until_certified:
                update_until_decided(monitor, np.maximum(played[-1].cost, 0.0).tolist())
            if monitor.certified or monitor.unsafe:
                break
    finally:
        envs.close()
    episodes = monitor.episodes or episodes
    cost, ret, length = (
        np.concatenate([getattr(each, name) for each in played])[:episodes] for name in ("cost", "ret", "length")
    )
    if (cost < 0.0).any():
        warn(negative_cost_warning(cfg, cost))
    if until_certified:
        bound, certified = monitor.bound, monitor.certified
    else:
        exact = certify(np.maximum(cost, 0.0), limit, risk, confidence)
        bound, certified = exact.bound, exact.certified
    step = player.epoch * cfg.steps_per_epoch
    result = Episodes(cost=cost, ret=ret, length=length)
    return Evaluation(
        player.which, player.epoch, step, sample, tuple(seeds[:episodes]), result, limit, risk, confidence,
        bound, certified,
    )  # fmt: skip
