"""EVO's two uses of stored samples: transitions that count more often, episodes that are remembered."""

from typing import Any, NamedTuple

import jax
import numpy as np
import numpy.typing as npt

from steingate.algorithms.common.base import Memory, Params, Seen
from steingate.algorithms.common.heads import log_prob
from steingate.algorithms.common.sizes import Replay
from steingate.gates.base import Log
from steingate.gates.tail import pareto_quantile


class Steps(NamedTuple):
    """Steps of whole episodes, one after the other."""

    obs: npt.NDArray[np.float32]
    act: npt.NDArray[np.float32]
    logp: npt.NDArray[np.float32]


class Remembered(NamedTuple):
    """State of the memory: steps and lengths of the episodes kept, and of those still running."""

    steps: Steps
    lengths: npt.NDArray[np.int64]
    running: tuple[Steps, ...]


def replay_extremes(
    adv: npt.NDArray[np.floating[Any]], cfg: Replay
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float32] | None, Log]:
    """Return the reward advantages to follow and how often each transition counts, both (T * E,).

    A transition whose advantage, in ``adv`` (T, E), reaches the fitted extreme counts ``1 + copies`` times:
    that is what storing it as often does, in every mean over the batch. Choosing transitions by what was
    earned makes some actions more frequent than the policy does, so a cost surrogate over the copies no
    longer estimates the policy's cost, and descending it can raise the cost. Therefore the copies enter the
    mean of the reward surrogate only, unless ``everywhere`` asks for the published behavior.
    """
    cfg = cfg.resolved()
    advantage = np.asarray(adv, np.float64)
    by_environment = advantage.T.ravel()
    seen = by_environment if cfg.whole_epoch else by_environment[-cfg.buffer :]
    threshold, fitted = 0.0, True
    if np.any(seen):
        quantile = min(max(cfg.quantile, 0.2), 0.9)
        threshold, fitted = pareto_quantile(seen, cfg.percentile, quantile, cfg.free_location)
    chosen = advantage.ravel() >= threshold
    log = {
        "replay/threshold": threshold,
        "replay/share": float(chosen.mean()),
        "replay/fit_failed": float(not fitted),
    }
    weight = 1.0 + cfg.copies * chosen
    if cfg.everywhere:
        return advantage.ravel(), weight.astype(np.float32), log
    return advantage.ravel() * weight / weight.mean(), None, log


@jax.jit
def _log_prob(params: Params, obs: Any, act: Any) -> Any:
    return log_prob(params, obs, act)


def _no_steps(obs_dim: int, act_dim: int) -> Steps:
    empty = np.zeros(0, np.float32)
    return Steps(np.zeros((0, obs_dim), np.float32), np.zeros((0, act_dim), np.float32), empty)


def _joined(*parts: Steps) -> Steps:
    return Steps(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def episode_memory(capacity: int) -> Memory[Remembered]:
    """Return a memory of the last ``capacity`` whole episodes, of any lengths and from any number of envs.

    ``recall(state, params, seen, finished_at, carries)`` takes the steps of a rollout, (T, E, ...) each, and
    the places (step, environment) where its episodes finished, in order. It returns, for each episode
    remembered then, the summed log-probability of its actions under ``params`` minus that when they were
    taken, which is 0 for those of this rollout alone. With ``carries`` an episode may
    have begun in an earlier rollout.
    """

    def init(num_envs: int, obs_dim: int, act_dim: int) -> Remembered:
        nothing = _no_steps(obs_dim, act_dim)
        return Remembered(nothing, np.zeros(0, np.int64), (nothing,) * num_envs)

    def recall(
        state: Remembered, params: Params, seen: Seen, finished_at: npt.NDArray[np.int64], carries: bool
    ) -> tuple[npt.NDArray[np.float64], Remembered]:
        rollout = Steps(*seen)
        steps, num_envs = rollout.logp.shape
        running, begun = list(state.running), [0] * num_envs

        def path(env: int, end: int) -> Steps:
            return _joined(running[env], Steps(*(array[begun[env] : end, env] for array in rollout)))

        fresh = []
        for step, env in finished_at:
            fresh.append(path(env, step + 1))
            begun[env], running[env] = step + 1, _no_steps(rollout.obs.shape[2], rollout.act.shape[2])
        rest = tuple(path(env, steps) if carries else running[env] for env in range(num_envs))
        lengths = np.append(state.lengths, [len(one.logp) for one in fresh]).astype(np.int64)
        dropped = int(lengths[:-capacity].sum())
        kept = Steps(*(array[dropped:] for array in _joined(state.steps, *fresh)))
        lengths = lengths[-capacity:]
        ratio = np.zeros(len(lengths))
        # An episode that began under an earlier policy is not all of this one's.
        old = len(lengths) if carries else max(len(lengths) - len(fresh), 0)
        if old:
            ratio[:old] = _log_ratios(kept, lengths[:old], params)
        return ratio, Remembered(kept, lengths, rest)

    return Memory(init, recall)


def _log_ratios(steps: Steps, lengths: npt.NDArray[np.int64], params: Params) -> npt.NDArray[np.float64]:
    """Return the summed log ratio of the first episodes in ``steps``, one for each length."""
    rows = int(lengths.sum())
    size = max(64, 1 << (rows - 1).bit_length())  # few shapes, so that little is compiled
    obs = np.zeros((size, steps.obs.shape[1]), np.float32)
    act = np.zeros((size, steps.act.shape[1]), np.float32)
    obs[:rows], act[:rows] = steps.obs[:rows], steps.act[:rows]
    change = np.asarray(_log_prob(params, obs, act), np.float64)[:rows] - steps.logp[:rows]
    return np.add.reduceat(change, np.append(0, np.cumsum(lengths)[:-1]))
