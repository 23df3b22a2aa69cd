"""From a rollout to what the learner takes: values of what was seen, advantages, targets for the critics."""

import jax
import numpy as np
import numpy.typing as npt

from steingate.algos.advantages import centre, close_paths, gae, standardise
from steingate.algos.base import Batch, Params
from steingate.algos.networks import value
from steingate.gates.base import Log
from steingate.training.collect import Rollout
from steingate.training.collect_kernels import TERMINATED, TRUNCATED
from steingate.training.config import RunConfig

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
    rows = len(obs)
    padded = np.zeros((max(64, 1 << (rows - 1).bit_length()), obs.shape[1]), np.float32)
    padded[:rows] = obs
    return values(critics, padded)[:, :rows]


def to_batch(rollout: Rollout, critics: tuple[Params, Params], cfg: RunConfig) -> tuple[Batch, Targets, Log]:
    """Return the batch for the policy step, the critics' targets, and how good their predictions were.

    A path that was cut by a time limit goes on with the value of its final observation, one that was cut by
    the end of the epoch with the value of the next, one that terminated with 0.

    Parameters
    ----------
    rollout
        T steps of E environments.
    critics
        Parameters of the reward and the cost critic, as they were when the rollout was collected.
    cfg
        Gives discounts and lambdas.
    """
    steps, num_envs, obs_dim = rollout.act.shape[0], rollout.act.shape[1], rollout.obs.shape[2]
    seen = (
        few_values(critics, rollout.obs.reshape(-1, obs_dim)).reshape(2, steps + 1, num_envs).swapaxes(0, 1)
    )
    final = np.zeros((2, steps * num_envs))
    if len(rollout.finals):
        final[:, rollout.final_at] = few_values(critics, rollout.finals)
    final = final.reshape(2, steps, num_envs).swapaxes(0, 1)
    terminated = np.repeat((rollout.ends == TERMINATED)[:, None], 2, axis=1)
    truncated = np.repeat((rollout.ends == TRUNCATED)[:, None], 2, axis=1)
    ends, bootstrap = close_paths(terminated, truncated, final, seen[-1])
    advantage, target = gae(
        rollout.rewards,
        seen[:-1],
        ends,
        bootstrap,
        discount=np.array([[cfg.discount], [cfg.cost_discount]]),
        lam=np.array([[cfg.lam], [cfg.cost_lam]]),
    )
    reward_adv, cost_adv = advantage[:, 0].ravel(), advantage[:, 1].ravel()
    targets = target.swapaxes(0, 1).reshape(2, -1)
    batch = Batch(
        obs=rollout.obs[:-1].reshape(-1, obs_dim),
        act=rollout.act.reshape(steps * num_envs, -1),
        logp=rollout.logp.ravel(),
        adv=standardise(reward_adv).astype(np.float32),
        cost_adv=centre(cost_adv).astype(np.float32),
    )
    log = {**_fit("reward", reward_adv, targets[0]), **_fit("cost", cost_adv, targets[1])}
    return batch, targets.astype(np.float32), log


def _fit(name: str, error: npt.NDArray[np.float64], target: npt.NDArray[np.float64]) -> Log:
    """Return how well a critic predicted this epoch's targets, before it was fitted to them."""
    spread = float(target.var())
    return {
        f"critic/{name}_value": float(np.mean(target - error)),
        f"critic/{name}_error": float(np.sqrt(np.mean(error**2))),
        f"critic/{name}_explained": 1.0 - float(error.var()) / spread if spread > 0.0 else 0.0,
    }
