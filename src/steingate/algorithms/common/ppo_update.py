"""Minibatch Adam, and the policy updates by it (PPO, FOCOPS, CUP, P3O): epochs on a loss, stopped early by the KL."""

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.flatten_util import ravel_pytree

from steingate.algorithms.base import Batch, Metrics, Mode, Objective, Params, RunContext
from steingate.algorithms.common.networks import ActionDistribution, action_distribution, log_prob
from steingate.algorithms.config import MinibatchConfig

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


class Adam(NamedTuple):
    """Optimizer state: steps taken, and first and second moments shaped like the parameters."""

    steps: int
    first: Params
    second: Params


def init_adam(params: Params) -> Adam:
    """Return the optimizer state before the first step."""
    zeros = jax.tree.map(np.zeros_like, params)
    return Adam(0, zeros, zeros)


def minibatches(
    rng: np.random.Generator, samples: int, epochs: int, batch_size: int,
    weight: npt.NDArray[np.float32] | None = None,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:  # fmt: skip
    """Return rows and weights of each minibatch, both (epochs, minibatches, size): a permutation in each epoch.

    The last, incomplete minibatch of an epoch is padded with rows of weight 0. Weights sum to 1 in each
    minibatch; ``weight`` (N,) says how often each sample counts.
    """
    order = rng.permuted(np.tile(np.arange(samples, dtype=np.int32), (epochs, 1)), axis=1)
    size = min(batch_size, samples)
    padding = ((0, 0), (0, -samples % size))
    counts = np.ones(order.shape, np.float32) if weight is None else weight[order]
    rows, weights = (np.pad(part, padding).reshape(epochs, -(-samples // size), size) for part in (order, counts))
    return rows, weights / weights.sum(axis=2, keepdims=True)


def adam_step_sizes(
    steps_before: int, steps: int, lr: float
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return learning rate and epsilon of the next steps with Adam's bias correction, both (steps,).

    With v uncorrected, a step is rate * m / (sqrt(v) + epsilon).
    """
    step = steps_before + np.arange(1, steps + 1)
    root = np.sqrt(1.0 - BETA_2**step)
    rate = (lr * root / (1.0 - BETA_1**step)).astype(np.float32)
    return rate, (EPSILON * root).astype(np.float32)


def adam_step(state: tuple[Any, Any, Any], gradient: Any, rate: Any, epsilon: Any, max_norm: float) -> Any:
    """Return flat parameters and moments after one Adam step with the gradient clipped to ``max_norm``."""
    theta, m, v = state
    g = gradient * jnp.minimum(1.0, max_norm / (jnp.linalg.norm(gradient) + 1e-6))
    m = BETA_1 * m + (1.0 - BETA_1) * g
    v = BETA_2 * v + (1.0 - BETA_2) * g * g
    return theta - rate * m / (jnp.sqrt(v) + epsilon), m, v


class PPOState(NamedTuple):
    """State of minibatch updates: optimizer, number of updates, and epochs of the last one."""

    adam: Adam
    updates: int = 0
    epochs: int = 0


class Minibatch(NamedTuple):
    """Some rows of the batch; ``weight`` sums to 1 and is 0 for padding."""

    obs: Any
    act: Any
    logp: Any
    adv: Any
    cost_adv: Any
    weight: Any
    old: ActionDistribution  # of the policy before the update


Loss = Callable[[Params, Minibatch, Any], jax.Array]


class Phase(NamedTuple):
    """Epochs of Adam on one loss, stopped once the KL from the phase's first policy exceeds ``max_kl``."""

    loss: Loss  # compiled once per function object
    adv: Any  # (N,) advantage in its minibatches
    numbers: tuple[float, ...] = ()  # its third argument


def likelihood_ratio(params: Params, rows: Minibatch) -> jax.Array:
    """Return pi(a|s) / pi_old(a|s) for each row."""
    return jnp.exp(log_prob(params, rows.obs, rows.act) - rows.logp)


def kl_from_old(params: Params, rows: Minibatch) -> jax.Array:
    """Return KL(pi || pi_old) of each row, summed over action dimensions."""
    return jnp.sum(action_distribution(params, rows.obs).kl(rows.old), axis=1)


@cache
def clipped_loss(clip: float) -> Loss:
    """Return PPO's loss: -mean(min(ratio A, clip(ratio, 1 - clip, 1 + clip) A)) (Schulman et al., 2017)."""

    def loss(params: Params, rows: Minibatch, numbers: Any) -> jax.Array:
        ratio = likelihood_ratio(params, rows)
        clipped = jnp.clip(ratio, 1.0 - clip, 1.0 + clip)
        return -jnp.vdot(rows.weight, jnp.minimum(ratio * rows.adv, clipped * rows.adv))

    return loss


def objective_advantage(batch: Batch, objective: Objective) -> Any:
    """Return the advantage to maximize: penalized reward, or negative cost in a recovery.

    A first-order update has no constrained step: BALANCE maximizes reward while the limit is satisfied and
    minimizes cost while it is not.
    """
    violated = objective.mode == Mode.BALANCE and objective.cost_slack < 0.0
    if objective.mode == Mode.RECOVER or violated:
        return -batch.cost_adv
    return batch.penalized_advantage(np.float32(objective.lagrange_multiplier))


def minibatch_update(
    context: RunContext, state: PPOState, policy: Params, batch: Batch, config: MinibatchConfig,
    phases: tuple[Phase, ...],
) -> tuple[PPOState, Params, Metrics]:  # fmt: skip
    """Return state and policy after all phases, one after the other with one optimizer, and metrics.

    The KL is measured over all samples after each epoch; the epoch that exceeds ``max_kl`` is the last. Metrics of
    a second phase end with ``_2``.
    """
    decays = config.lr_decay and context.epochs  # linearly to 0 over all epochs
    lr = config.lr * (max(1.0 - state.updates / context.epochs, 0.0) if decays else 1.0)
    metrics: Metrics = {"Loss/LearningRate": lr}
    adam, epochs = state.adam, 0
    for index, phase in enumerate(phases):
        key = (state.updates, 1000 + index)
        rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(context.seed, spawn_key=key)))
        rows, weights = minibatches(rng, len(batch.obs), config.epochs, config.batch_size, batch.weight)
        shape = rows.shape[:2]
        rate, epsilon = (size.reshape(shape) for size in adam_step_sizes(adam.steps, shape[0] * shape[1], lr))
        samples, numbers = batch._replace(adv=np.asarray(phase.adv), weight=None), np.asarray(phase.numbers, np.float32)
        policy, moments, count, kl, loss = _compiled(config, phase.loss)(
            policy, adam.first, adam.second, samples, rows, weights, rate, epsilon, numbers
        )
        policy, (first, second) = jax.tree.map(np.asarray, (policy, moments))
        adam = Adam(adam.steps + int(count) * shape[1], first, second)
        epochs = epochs or int(count)
        suffix = f"_{index + 1}" if index else ""
        values = {"Epochs": count, "KL": kl, "Policy": loss}
        metrics |= {f"Loss/{name}{suffix}": float(value) for name, value in values.items()}
    return PPOState(adam, state.updates + 1, epochs), policy, metrics


@lru_cache(maxsize=16)
def _compiled(config: MinibatchConfig, loss: Loss) -> Callable[..., tuple[Any, ...]]:
    """Return one phase as a jitted function: parameters, moments, epochs made, KL, loss of the last epoch."""

    def fit(
        params: Params, first: Params, second: Params, batch: Batch, rows: Any, weights: Any, rate: Any, epsilon: Any,
        numbers: Any,
    ) -> tuple[Any, Any, jax.Array, jax.Array, jax.Array]:  # fmt: skip
        theta, unravel = ravel_pytree(params)
        old = action_distribution(params, batch.obs)

        def minibatch_loss(theta: jax.Array, row: Any, weight: Any) -> jax.Array:
            obs, act, logp, adv, cost_adv = (column[row] for column in batch[:5])
            old_rows = ActionDistribution(old.out[row], old.log_std)
            part = Minibatch(obs, act, logp, adv, cost_adv, weight, old_rows)
            return loss(unravel(theta), part, numbers)

        def step(state: Any, part: Any) -> tuple[Any, jax.Array]:
            row, weight, step_rate, step_epsilon = part
            value, g = jax.value_and_grad(minibatch_loss)(state[0], row, weight)
            return adam_step(state, g, step_rate, step_epsilon, config.max_grad_norm), value

        def unfinished(state: Any) -> Any:
            count, _, kl, _ = state
            return (count < rows.shape[0]) & (kl <= config.max_kl)

        def epoch(state: Any) -> Any:
            count, inner, _, _ = state
            inner, losses = jax.lax.scan(step, inner, (rows[count], weights[count], rate[count], epsilon[count]))
            kl = jnp.mean(jnp.sum(old.kl(action_distribution(unravel(inner[0]), batch.obs)), axis=1))
            return count + 1, inner, kl, jnp.mean(losses)

        flat = (theta, ravel_pytree(first)[0], ravel_pytree(second)[0])
        start = (jnp.int32(0), flat, jnp.float32(0), jnp.float32(0))
        count, (theta, m, v), kl, last_loss = jax.lax.while_loop(unfinished, epoch, start)
        return unravel(theta), (unravel(m), unravel(v)), count, kl, last_loss

    return jax.jit(fit)
