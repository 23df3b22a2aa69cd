"""What a policy of a run does on fresh seeds: whole episodes, at the mean action or sampled."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steingate.algorithms.steingate import Certified
from steingate.certificates.bounds import clopper_pearson_upper
from steingate.certificates.certificate import Certificate
from steingate.certificates.result import Result
from steingate.certificates.words import at_most
from steingate.errors import InputError, RunError
from steingate.gates.base import Episodes
from steingate.gates.tail import cvar
from steingate.monitoring.certify import Verdict, until_certified
from steingate.monitoring.monitor import Monitor
from steingate.monitoring.sentence import percent
from steingate.policies.normalizer import Stats
from steingate.policies.policy import Which, chosen_checkpoint
from steingate.training.assemble import build_algorithm, make_envs
from steingate.training.config import RunConfig
from steingate.training.environment import TrainerEnv
from steingate.training.episode_notes import below_zero
from steingate.training.play import Player, make_player, play
from steingate.training.seeding import evaluation_seeds
from steingate.training.stored import stored_config

TAIL = 0.1  # share of worst episodes in the CVaR


class Certify(NamedTuple):
    """What is to be certified: at most ``budget`` of the episodes over the limit, wrong with ``delta``."""

    budget: float = 0.1
    delta: float = 0.05


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Episodes of one fixed policy; entry i was started with ``seeds[i]``.

    Attributes
    ----------
    epoch : policy updates before this policy
    which : "certified" or "last"
    sampled : whether actions were drawn as in training, instead of taking their mean
    seeds, episodes : what was played, and what came of it
    limit : on the cost of an episode
    certificate : what the certificate says of the costs
    wanted : what was to be certified
    verdict : of the monitor, where it decided how many episodes there are
    """

    epoch: int
    which: str
    sampled: bool
    seeds: tuple[int, ...]
    episodes: Episodes
    limit: float
    certificate: Result
    wanted: Certify
    verdict: Verdict | None = None

    @property
    def worst(self) -> int:
        """Index of the costliest episode."""
        return int(np.argmax(self.episodes.cost))

    @property
    def over(self) -> int:
        """Number of episodes over the limit."""
        return int(np.sum(self.episodes.cost > self.limit))

    @property
    def bound(self) -> float:
        """Upper bound on P(cost > limit), wrong with chance ``wanted.delta``: exact, or the monitor's."""
        if self.verdict is not None:
            return self.verdict.bound
        return clopper_pearson_upper(self.over, len(self.episodes.cost), self.wanted.delta)

    @property
    def certified(self) -> bool:
        """Whether these episodes show that P(cost > limit) is within the budget."""
        return self.verdict.certified if self.verdict is not None else self.bound <= self.wanted.budget

    @property
    def sentence(self) -> str:
        """What these episodes show, in words."""
        count, sure = len(self.episodes.cost), percent(1.0 - self.wanted.delta)
        kind = "sampled" if self.sampled else "at the mean action"
        share = percent(self.wanted.budget)
        verdict = f"Certified for {share}." if self.certified else f"They alone do not certify {share}."
        return (
            f"{self.over} of {count} episodes of the {self.which} policy, {kind}, cost more than "
            f"{self.limit:g}; with {sure} confidence at most {at_most(self.bound)} do. "
            f"{verdict}"
        )

    def __str__(self) -> str:
        return f"{self.sentence} Mean return {self.episodes.ret.mean():.4g}."

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON types."""
        cost, ret = self.episodes.cost, self.episodes.ret
        return {
            "policy": self.which,
            "epoch": self.epoch,
            "actions": "sampled" if self.sampled else "mean",
            "episodes": len(cost),
            "return": {"mean": float(ret.mean()), "std": float(ret.std())},
            "cost": {"mean": float(cost.mean()), "std": float(cost.std()), "limit": self.limit},
            "length": {"mean": float(self.episodes.length.mean())},
            "over": self.over,
            "over_limit": float(np.mean(cost > self.limit)),
            "over_bound": self.bound,
            "certified": self.certified,
            "cvar": {"tail": TAIL, "cost": cvar(cost, TAIL)[0]},
            "worst": {
                "seed": self.seeds[self.worst],
                "cost": float(cost[self.worst]),
                "return": float(ret[self.worst]),
            },
            "certificate": self.certificate.to_dict(),
            "verdict": None if self.verdict is None else _told(self.verdict),
            "sentence": self.sentence,
        }


def evaluate(
    path: str | Path,
    episodes: int = 100,
    seed: int = 0,
    sample: bool = False,
    warn: Callable[[str], None] = lambda text: None,
    stop: Callable[[], bool] = lambda: False,
    until: Certify | None = None,
    *,
    policy: Which | None = None,
    limit: float | None = None,
    preset: str | None = None,
    wanted: Certify | None = None,
    env: Any = None,
) -> Evaluation:
    """Return what a policy of a run does in ``episodes`` whole episodes.

    Parameters
    ----------
    path
        The run folder.
    episodes
        How many.
    seed
        Decides the episodes; evaluation never meets the seeds of training, nor those of its tests.
    sample
        Draw actions as training does, instead of taking the mean.
    warn
        Hears that no policy is certified, of costs below 0, and of damaged and foreign files that were
        passed over.
    stop
        Asked before every step; it may raise to end the evaluation.
    until
        Play only until this is certified or shown false, and at most ``episodes``; the bound holds although
        the number of episodes depends on them.
    policy
        ``"certified"``, ``"last"``, or the certified one if there is one.
    limit
        Another limit than the run's.
    preset
        Another certificate than the recipe's, by name.
    wanted
        What ``bound`` and ``certified`` are about, where ``until`` does not say it.
    env
        Where the environment is now, or, for one that was given from Python, the environment again.
    """
    if episodes < 1:
        raise InputError(f"episodes is {episodes}: at least one is needed.")
    player = load_player(path, warn, policy, env)
    seeds = evaluation_seeds(seed, episodes)
    bar, recipe = player.cfg.cost_limit if limit is None else limit, player.cfg.algo
    own = recipe.certificate_for(bar) if preset is None and isinstance(recipe, Certified) else None
    certificate = own or Certificate.preset(preset or "released", limit=bar)
    aim = until or wanted or Certify(player.cfg.certify.budget, player.cfg.certify.delta)
    envs = make_envs(player.cfg, build_algorithm(player.cfg), budget=player.budget)
    try:
        if until is None:
            outcome, verdict = play(envs, player, seeds, sample, stop), None
        else:
            monitor = Monitor(bar, until.budget, until.delta)
            outcome, verdict = _play_until(envs, player, seeds, sample, stop, monitor)
    finally:
        envs.close()
    found = certificate.evaluate(np.maximum(outcome.cost, 0.0))
    if (outcome.cost < 0.0).any():
        warn(below_zero(player.cfg, outcome.cost))
    played = tuple(seeds[: len(outcome.cost)])
    return Evaluation(player.epoch, player.which, sample, played, outcome, bar, found, aim, verdict)


def _play_until(
    envs: TrainerEnv,
    player: Player,
    seeds: Sequence[int],
    sample: bool,
    stop: Callable[[], bool],
    monitor: Monitor,
) -> tuple[Episodes, Verdict]:
    """Return the episodes that the monitor counted, and its verdict; up to a wave more may be played."""
    parts: list[Episodes] = []

    def costs() -> Iterator[float]:
        for first in range(0, len(seeds), envs.num_envs):
            parts.append(play(envs, player, seeds[first : first + envs.num_envs], sample, stop))
            yield from np.maximum(parts[-1].cost, 0.0).tolist()

    verdict = until_certified(costs(), monitor, len(seeds))
    ret, cost, length = (
        np.concatenate([getattr(part, name) for part in parts])[: verdict.episodes]
        for name in ("ret", "cost", "length")
    )
    return Episodes(cost=cost, ret=ret, length=length), verdict


def _told(verdict: Verdict) -> dict[str, Any]:
    return {
        "certified": verdict.certified,
        "unsafe": verdict.unsafe,
        "episodes": verdict.episodes,
        "bound": verdict.bound,
        "budget": verdict.monitor.budget,
        "delta": verdict.monitor.delta,
        "sentence": verdict.sentence,
    }


def load_player(
    path: str | Path, warn: Callable[[str], None], policy: Which | None = None, env: Any = None
) -> Player:
    """Return a policy of a run folder with its configuration.

    ``policy`` chooses as for ``load``, ``env`` is as in :func:`evaluate`.
    """
    cfg = stored_config(path, env)
    checkpoint, which = chosen_checkpoint(path, policy, warn)
    tree, seen = checkpoint.tree, checkpoint.tree["stats"]
    stats = Stats(int(seen["count"]), seen["mean"], seen["m2"])
    _check_account(cfg, tree, f"{path}")
    player = make_player(cfg, checkpoint.epoch, tree["policy"], stats, tree.get("budget", 1.0))
    return player._replace(which=which)


def _check_account(cfg: RunConfig, tree: dict[str, Any], name: str) -> None:
    """Refuse a policy that was taught another account of its spending than its method keeps now."""
    account, stored = build_algorithm(cfg).account, tree.get("extra")
    if account is None or stored is None:
        return
    now = account.seen.extra(float(tree.get("budget", 1.0))).plain()
    if len(now) != len(stored) or not np.allclose(now, stored):
        raise RunError(
            f"The policy of {name} was trained to see another account of its spending than {cfg.algo.name} "
            "keeps in this version: train it anew, or use steingate.load(), which has its own."
        )
