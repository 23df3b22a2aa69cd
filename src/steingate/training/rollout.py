"""Rollouts: T steps of E environments with a fixed policy, finished episodes, observation statistics."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from steingate.algorithms.base import Episodes, Params
from steingate.errors import InputError
from steingate.policies.action_space import action_map, discrete_actions
from steingate.policies.normalizer import Stats
from steingate.training import rollout_kernels as kernels
from steingate.training.env_errors import EnvErrors
from steingate.training.environment import TrainerEnv
from steingate.training.stop import RolloutStoppedError

HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)


class Carry(NamedTuple):
    """State of the running episodes between two rollouts: last observation (normalized) and totals so far."""

    obs: npt.NDArray[np.float32]  # (E, d)
    totals: npt.NDArray[np.float64]  # (E, 3): return, cost, length


class Rollout(NamedTuple):
    """T steps of E environments, and what is needed to bootstrap the paths that were cut."""

    obs: npt.NDArray[np.float32]  # (T + 1, E, d), normalized; the last row follows the last step
    act: npt.NDArray[np.float32]  # (T, E, a) as sampled, in policy space; (T, E, 1) indices if discrete
    logp: npt.NDArray[np.float32]  # (T, E)
    rewards: npt.NDArray[np.float64]  # (T, 2, E): reward, cost
    ends: npt.NDArray[np.uint8]  # (T, E): RUNNING, TERMINATED, TRUNCATED
    finals: npt.NDArray[np.float32]  # (n, d) final observations of truncated episodes, normalized
    final_at: npt.NDArray[np.int64]  # (n,) their indices in the flattened (T, E)
    episodes: Episodes  # finished in this rollout
    finished_at: npt.NDArray[np.int64]  # (episodes, 2): step t and environment
    carry: Carry


def collect(
    envs: TrainerEnv, policy: Params, stats: Stats, noise: npt.NDArray[np.float32], *, mode: int = kernels.UPDATE,
    seeds: Sequence[int] | None = None, carry: Carry | None = None, stop: Callable[[], bool] = lambda: False,
    name: str = "the environment", steps_before: int = 0, error_hint: str = "",
) -> tuple[Rollout, Stats]:  # fmt: skip
    """Return a rollout of ``len(noise)`` vector steps, and the observation statistics after it.

    Parameters
    ----------
    envs : a vector environment; if its reward is not the task's own, which episode returns count, that is
        ``info["original_reward"]``
    policy, stats : parameters of the policy, and observation statistics before the rollout; not modified
    noise : (T, E, a) standard normal numbers, or Gumbel numbers for discrete actions; zeros give the mean (most likely)
        action
    mode : observation normalization: ``UPDATE`` the statistics and normalize, ``FROZEN`` to normalize only, or ``OFF``
    seeds, carry : one reset seed per environment, or the episodes of an earlier rollout that continue
    stop : called before every step; if it returns true, the rollout ends with ``RolloutStoppedError``
    name, steps_before, error_hint : for error messages: the environment, the number of steps taken before, and an
        additional clause
    """
    steps, num_envs, act_dim = noise.shape
    discrete = discrete_actions(envs.single_action_space) is not None
    act_dim = 1 if discrete else act_dim
    obs_dim = len(policy["w"][0])  # features beyond those of the statistics are not normalized
    count, mean, m2 = np.array([stats.count], np.int64), stats.mean.copy(), stats.m2.copy()
    weights, sizes, std = kernels.flat_policy(policy)
    shift, scale = action_map(envs.single_action_space)

    # New arrays each time: the critics may still read the last rollout on another thread.
    obs = np.empty((steps + 1, num_envs, obs_dim), np.float32)
    actions = np.empty((steps, num_envs, act_dim), np.float32)
    rewards = np.empty((steps, 2, num_envs))
    ends = np.empty((steps, num_envs), np.uint8)
    finals = np.empty((steps * num_envs, obs_dim), np.float32)
    final_at = np.empty(steps * num_envs, np.int64)
    episodes = np.empty((steps * num_envs, 5))
    totals = np.zeros((num_envs, 3)) if carry is None else carry.totals.copy()
    counters = np.zeros(2, np.int64)
    logp = np.empty((steps, num_envs), np.float32)
    command = np.empty((num_envs, act_dim), np.int64 if discrete else np.float64)
    sent: Any = command[:, 0] if discrete else command
    scratch = np.empty((2, num_envs, int(sizes[1:].max())), np.float32)
    buffers = (
        count, mean, m2, weights, sizes, std, shift, scale, noise, obs, actions, rewards, ends, finals,
        final_at, episodes, totals, np.zeros(num_envs, np.bool_), np.ones(num_envs, np.bool_), counters,
        logp, command, scratch, np.empty((2, stats.mean.size)),
    )  # fmt: skip
    advance, step = kernels.advance, envs.step
    zeros, never = np.zeros(num_envs), np.zeros(num_envs, np.bool_)

    with EnvErrors(envs, name, steps_before, error_hint) as errors:
        if carry is None:
            raw, _ = envs.reset(seed=None if seeds is None else list(seeds))
            if raw.shape[1] != obs_dim:
                raise InputError(f"Observations of {name} have {raw.shape[1]} numbers; the policy expects {obs_dim}.")
            errors.check(advance(0, mode, raw, zeros, zeros, zeros, never, never, raw, *buffers))
        else:
            obs[0] = carry.obs
            kernels.act(0, obs, noise, weights, sizes, std, shift, scale, actions, logp, command, scratch)
        for t in range(1, steps + 1):
            if stop():
                raise RolloutStoppedError
            errors.t = t
            raw, reward, terminated, truncated, info = step(sent)
            earned, final = info.get("original_reward", reward), info.get("final_obs", raw)
            bad = advance(t, mode, raw, reward, earned, info["cost"], terminated, truncated, final, *buffers)
            if bad:
                errors.check(bad, info["cost"])

    finished, cut = counters.tolist()
    done = episodes[:finished]  # step, environment, return, cost, length
    length = done[:, 4].astype(np.int64)
    start = done[:, 0].astype(np.int64) + 1 - length  # negative if the episode began in an earlier rollout
    rollout = Rollout(
        obs=obs, act=actions, logp=logp if discrete else _log_prob(noise, policy["log_std"]),
        rewards=rewards, ends=ends, finals=finals[:cut].copy(), final_at=final_at[:cut].copy(),
        episodes=Episodes(cost=done[:, 3].copy(), ret=done[:, 2].copy(), length=length, start=start),
        finished_at=done[:, :2].astype(np.int64), carry=Carry(obs[-1].copy(), totals),
    )  # fmt: skip
    return rollout, Stats(int(count[0]), mean, m2)


def _log_prob(noise: npt.NDArray[np.float32], log_std: Any) -> npt.NDArray[np.float32]:
    """Return the log-density of mean + std * noise, in which the mean cancels."""
    constant = np.sum(log_std, dtype=np.float64) + noise.shape[-1] * HALF_LOG_2PI
    return (-0.5 * np.sum(np.square(noise, dtype=np.float64), axis=-1) - constant).astype(np.float32)
