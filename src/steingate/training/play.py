"""Whole episodes of one fixed policy: the collection code of training with frozen statistics."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from steingate.algorithms.common.base import Params
from steingate.errors import RunError
from steingate.gates.base import Episodes
from steingate.policies.action_distribution import choice_of, outputs
from steingate.policies.normalizer import Stats
from steingate.training.config import RunConfig
from steingate.training.environment import TrainerEnv
from steingate.training.rollout import Carry, collect
from steingate.training.rollout_kernels import FROZEN, OFF
from steingate.training.seeding import Purpose, stream

CHUNK = 100  # vector steps per rollout
MAX_STEPS = 1_000_000


class Player(NamedTuple):
    """What acts: a policy and the observation statistics it was trained with."""

    cfg: RunConfig
    epoch: int
    policy: Params
    stats: Stats
    mode: int
    budget: float = 1.0  # share of its budget that an episode may spend
    which: str = "last"  # or "certified"


class EndlessError(RunError):
    """An episode did not end in the steps it was given."""


def make_player(cfg: RunConfig, epoch: int, policy: Params, stats: Stats, budget: float) -> Player:
    """Return the player for a policy of a run, with what training had arrived at after ``epoch`` epochs."""
    params = {name: tuple(value) if name in ("w", "b") else value for name, value in policy.items()}
    mode = FROZEN if cfg.algo.normalize_obs else OFF
    # The published codes evaluate with the whole budget, whatever share training had arrived at.
    return Player(cfg, epoch, params, stats, mode, 1.0 if cfg.algo.is_published else float(budget))


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

    Each episode depends on its seed alone, not on its neighbors, so any of them can be played again.

    Parameters
    ----------
    envs
        Where; as many episodes run together as there are environments.
    player
        Who acts.
    seeds
        One per episode.
    sample
        Draw actions instead of taking the mean.
    stop
        Asked before every step; true abandons all with ``RolloutStoppedError``.
    chunk
        Vector steps between two looks at what has finished; sampled actions depend on it.
    max_steps
        An episode that takes longer is an ``EndlessError``; a million by default.
    """
    parts = [
        _wave(envs, player, seeds[first : first + envs.num_envs], sample, stop, chunk, max_steps or MAX_STEPS)
        for first in range(0, len(seeds), envs.num_envs)
    ]
    ret, cost, length = np.concatenate(parts).T
    return Episodes(cost=cost, ret=ret, length=length.astype(np.int64))


def _wave(
    envs: TrainerEnv,
    player: Player,
    seeds: Sequence[int],
    sample: bool,
    stop: Callable[[], bool],
    chunk: int,
    max_steps: int,
) -> npt.NDArray[np.float64]:
    """Return (return, cost, length) of the first episode of each environment, as many as there are seeds."""
    space = envs.single_action_space
    shape = (chunk, envs.num_envs, outputs(space))
    everyone = [*seeds, *([seeds[-1]] * (envs.num_envs - len(seeds)))]  # the rest idles along
    first = np.full((envs.num_envs, 3), np.nan)
    carry: Carry | None = None
    for number in range(-(-max_steps // chunk)):
        noise = np.zeros(shape, np.float32)
        if sample:
            for i, seed in enumerate(everyone):
                rng = stream(seed, number, Purpose.EVALUATION)
                draw = rng.standard_normal if choice_of(space) is None else rng.gumbel
                noise[:, i] = draw(size=noise[:, i].shape)
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
            steps_before=number * chunk * envs.num_envs,
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
    raise EndlessError(
        f"An episode of {player.cfg.env} has not ended after {max_steps} steps; give it a max_episode_steps."
    )
