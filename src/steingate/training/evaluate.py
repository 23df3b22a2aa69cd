"""Evaluation of a policy: whole episodes on fresh seeds, and the bound on its violation probability."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from steingate.algorithms.common.base import Params
from steingate.algorithms.steingate import Certified
from steingate.certificates.bounds import clopper_pearson_upper
from steingate.certificates.result import Result
from steingate.certificates.words import at_most
from steingate.errors import InputError, RunError
from steingate.gates.base import Episodes
from steingate.gates.tail import cvar
from steingate.monitoring.episodes import update_until_decided
from steingate.monitoring.monitor import Monitor
from steingate.monitoring.text import percent
from steingate.policies.action_distribution import choice_of, outputs
from steingate.policies.normalizer import Stats
from steingate.policies.policy import Which, chosen_checkpoint
from steingate.training.assemble import build_algorithm, make_envs
from steingate.training.config import RunConfig
from steingate.training.config_file import load_run_config
from steingate.training.environment import TrainerEnv
from steingate.training.logging.rows import negative_cost_warning
from steingate.training.rollout import Carry, collect
from steingate.training.rollout_kernels import FROZEN, OFF
from steingate.training.seeding import Purpose, evaluation_seeds, stream

TAIL = 0.1  # fraction of worst episodes in the CVaR
CHUNK = 100  # vector steps per rollout
MAX_STEPS = 1_000_000


class EpisodeTooLongError(RunError):
    """An episode did not end within the largest number of steps."""


class Player(NamedTuple):
    """A policy of a run, with the observation statistics it was trained with."""

    cfg: RunConfig
    epoch: int
    policy: Params
    stats: Stats
    mode: int  # observation normalization: FROZEN or OFF
    budget: float = 1.0  # cost budget fraction of the environments
    which: str = "last"  # or "certified"


def make_player(cfg: RunConfig, epoch: int, policy: Params, stats: Stats, budget: float) -> Player:
    """Return the player for a policy after ``epoch`` epochs of a run."""
    params = {name: tuple(value) if name in ("w", "b") else value for name, value in policy.items()}
    mode = FROZEN if cfg.algo.normalize_obs else OFF
    # The published codes evaluate with the whole budget, whatever fraction training used last.
    return Player(cfg, epoch, params, stats, mode, 1.0 if cfg.algo.is_published else float(budget))


def load_player(
    path: str | Path, warn: Callable[[str], None], policy: Which | None = None, env: Any = None
) -> Player:
    """Return a policy of a run folder with its configuration; arguments as in :func:`evaluate`."""
    cfg = load_run_config(path, env)
    checkpoint, which = chosen_checkpoint(path, policy, warn)
    tree, saved = checkpoint.tree, checkpoint.tree["stats"]
    stats = Stats(int(saved["count"]), saved["mean"], saved["m2"])
    _check_safety_state(cfg, tree, f"{path}")
    player = make_player(cfg, checkpoint.epoch, tree["policy"], stats, tree.get("budget", 1.0))
    return player._replace(which=which)


def _check_safety_state(cfg: RunConfig, tree: dict[str, Any], name: str) -> None:
    """Refuse a policy that was trained with another safety state than this version computes."""
    account, stored = build_algorithm(cfg).account, tree.get("extra")
    if account is None or stored is None:
        return
    now = account.seen.extra(float(tree.get("budget", 1.0))).plain()
    if len(now) != len(stored) or not np.allclose(now, stored):
        raise RunError(
            f"The policy of {name} was trained with a safety state that {cfg.algo.name} of this version does "
            "not compute: train it anew, or use steingate.load(), which stores its own."
        )


def play(
    envs: TrainerEnv,
    player: Player,
    seeds: Sequence[int],
    sample: bool,
    stop: Callable[[], bool] = lambda: False,
    chunk: int = CHUNK,
    max_steps: int | None = None,
) -> Episodes:
    """Return one whole episode per seed, in the order of ``seeds``.

    Each episode depends on its seed only, so that any of them can be played again.

    Parameters
    ----------
    envs
        A vector environment; ``envs.num_envs`` episodes run at the same time.
    player
        The policy.
    seeds
        One reset seed per episode.
    sample
        Sample actions instead of taking the mean.
    stop
        Called before every step; if it returns true, playing ends with ``RolloutStoppedError``.
    chunk
        Vector steps per rollout; sampled actions depend on it.
    max_steps
        A longer episode raises an ``EpisodeTooLongError``; one million by default.
    """
    most = max_steps or MAX_STEPS
    rows = [
        _play_together(envs, player, seeds[first : first + envs.num_envs], sample, stop, chunk, most)
        for first in range(0, len(seeds), envs.num_envs)
    ]
    ret, cost, length = np.concatenate(rows).T
    return Episodes(cost=cost, ret=ret, length=length.astype(np.int64))


def _play_together(
    envs: TrainerEnv,
    player: Player,
    seeds: Sequence[int],
    sample: bool,
    stop: Callable[[], bool],
    chunk: int,
    max_steps: int,
) -> npt.NDArray[np.float64]:
    """Return (return, cost, length) of the first episode of each environment, for at most E seeds."""
    space = envs.single_action_space
    shape = (chunk, envs.num_envs, outputs(space))
    padded = [*seeds, *([seeds[-1]] * (envs.num_envs - len(seeds)))]  # unused environments run along
    first = np.full((envs.num_envs, 3), np.nan)
    carry: Carry | None = None
    for number in range(-(-max_steps // chunk)):
        noise = np.zeros(shape, np.float32)
        if sample:
            for i, seed in enumerate(padded):
                rng = stream(seed, number, Purpose.EVALUATION)
                draw = rng.standard_normal if choice_of(space) is None else rng.gumbel
                noise[:, i] = draw(size=noise[:, i].shape)
        rollout, _ = collect(
            envs,
            player.policy,
            player.stats,
            noise,
            mode=player.mode,
            seeds=padded,
            start=carry,
            stop=stop,
            name=player.cfg.env,
            steps_before=number * chunk * envs.num_envs,
        )
        carry, done = rollout.carry, rollout.episodes
        for (_, env), *outcome in zip(rollout.finished_at, done.ret, done.cost, done.length, strict=True):
            if np.isnan(first[env, 0]):
                first[env] = outcome
        if not np.isnan(first[: len(seeds), 0]).any():
            return first[: len(seeds)]
    raise EpisodeTooLongError(
        f"An episode of {player.cfg.env} has not ended after {max_steps} steps; give it a max_episode_steps."
    )


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Result of :func:`evaluate`: episodes of one policy; episode i was started with ``seeds[i]``.

    Attributes
    ----------
    epoch : policy updates before this policy
    which : "certified" or "last"
    sampled : whether actions were sampled, instead of taking their mean
    seeds, episodes : reset seeds, and cost, return and length of the episodes
    limit : cost limit of an episode
    budget : accepted violation probability
    delta : error probability of ``bound``
    monitor : the monitor that stopped the evaluation, if the number of episodes depended on it, else None
    gate : for SteinGate, its certificate evaluated on these costs, else None
    """

    epoch: int
    which: str
    sampled: bool
    seeds: tuple[int, ...]
    episodes: Episodes
    limit: float
    budget: float
    delta: float
    monitor: Monitor | None = None
    gate: Result | None = None

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
    def bound(self) -> float:
        """Upper bound on P(cost > limit) with confidence 1 - delta: Clopper-Pearson, or the monitor's."""
        if self.monitor is not None:
            return self.monitor.bound
        return clopper_pearson_upper(self.violations, len(self.episodes.cost), self.delta)

    @property
    def certified(self) -> bool:
        """Whether these episodes certify P(cost > limit) <= budget."""
        return self.monitor.certified if self.monitor is not None else self.bound <= self.budget

    @property
    def sentence(self) -> str:
        """The result in words."""
        actions = "with sampled actions" if self.sampled else "with mean actions"
        word = "Certified" if self.certified else "Not certified"
        return (
            f"The {self.which} policy, {actions}, exceeded the cost limit {self.limit:g} in "
            f"{self.violations} of {len(self.episodes.cost)} episodes; with {percent(1.0 - self.delta)} "
            f"confidence its violation probability is at most {at_most(self.bound)}. {word} for a budget "
            f"of {percent(self.budget)}."
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
            "violations": self.violations,
            "violation_rate": self.violation_rate,
            "bound": self.bound,
            "budget": self.budget,
            "delta": self.delta,
            "certified": self.certified,
            "cvar": {"tail": TAIL, "cost": cvar(cost, TAIL)[0]},
            "worst": {
                "seed": self.seeds[self.worst],
                "cost": float(cost[self.worst]),
                "return": float(ret[self.worst]),
            },
            "gate": None if self.gate is None else self.gate.to_dict(),
            "sentence": self.sentence,
        }


