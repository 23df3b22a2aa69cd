"""Playing whole episodes with a policy of a run, one reset seed per episode."""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from os import PathLike
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from steingate.algorithms.base import Episodes, Params
from steingate.errors import RunError, is_real
from steingate.policies.action_space import discrete_actions, n_outputs
from steingate.policies.load import Which, choose_checkpoint, load_policy, policy_arrays
from steingate.policies.normalizer import Stats
from steingate.policies.policy import Policy
from steingate.policies.zoo import run_folder
from steingate.runs import read_evidence
from steingate.storage.checkpoint import Checkpoint
from steingate.training.config import RunConfig
from steingate.training.config_file import load_run_config
from steingate.training.environment import TrainerEnv, source_digest
from steingate.training.rollout import Carry, collect
from steingate.training.rollout_kernels import FROZEN, OFF, TRUNCATED
from steingate.training.seeding import Purpose, stream

CHUNK = 100  # vector steps per rollout
MAX_STEPS = 10_000  # of an episode, if neither the task nor an epoch of training allows more


class EpisodeTooLongError(RunError):
    """An episode did not end within the maximum number of steps."""


class Player(NamedTuple):
    """A policy of a run, and what is needed to play episodes with it."""

    cfg: RunConfig
    epoch: int  # policy updates before this policy
    policy: Params
    stats: Stats  # of observations; frozen
    cost_budget_fraction: float = 1.0  # of the environments
    which: str = "last"  # or "certified"
    sha256: str = ""


def make_player(cfg: RunConfig, epoch: int, policy: Params, stats: Stats, cost_budget_fraction: float) -> Player:
    """Return the player of a policy after ``epoch`` epochs of a run."""
    params = {name: tuple(value) if name in ("w", "b") else value for name, value in policy.items()}
    # The published codes evaluate with the whole budget, whatever fraction training used last.
    return Player(cfg, epoch, params, stats, 1.0 if cfg.algo.is_published else float(cost_budget_fraction))


def stored_player(cfg: RunConfig, checkpoint: Checkpoint, which: Which = "certified") -> Player:
    """Return the player of the policy in a checkpoint of the run."""
    tree, stats = checkpoint.tree, checkpoint.tree["stats"]
    fraction = tree.get("cost_budget_fraction", 1.0)
    if not is_real(fraction) or not 0.0 <= fraction < inf:
        raise RunError(f"Checkpoint {checkpoint.path} is unusable: cost_budget_fraction is {fraction!r}.")
    stats = Stats(int(stats["count"]), stats["mean"], stats["m2"])
    player = make_player(cfg, checkpoint.epoch, tree["policy"], stats, fraction)
    return player._replace(which=which, sha256=Policy(policy_arrays(checkpoint)).sha256)


def bundled_player(cfg: RunConfig, policy: Policy, evidence: Mapping[str, Any]) -> Player:
    """Return the player of the policy of an evidence bundle, from the content of ``evidence.json``."""
    weights, biases = zip(*policy.layers, strict=True)
    network: Params = {"w": weights, "b": biases}
    if policy.array("log_std").size:
        network["log_std"] = policy.array("log_std")
    mean, std = policy.array("obs_mean"), policy.array("obs_std")
    # Statistics of two observations whose standard deviation is std, bit for bit: sqrt(x * x) = x.
    stats = Stats(2, mean, std * std) if mean.size else Stats(0, *np.zeros((2, weights[0].shape[0])))
    try:
        epoch, fraction = int(evidence["policy"]["epoch"]), float(evidence["replay"]["cost_budget_fraction"])
    except (KeyError, TypeError, ValueError):
        raise RunError("evidence.json is damaged: run `steingate evidence verify` on its folder.") from None
    return Player(cfg, epoch, network, stats, fraction, "certified" if policy.certified else "last", policy.sha256)


def load_player(
    path: str | PathLike[str], warn: Callable[[str], None], policy: Which | None = None, env: Any = None,
    trust_code: bool = False,
) -> Player:  # fmt: skip
    """Return the player of a run folder's policy; arguments as in ``evaluate``."""
    path = run_folder(path)
    cfg = load_run_config(path, env, trust_code)
    evidence = read_evidence(path)
    if evidence is not None:
        return bundled_player(cfg, load_policy(path, policy, warn), evidence)
    checkpoint, which = choose_checkpoint(path, policy, warn)
    source = source_digest(cfg.env)
    if source is not None and source != checkpoint.tree.get("env_source"):
        changed = f"The source file of {cfg.env} has changed since this policy was stored"
        warn(f"{changed}: certificates are for the old one.")
    return stored_player(cfg, checkpoint, which)


