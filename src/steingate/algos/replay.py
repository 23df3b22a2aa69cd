"""EVO's two uses of stored samples: transitions that count more often, episodes that are remembered."""

from dataclasses import dataclass, replace
from math import inf
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from steingate.algos.base import Memory, Params, State
from steingate.algos.networks import log_prob
from steingate.errors import require_between, require_positive
from steingate.gates.base import Log
from steingate.gates.tail import pareto_quantile


@dataclass(frozen=True)
class Replay:
    """Which transitions count more often, and how often; the flags are where the published code differs."""

    copies: int = 4  # further copies of each chosen transition
    percentile: float = 90.0
    quantile: float = 0.5  # of the excess fitted above the percentile
    buffer: int = 100  # transitions that are looked at; published: the last of the last environment
    whole_epoch: bool = True  # look at all transitions instead
    everywhere: bool = False  # copies also enter the cost surrogate, the KL and the critics
    free_location: bool = False

    def __post_init__(self) -> None:
        require_positive(self, "buffer")
        require_between(self, 0, inf, "copies")
        require_between(self, 0.0, 100.0, "percentile")
        require_between(self, 0.0, 1.0, "quantile")

    def published(self) -> "Replay":
        """Return the behaviour of the released code."""
        return replace(self, whole_epoch=False, everywhere=True, free_location=True)


def replay_extremes(
    adv: npt.NDArray[np.floating[Any]], cfg: Replay
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float32] | None, Log]:
    """Return the reward advantages to follow and how often each transition counts, both (T * E,).

    A transition whose advantage, in ``adv`` (T, E), reaches the fitted extreme counts ``1 + copies`` times:
    that is what storing it as often does, in every mean over the batch. Choosing transitions by what was
    earned makes some actions more frequent than the policy does, so a cost surrogate over the copies no
    longer estimates the policy's cost, and descending it can raise the cost. Therefore the copies enter the
    mean of the reward surrogate only, unless ``everywhere`` asks for the published behaviour.
    """
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


def _no_steps(obs_dim: int, act_dim: int) -> dict[str, Any]:
    return {
        "obs": np.zeros((0, obs_dim), np.float32),
        "act": np.zeros((0, act_dim), np.float32),
        "logp": np.zeros(0, np.float32),
    }


def _joined(*parts: dict[str, Any]) -> dict[str, Any]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def episode_memory(capacity: int) -> Memory:
    """Return a memory of the last ``capacity`` whole episodes, of any lengths and from any number of envs.

    ``recall(state, params, obs, act, logp, finished_at, carries)`` takes a rollout, (T, E, ...) each, and the
    places (step, environment) where its episodes finished, in order. It returns, for each episode remembered
    then, the summed log-probability of its actions under ``params`` less that when they were taken, which is
    0 for those of this rollout alone. With ``carries`` an episode may have begun in an earlier rollout.
    """

    def init(num_envs: int, obs_dim: int, act_dim: int) -> State:
        nothing = _no_steps(obs_dim, act_dim)
        return {"steps": nothing, "lengths": np.zeros(0, np.int64), "running": [dict(nothing)] * num_envs}

    def recall(
        state: State, params: Params, obs: Any, act: Any, logp: Any, finished_at: Any, carries: bool
    ) -> tuple[npt.NDArray[np.float64], State]:
        rollout = {"obs": obs, "act": act, "logp": logp}
        running, begun = list(state["running"]), [0] * obs.shape[1]

        def path(env: int, end: int) -> dict[str, Any]:
            part = {name: array[begun[env] : end, env] for name, array in rollout.items()}
            return _joined(running[env], part)

        fresh = []
        for step, env in finished_at:
            fresh.append(path(env, step + 1))
            begun[env], running[env] = step + 1, _no_steps(obs.shape[2], act.shape[2])
        rest = [path(env, len(obs)) if carries else running[env] for env in range(obs.shape[1])]
        lengths = np.append(state["lengths"], [len(one["logp"]) for one in fresh]).astype(np.int64)
        steps = _joined(state["steps"], *fresh)
        dropped = int(lengths[:-capacity].sum())
        kept = {name: array[dropped:] for name, array in steps.items()}
        lengths = lengths[-capacity:]
        ratio = np.zeros(len(lengths))
        # An episode that began under an earlier policy is not all of this one's.
        old = len(lengths) if carries else max(len(lengths) - len(fresh), 0)
        if old:
            ratio[:old] = _log_ratios(kept, lengths[:old], params)
        return ratio, {"steps": kept, "lengths": lengths, "running": rest}

    return Memory(init, recall)


def _log_ratios(
    steps: dict[str, Any], lengths: npt.NDArray[np.int64], params: Params
) -> npt.NDArray[np.float64]:
    """Return the summed log ratio of the first episodes in ``steps``, one for each length."""
    rows = int(lengths.sum())
    size = max(64, 1 << (rows - 1).bit_length())  # few shapes, so that little is compiled
    obs = np.zeros((size, steps["obs"].shape[1]), np.float32)
    act = np.zeros((size, steps["act"].shape[1]), np.float32)
    obs[:rows], act[:rows] = steps["obs"][:rows], steps["act"][:rows]
    change = np.asarray(_log_prob(params, obs, act), np.float64)[:rows] - steps["logp"][:rows]
    return np.add.reduceat(change, np.append(0, np.cumsum(lengths)[:-1]))
