"""From a rollout to what the learner takes: values of what was seen, advantages, targets for the critics."""

from collections.abc import Callable

import jax
import numpy as np
import numpy.typing as npt

from steingate.algorithms.common.advantages import center, close_paths, gae, standardize
from steingate.algorithms.common.base import Algorithm, Batch, Params
from steingate.algorithms.common.networks import value
from steingate.algorithms.common.recipe import Returns
from steingate.gates.base import Array, Decision, Log
from steingate.training.rollout import Rollout
from steingate.training.rollout_kernels import RUNNING, TERMINATED, TRUNCATED

BLOCK = 64  # rows; more than the matrix product takes at once
Targets = npt.NDArray[np.float32]  # (2, N): reward, cost


@jax.jit
def _values(reward_critic: Params, cost_critic: Params, obs: jax.Array) -> tuple[jax.Array, jax.Array]:
    return value(reward_critic, obs), value(cost_critic, obs)


def values(critics: tuple[Params, Params], obs: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Return both critics' values of the rows of ``obs``: (N, d) to (2, N)."""
    return np.array(_values(*critics, obs), np.float64)


def few_values(critics: tuple[Params, Params], obs: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Return the same for a number of rows that changes from epoch to epoch.

    The rows are padded to a power of two, so that only a handful of shapes is ever compiled.
    """
    return _padded_values(critics, obs, max(BLOCK, 1 << (len(obs) - 1).bit_length()))


def many_values(critics: tuple[Params, Params], obs: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Return the same for a number of rows that stays, to the bit.

    The rows are padded to whole blocks: those of a block that is not full would be rounded differently.
    """
    return _padded_values(critics, obs, -(-len(obs) // BLOCK) * BLOCK)


def _padded_values(
    critics: tuple[Params, Params], obs: npt.NDArray[np.float32], size: int
) -> npt.NDArray[np.float64]:
    padded = np.zeros((size, obs.shape[1]), np.float32)
    padded[: len(obs)] = obs
    return values(critics, padded)[:, : len(obs)]


def tail_costs(
    cost: npt.NDArray[np.float64],
    ended: npt.NDArray[np.bool_],
    spent: npt.NDArray[np.float64] | None,
    tail: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]],
) -> npt.NDArray[np.float64]:
    """Return, for each step, how much ``tail`` of the episode's cost so far rose; (T, E).

    Over an episode the numbers add up to tail(its cost) - tail(0). ``spent`` (E,) is the cost of the running
    episodes before the first step.
    """
    after, before = np.empty_like(cost), np.empty_like(cost)
    running = np.zeros(cost.shape[1]) if spent is None else spent
    for t in range(len(cost)):
        before[t] = running
        after[t] = running + cost[t]
        running = np.where(ended[t], 0.0, after[t])
    return tail(after) - tail(before)


def to_batch(
    rollout: Rollout,
    critics: tuple[Params, Params],
    returns: Returns,
    algo: Algorithm | None = None,
    decision: Decision | None = None,
    spent: npt.NDArray[np.float64] | None = None,
) -> tuple[Batch, Targets, Log]:
    """Return the batch for the policy step, the critics' targets, and how good their predictions were.

    A path that was cut by a time limit goes on with the value of its final observation, one that was cut by
    the end of the epoch with the value of the next, one that terminated with 0.

    Parameters
    ----------
    rollout
        T steps of E environments.
    critics
        Parameters of the reward and the cost critic, as they were when the rollout was collected.
    returns
        Discounts and lambdas.
    algo, decision
        May replace the costs by those of a tail, and let some transitions count more often.
    spent
        (E,) cost of the running episodes before the rollout; 0 by default.
    """
    rewards = rollout.rewards
    if algo is not None and algo.tail is not None and decision is not None:
        tail, decided = algo.tail, decision
        ended = rollout.ends != RUNNING
        costs = tail_costs(rewards[:, 1], ended, spent, lambda running: tail(running, decided))
        rewards = np.stack([rewards[:, 0], costs], axis=1)
    steps, num_envs, obs_dim = rollout.act.shape[0], rollout.act.shape[1], rollout.obs.shape[2]
    seen = (
        many_values(critics, rollout.obs.reshape(-1, obs_dim)).reshape(2, steps + 1, num_envs).swapaxes(0, 1)
    )
    final = np.zeros((2, steps * num_envs))
    if len(rollout.finals):
        final[:, rollout.final_at] = few_values(critics, rollout.finals)
    final = final.reshape(2, steps, num_envs).swapaxes(0, 1)
    terminated = np.repeat((rollout.ends == TERMINATED)[:, None], 2, axis=1)
    truncated = np.repeat((rollout.ends == TRUNCATED)[:, None], 2, axis=1)
    ends, bootstrap = close_paths(terminated, truncated, final, seen[-1])
    discount = np.array([[returns.discount], [returns.cost_discount]])

    def advantages(cost_lam: float) -> tuple[Array, Array]:
        lam = np.array([[returns.lam], [cost_lam]])
        return gae(rewards, seen[:-1], ends, bootstrap, discount=discount, lam=lam)

    error, target = advantages(returns.cost_lam)
    same = returns.cost_adv_lam == returns.cost_lam
    advantage = error if same else advantages(returns.cost_adv_lam)[0]
    reward_adv, cost_adv = advantage[:, 0].ravel(), advantage[:, 1].ravel()
    targets = target.swapaxes(0, 1).reshape(2, -1)
    standard = standardize(reward_adv, returns.trim)
    weight: npt.NDArray[np.float32] | None = None
    replay_log: Log = {}
    if algo is not None and algo.replay is not None:
        standard, weight, replay_log = algo.replay(standard.reshape(steps, num_envs))
    batch = Batch(
        obs=rollout.obs[:-1].reshape(-1, obs_dim),
        act=rollout.act.reshape(steps * num_envs, -1),
        logp=rollout.logp.ravel(),
        adv=standard.astype(np.float32),
        cost_adv=center(cost_adv).astype(np.float32),
        weight=weight,
        scale=float(reward_adv.std()),
    )
    cost_error = error[:, 1].ravel()
    log = {**_fit("reward", reward_adv, targets[0]), **_fit("cost", cost_error, targets[1]), **replay_log}
    return batch, targets.astype(np.float32), log


def _fit(name: str, error: npt.NDArray[np.float64], target: npt.NDArray[np.float64]) -> Log:
    """Return how well a critic predicted this epoch's targets, before it was fitted to them."""
    spread = float(target.var())
    return {
        f"critic/{name}_value": float(np.mean(target - error)),
        f"critic/{name}_error": float(np.sqrt(np.mean(error**2))),
        f"critic/{name}_explained": 1.0 - float(error.var()) / spread if spread > 0.0 else 0.0,
    }
