"""From a rollout to training data: batch of the policy update, targets of the critics."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from steingate.algorithms.base import Array, Batch, CostAdvantageConfig, Metrics, OnPolicyAlgorithm, RunContext, State
from steingate.algorithms.common.advantages import (
    gae,
    overconfidence_penalty,
    saturation_penalty,
    standardize,
)
from steingate.algorithms.common.critics import Critics, values
from steingate.training.rollout import Rollout
from steingate.training.rollout_kernels import RUNNING, TERMINATED, TRUNCATED

Targets = npt.NDArray[np.float32]  # (2, N): reward, cost


def compute_targets(
    rollout: Rollout, critics: Critics, algorithm: OnPolicyAlgorithm, context: RunContext, state: State,
    costs_before: Array | None = None,
) -> tuple[Batch, Targets, Metrics]:  # fmt: skip
    """Return the batch of the policy update, the critics' targets, and metrics of the critics' predictions.

    A path that a time limit truncated is bootstrapped with the value of its final observation, one that the end of the
    epoch cut with the value of the next observation, a terminated one with 0.

    ``critics`` are as they were when the rollout was collected; ``context`` and ``state`` are those of the algorithm.
    ``costs_before`` (E,) is the cost of the running episodes before the rollout; 0 by default.
    """
    config, costs = algorithm.advantages, algorithm.cost_advantages or CostAdvantageConfig()
    rewards = rollout.rewards
    transform = algorithm.cost_transform(context, state)
    if transform is not None:
        transformed = transformed_costs(rewards[:, 1], rollout.ends != RUNNING, costs_before, transform)
        rewards = np.stack([rewards[:, 0], transformed], axis=1)
    (steps, num_envs), obs_dim = rollout.ends.shape, rollout.obs.shape[2]
    value = values(critics, rollout.obs.reshape(-1, obs_dim)).reshape(2, steps + 1, num_envs).swapaxes(0, 1)
    final = np.zeros((2, steps * num_envs))
    if len(rollout.finals):
        final[:, rollout.final_at] = values(critics, rollout.finals, varying=True)
    final = final.reshape(2, steps, num_envs).swapaxes(0, 1)
    terminated, truncated = ((rollout.ends == kind)[:, None] for kind in (TERMINATED, TRUNCATED))
    gamma = np.array([[config.gamma], [costs.cost_gamma]])

    def estimate(cost_lambda: float) -> tuple[Array, Array]:
        gae_lambda = np.array([[config.gae_lambda], [cost_lambda]])
        return gae(rewards, value, terminated, truncated, final, gamma, gae_lambda)

    error, target = estimate(costs.cost_gae_lambda)
    advantage = error if costs.adv_lambda == costs.cost_gae_lambda else estimate(costs.adv_lambda)[0]
    reward_adv, cost_adv = advantage[:, 0].ravel(), advantage[:, 1].ravel()
    targets = target.swapaxes(0, 1).reshape(2, -1)
    standardized, adv_std = standardize(reward_adv, config.advantage_clip)
    shaped, weight, metrics = algorithm.shape_advantages(standardized.reshape(steps, num_envs))
    batch = Batch(
        obs=rollout.obs[:-1].reshape(-1, obs_dim), act=rollout.act.reshape(steps * num_envs, -1),
        logp=rollout.logp.ravel(), adv=shaped.ravel().astype(np.float32),
        cost_adv=(cost_adv - cost_adv.mean()).astype(np.float32), weight=weight, adv_std=adv_std,
    )  # fmt: skip
    metrics = {
        **_fit_metrics("Reward", reward_adv, targets[0]),
        **_fit_metrics("Cost", error[:, 1].ravel(), targets[1]),
        **metrics,
    }
    return batch, targets.astype(np.float32), metrics


def penalize_saturation(
    batch: Batch, coef: float, noise: npt.NDArray[np.float32], log_std: Array | None, logits: Array | None
) -> Batch:
    """Return the batch with ``coef`` times the penalty on saturated policies subtracted from the advantages.

    ``noise`` (N, a) and ``log_std`` are those of a Gaussian policy, ``logits`` (N, n_actions) those of a categorical
    one.
    """
    if logits is None:
        penalty = saturation_penalty(batch.act, noise, log_std)
    else:
        penalty = overconfidence_penalty(batch.act, np.asarray(logits, np.float32))
    return batch._replace(adv=(batch.adv - coef * penalty).astype(batch.adv.dtype))


def transformed_costs(
    cost: Array, ended: npt.NDArray[np.bool_], before: Array | None, transform: Callable[[Array], Array]
) -> Array:
    """Return the increments of ``transform(accumulated cost)``, (T, E).

    Over an episode they sum to transform(its cost) - transform(0). ``before`` (E,) is the cost of the running episodes
    before the first step.
    """
    after, start = np.empty_like(cost), np.empty_like(cost)
    running = np.zeros(cost.shape[1]) if before is None else before
    for t in range(len(cost)):
        start[t], after[t] = running, running + cost[t]
        running = np.where(ended[t], 0.0, after[t])
    return transform(after) - transform(start)


def _fit_metrics(name: str, error: Array, target: Array) -> Metrics:
    """Return how well a critic predicted this epoch's targets, before it was fitted to them."""
    variance = float(target.var())
    return {
        f"Value/{name}": float(np.mean(target - error)),
        f"Value/{name}Error": float(np.sqrt(np.mean(error**2))),
        f"Value/{name}Explained": 1.0 - float(error.var()) / variance if variance > 0.0 else 0.0,
    }
