"""A fixed policy on fresh seeds: the collection code of training, frozen statistics, whole episodes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from steingate.algos.base import Params
from steingate.algos.methods.stein import Certified
from steingate.core.certificate import Certificate
from steingate.core.result import Result
from steingate.errors import InputError, RunError
from steingate.gates.base import Episodes
from steingate.gates.tail import cvar
from steingate.monitor.certify import Verdict, until_certified
from steingate.monitor.monitor import Monitor
from steingate.normaliser import Stats
from steingate.policy import policy_checkpoint
from steingate.training.assemble import build_algorithm, make_envs
from steingate.training.collect import Carry, collect
from steingate.training.collect_kernels import FROZEN, RAW
from steingate.training.config import RunConfig
from steingate.training.environment import TrainerEnv
from steingate.training.randomness import Purpose, stream
from steingate.training.stored import stored_config

CHUNK = 100  # vector steps per rollout
MAX_STEPS = 1_000_000
TAIL = 0.1  # share of worst episodes in the CVaR


class Player(NamedTuple):
    """What acts: a policy and the observation statistics it was trained with."""

    cfg: RunConfig
    epoch: int
    policy: Params
    stats: Stats
    mode: int
    budget: float = 1.0  # share of its budget that an episode starts with


class Certify(NamedTuple):
    """What is to be certified: at most ``budget`` of the episodes over the limit, wrong with ``delta``."""

    budget: float = 0.1
    delta: float = 0.05


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Episodes of one fixed policy; entry i was started with ``seeds[i]``."""

    epoch: int
    seeds: tuple[int, ...]
    episodes: Episodes
    limit: float
    certificate: Result
    verdict: Verdict | None = None  # of the monitor, when it decided how many episodes there are

    @property
    def worst(self) -> int:
        """Index of the costliest episode."""
        return int(np.argmax(self.episodes.cost))

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON types."""
        cost, ret = self.episodes.cost, self.episodes.ret
        return {
            "epoch": self.epoch,
            "episodes": len(cost),
            "return": {"mean": float(ret.mean()), "std": float(ret.std())},
            "cost": {"mean": float(cost.mean()), "std": float(cost.std()), "limit": self.limit},
            "length": {"mean": float(self.episodes.length.mean())},
            "over_limit": float(np.mean(cost > self.limit)),
            "cvar": {"tail": TAIL, "cost": cvar(cost, TAIL)[0]},
            "worst": {
                "seed": self.seeds[self.worst],
                "cost": float(cost[self.worst]),
                "return": float(ret[self.worst]),
            },
            "certificate": self.certificate.to_dict(),
            "verdict": None if self.verdict is None else _told(self.verdict),
        }


def evaluate(
    path: str | Path,
    episodes: int,
    seed: int = 0,
    sample: bool = False,
    warn: Callable[[str], None] = lambda text: None,
    stop: Callable[[], bool] = lambda: False,
    until: Certify | None = None,
) -> Evaluation:
    """Return what the newest policy of a run does in ``episodes`` whole episodes.

    Parameters
    ----------
    path
        The run folder.
    episodes
        How many.
    seed
        Decides the episodes; evaluation never meets the seeds of training.
    sample
        Draw actions as training does, instead of taking the mean.
    warn
        Hears of damaged and foreign checkpoints that were passed over.
    stop
        Asked before every step; it may raise to end the evaluation.
    until
        Play only until this is certified or shown false, and at most ``episodes``; the bound holds although
        the number of episodes depends on them.
    """
    if episodes < 1:
        raise InputError(f"episodes is {episodes}: at least one is needed.")
    player = load_player(path, warn)
    seeds = episode_seeds(seed, episodes)
    limit, recipe = player.cfg.cost_limit, player.cfg.algo
    envs = make_envs(player.cfg, build_algorithm(player.cfg), budget=player.budget)
    try:
        if until is None:
            outcome, verdict = play(envs, player, seeds, sample, stop), None
        else:
            monitor = Monitor(limit, until.budget, until.delta)
            outcome, verdict = _play_until(envs, player, seeds, sample, stop, monitor)
    finally:
        envs.close()
    own = recipe.certificate_for(limit) if isinstance(recipe, Certified) else None
    certificate = own or Certificate.preset("released", limit=limit)
    found = certificate.evaluate(outcome.cost)
    return Evaluation(player.epoch, tuple(seeds[: len(outcome.cost)]), outcome, limit, found, verdict)


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
            yield from parts[-1].cost.tolist()

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


def load_player(path: str | Path, warn: Callable[[str], None]) -> Player:
    """Return the newest policy of a run folder with its configuration."""
    cfg = stored_config(path)
    checkpoint = policy_checkpoint(path, warn)
    params, seen = checkpoint.tree["policy"], checkpoint.tree["stats"]
    stats = Stats(int(seen["count"]), seen["mean"], seen["m2"])
    policy = {"w": tuple(params["w"]), "b": tuple(params["b"]), "log_std": params["log_std"]}
    # The published codes evaluate with the whole budget, whatever share training had arrived at.
    budget = 1.0 if cfg.algo.is_published else float(checkpoint.tree.get("budget", 1.0))
    mode = FROZEN if cfg.algo.normalise_obs else RAW
    return Player(cfg, checkpoint.epoch, policy, stats, mode, budget)


def episode_seeds(seed: int, episodes: int) -> list[int]:
    """Return one reset seed per evaluation episode; a longer list begins with the shorter one."""
    keys = (np.random.SeedSequence(seed, spawn_key=(i, int(Purpose.EVALUATION))) for i in range(episodes))
    return [int(key.generate_state(1)[0]) for key in keys]


def play(
    envs: TrainerEnv,
    player: Player,
    seeds: Sequence[int],
    sample: bool,
    stop: Callable[[], bool] = lambda: False,
) -> Episodes:
    """Return one whole episode per seed, in the order of ``seeds``.

    Each episode depends on its seed alone, not on its neighbours, so any of them can be played again.
    """
    parts = [
        _wave(envs, player, seeds[first : first + envs.num_envs], sample, stop)
        for first in range(0, len(seeds), envs.num_envs)
    ]
    ret, cost, length = np.concatenate(parts).T
    return Episodes(cost=cost, ret=ret, length=length.astype(np.int64))


def _wave(
    envs: TrainerEnv, player: Player, seeds: Sequence[int], sample: bool, stop: Callable[[], bool]
) -> npt.NDArray[np.float64]:
    """Return (return, cost, length) of the first episode of each environment, as many as there are seeds."""
    shape = (CHUNK, envs.num_envs, *envs.single_action_space.shape)
    everyone = [*seeds, *([seeds[-1]] * (envs.num_envs - len(seeds)))]  # the rest idles along
    first = np.full((envs.num_envs, 3), np.nan)
    carry: Carry | None = None
    for chunk in range(MAX_STEPS // CHUNK):
        noise = np.zeros(shape, np.float32)
        if sample:
            for i, seed in enumerate(everyone):
                noise[:, i] = stream(seed, chunk, Purpose.EVALUATION).standard_normal(noise[:, i].shape)
        rollout, _ = collect(
            envs,
            player.policy,
            player.stats,
            noise,
            mode=player.mode,
            seeds=everyone,
            start=carry,
            stop=stop,
            name=player.cfg.env,
            steps_before=chunk * CHUNK * envs.num_envs,
        )
        carry = rollout.carry
        for (_, env), *outcome in zip(
            rollout.finished_at,
            rollout.episodes.ret,
            rollout.episodes.cost,
            rollout.episodes.length,
            strict=True,
        ):
            if np.isnan(first[env, 0]):
                first[env] = outcome
        if not np.isnan(first[: len(seeds), 0]).any():
            return first[: len(seeds)]
    raise RunError(
        f"An episode of {player.cfg.env} has not ended after {MAX_STEPS} steps; give it a max_episode_steps."
    )