def evaluate(
    path: str | PathLike[str],
    episodes: int = 100,
    *,
    seed: int = 0,
    sample: bool = False,
    policy: Which | None = None,
    limit: float | None = None,
    budget: float | None = None,
    delta: float | None = None,
    until_certified: bool = False,
    env: Any = None,
    warn: Callable[[str], None] = warnings.warn,
    stop: Callable[[], bool] = lambda: False,
) -> Evaluation:
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
    limit, budget, delta
        Cost limit, accepted violation probability and error probability; by default those of the run.
    until_certified
        Stop as soon as an anytime-valid monitor certifies the policy or shows that it is unsafe, after at
        most ``episodes``. The bound is then the monitor's.
    env
        The environment, if it was given as a Python object or has moved.
    warn
        Called with warnings: no certified policy, negative costs, damaged files.
    stop
        Called before every step; it may raise to end the evaluation.

    Examples
    --------
    >>> import steingate
    >>> result = steingate.evaluate("runs/steingate/SafetyPointGoal1-v0/seed-0", 100)  # doctest: +SKIP
    >>> print(result)  # doctest: +SKIP
    >>> result.episodes.cost, result.violations, result.bound, result.certified  # doctest: +SKIP
    """
    if episodes < 1:
        raise InputError(f"episodes must be at least 1, got {episodes}.")
    player = load_player(Path(path), warn, policy, env)
    cfg, seeds = player.cfg, evaluation_seeds(seed, episodes)
    limit = cfg.cost_limit if limit is None else limit
    budget = cfg.certify.budget if budget is None else budget
    delta = cfg.certify.delta if delta is None else delta
    monitor = Monitor(limit, budget, delta)
    envs = make_envs(cfg, build_algorithm(cfg), budget=player.budget)
    try:
        if until_certified:
            played = _play_until(envs, player, seeds, sample, stop, monitor)
        else:
            played = play(envs, player, seeds, sample, stop)
    finally:
        envs.close()
    if (played.cost < 0.0).any():
        warn(negative_cost_warning(cfg, played.cost))
    gate = None
    if isinstance(cfg.algo, Certified):
        gate = cfg.algo.certificate_for(limit).evaluate(np.maximum(played.cost, 0.0))
    used = tuple(seeds[: len(played.cost)])
    watched = monitor if until_certified else None
    return Evaluation(player.epoch, player.which, sample, used, played, limit, budget, delta, watched, gate)


def _play_until(
    envs: TrainerEnv,
    player: Player,
    seeds: Sequence[int],
    sample: bool,
    stop: Callable[[], bool],
    monitor: Monitor,
) -> Episodes:
    """Return the episodes that the monitor counted; up to E - 1 more may be played."""
    played: list[Episodes] = []

    def costs() -> Iterator[float]:
        for first in range(0, len(seeds), envs.num_envs):
            played.append(play(envs, player, seeds[first : first + envs.num_envs], sample, stop))
            yield from np.maximum(played[-1].cost, 0.0).tolist()

    update_until_decided(monitor, costs(), len(seeds))
    cost, ret, length = (
        np.concatenate([getattr(each, name) for each in played])[: monitor.episodes]
        for name in ("cost", "ret", "length")
    )
    return Episodes(cost=cost, ret=ret, length=length)