def play(
    envs: TrainerEnv, player: Player, seeds: Sequence[int], sample: bool, stop: Callable[[], bool] = lambda: False,
    chunk: int = CHUNK, max_steps: int | None = None, marks: list[int] | None = None,
) -> Episodes:  # fmt: skip
    """Return one whole episode per seed, in the order of ``seeds``.

    Each episode depends on its seed only, so any of them can be played again.

    Parameters
    ----------
    envs, player : a vector environment, whose episodes run at the same time, and the policy
    seeds, sample : one reset seed per episode, and whether to sample actions instead of taking the mean
    stop : called before every step; if it returns true, ``RolloutStoppedError`` is raised
    chunk : vector steps per rollout; sampled actions depend on it
    max_steps : a longer episode raises an ``EpisodeTooLongError``; by default ``MAX_STEPS``, or as many as episodes of
        training may have
    marks : gets a checksum of each episode: of its observations, return, cost and length
    """
    cfg, num_envs = player.cfg, envs.num_envs
    longest = 100 * cfg.horizon if cfg.carry_episodes else cfg.horizon
    most = max_steps or max(MAX_STEPS, longest, cfg.time_limit or 0)
    groups = (seeds[first : first + num_envs] for first in range(0, len(seeds), num_envs))
    rows = [_play_together(envs, player, group, sample, stop, chunk, most) for group in groups]
    ret, cost, length, cut, seen = np.concatenate(rows).T
    if marks is not None:
        marks += [hash(row) for row in zip(ret.tolist(), cost.tolist(), length.tolist(), seen.tolist(), strict=True)]
    return Episodes(cost=cost, ret=ret, length=length.astype(np.int64), truncated=cut == 1.0)


def _play_together(
    envs: TrainerEnv, player: Player, seeds: Sequence[int], sample: bool, stop: Callable[[], bool], chunk: int,
    max_steps: int,
) -> npt.NDArray[np.float64]:  # fmt: skip
    """Return (return, cost, length, truncated, checksum of observations) of the first episode of each environment."""
    space, mode = envs.single_action_space, FROZEN if player.cfg.algo.networks.normalize_obs else OFF
    padded = [*seeds, *([seeds[-1]] * (envs.num_envs - len(seeds)))]  # unused environments run along
    first = np.full((envs.num_envs, 5), np.nan)
    carry: Carry | None = None
    for number in range(-(-max_steps // chunk)):
        noise = np.zeros((chunk, envs.num_envs, n_outputs(space)), np.float32)
        for i, seed in enumerate(padded if sample else ()):
            rng = stream(seed, number, Purpose.EVALUATION)
            draw = rng.standard_normal if discrete_actions(space) is None else rng.gumbel
            noise[:, i] = draw(size=noise[:, i].shape)
        rollout, _ = collect(
            envs, player.policy, player.stats, noise, mode=mode, seeds=padded, carry=carry, stop=stop,
            name=player.cfg.env, steps_before=number * chunk * envs.num_envs,
        )  # fmt: skip
        carry, done = rollout.carry, rollout.episodes
        if number == 0:
            ends = dict(reversed([(int(env), int(t)) for t, env in rollout.finished_at]))
            for env in range(envs.num_envs):
                first[env, 4] = crc32(rollout.obs[: ends.get(env, chunk) + 1, env].tobytes())
        for (t, env), *outcome in zip(rollout.finished_at, done.ret, done.cost, done.length, strict=True):
            if np.isnan(first[env, 0]):
                first[env, :4] = *outcome, rollout.ends[t, env] == TRUNCATED
        if not np.isnan(first[: len(seeds), 0]).any():
            return first[: len(seeds)]
    raise EpisodeTooLongError(
        f"An episode of {player.cfg.env} has not ended after {max_steps} steps. Without finished episodes their cost "
        "is unknown: train with a time limit, such as --env-options max_episode_steps=200."
    )
