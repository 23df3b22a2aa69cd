"""One epoch of on-policy training. Start here to read the trainer."""

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np

from steingate.algorithms.base import OnPolicyAlgorithm, Trajectories
from steingate.algorithms.common.critics import Critics, fit_critics
from steingate.algorithms.common.episodes import complete_episodes
from steingate.algorithms.common.networks import forward
from steingate.policies.action_space import discrete_actions, n_outputs
from steingate.training.algorithm_checks import check_decision, check_update
from steingate.training.config import RunConfig
from steingate.training.env_errors import require_finite
from steingate.training.environment import TrainerEnv, set_params
from steingate.training.logging.rows import Stopwatch, append_window, episode_rows, episode_warnings, progress_row
from steingate.training.rollout import collect
from steingate.training.rollout_kernels import OFF, UPDATE
from steingate.training.seeding import Purpose, action_noise, epoch_seeds, stream
from steingate.training.state import TrainState
from steingate.training.targets import compute_targets, penalize_saturation


class EpochReport(NamedTuple):
    """What an epoch adds to the logs."""

    row: dict[str, Any]  # of progress.csv
    episodes: list[dict[str, Any]]  # rows of episodes.csv
    seconds: dict[str, float]  # by phase
    messages: tuple[str, ...]  # for the user


def run_epoch(
    algorithm: OnPolicyAlgorithm, cfg: RunConfig, state: TrainState, envs: TrainerEnv, pool: Executor,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[TrainState, EpochReport]:  # fmt: skip
    """Collect, decide, update the policy, fit the critics; return the next state and what to log.

    Fitting the critics needs neither the new policy nor the next rollout, so it is submitted to ``pool`` and may run
    until the next epoch needs values; the results do not depend on this.
    """
    watch, context = Stopwatch(), cfg.context
    space = envs.single_action_space
    discrete = discrete_actions(space) is not None

    set_params(envs, algorithm.env_params(context, state.algorithm))
    noise = action_noise(cfg.seed, state.epoch, (cfg.horizon, cfg.num_envs, n_outputs(space)), discrete)
    mode, seeds = UPDATE if algorithm.networks.normalize_obs else OFF, epoch_seeds(cfg.seed, state.epoch, cfg.num_envs)
    rollout, stats = collect(
        envs, state.policy, state.stats, noise, mode=mode, seeds=seeds, carry=state.carry, stop=stop, name=cfg.env,
        steps_before=state.epoch * cfg.steps_per_epoch, error_hint="the state before this epoch is kept; ",
    )  # fmt: skip
    watch.lap("collect")

    trajectories = Trajectories(rollout.obs[:-1], rollout.act, rollout.logp, rollout.finished_at)
    memory = algorithm.record_rollout(context, state.algorithm, state.policy, trajectories)
    episodes, metrics = rollout.episodes, {}
    if algorithm.complete_episodes_only:
        episodes, unbiased = complete_episodes(episodes, cfg.horizon, cfg.time_limit)
        metrics = {"Gate/Unbiased": float(unbiased)}
    decided, output = check_decision(algorithm, algorithm.decide(context, memory, episodes))
    watch.lap("gate")

    critics = state.critics.result()
    watch.lap("wait")
    costs_before = None if state.carry is None else state.carry.totals[:, 1]
    batch, targets, value_metrics = compute_targets(rollout, critics, algorithm, context, decided, costs_before)
    coef = algorithm.advantages.saturation_coef
    if coef:
        logits = np.asarray(forward(state.policy, batch.obs)) if discrete else None
        flat = noise.reshape(len(batch.adv), -1)
        batch = penalize_saturation(batch, coef, flat, state.policy.get("log_std"), logits)
    require_finite(cfg, state.epoch, {"an advantage": batch.adv, "a cost advantage": batch.cost_adv})

    def fit(epochs: int) -> Critics:
        rng, fit_cost = stream(cfg.seed, state.epoch, Purpose.FIT), algorithm.cost_advantages is not None
        fitted = fit_critics(
            critics, batch.obs, targets, algorithm.critics, rng, weight=batch.weight, epochs=epochs, fit_cost=fit_cost
        )
        require_finite(cfg, state.epoch, {"the reward critic": fitted.reward, "the cost critic": fitted.cost})
        return fitted

    epochs = algorithm.critics.vf_epochs
    fitting = None if epochs is None else pool.submit(fit, epochs)
    watch.lap("advantages")

    result = algorithm.update(context, decided, state.policy, batch, output.objective)
    updated, policy, loss_metrics = check_update(algorithm, state.policy, result)
    require_finite(cfg, state.epoch, {"the policy": policy, "the variance of an observation": stats.m2})
    fitting = fitting or pool.submit(fit, algorithm.update_epochs(updated) or 0)
    watch.lap("policy")

    window = append_window(state.window, rollout.episodes, cfg.window)
    metrics = {**output.metrics, **metrics, **loss_metrics, **value_metrics}
    row = progress_row(cfg, state.epoch, window, rollout.episodes, output.objective, metrics)
    next_state = TrainState(
        state.epoch + 1, policy, updated, fitting, stats, window, state.finished + len(rollout.episodes.cost),
        carry=rollout.carry if cfg.carry_episodes else None,
        env_state=envs.snapshot() if cfg.carry_episodes else None,
    )  # fmt: skip
    messages = (*output.messages, *episode_warnings(cfg, state.epoch, state.window, rollout.episodes.cost))
    texts = tuple(f"Epoch {state.epoch + 1}: {message}" for message in messages)
    return next_state, EpochReport(
        row, episode_rows(cfg, state.epoch, rollout.episodes, rollout.finished_at), watch.seconds, texts
    )
