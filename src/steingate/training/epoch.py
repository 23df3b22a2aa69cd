"""One epoch. Start reading here."""

import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, NamedTuple

import numpy as np

from steingate.algorithms.common.base import Algorithm, eased, first_bad
from steingate.algorithms.common.networks import mean
from steingate.algorithms.common.reach import out_of_reach, too_certain
from steingate.errors import RunError
from steingate.gates.base import Episodes, State
from steingate.gates.sampling import count_episodes
from steingate.policies.action_distribution import choice_of, outputs
from steingate.training.assemble import saved_env
from steingate.training.batch import to_batch
from steingate.training.config import RunConfig
from steingate.training.environment import ShowsBudget, TrainerEnv
from steingate.training.fitting import Critics, fit_critics
from steingate.training.logging.rows import append_window, episode_warnings, progress_row
from steingate.training.rollout import Rollout, collect
from steingate.training.rollout_kernels import OFF, UPDATE
from steingate.training.seeding import action_noise, epoch_seeds
from steingate.training.state import TrainState


class Report(NamedTuple):
    """What an epoch tells the log: a row of progress, a row per finished episode, where the time went."""

    row: dict[str, Any]
    episodes: list[dict[str, Any]]
    seconds: dict[str, float]
    notes: tuple[str, ...]  # sentences for the user


class Clock:
    """Seconds between laps, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """Book the time since the last lap under ``name``."""
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._last
        self._last = now


def run_epoch(
    algo: Algorithm,
    cfg: RunConfig,
    state: TrainState,
    envs: TrainerEnv,
    pool: Executor,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[TrainState, Report]:
    """Collect, decide, fit the critics, move the policy; return the next state and what to report.

    Fitting the critics needs neither the new policy nor the next rollout, so it is handed to ``pool`` and may
    take until the next epoch asks for values; a pool that works at once gives the same numbers.
    """
    clock = Clock()
    space = envs.single_action_space
    discrete = choice_of(space) is not None
    if isinstance(envs, ShowsBudget):
        envs.set_budget(state.budget, state.worth)
    noise = action_noise(cfg.seed, state.epoch, (cfg.horizon, cfg.num_envs, outputs(space)), discrete)
    rollout, stats = collect(
        envs,
        state.policy,
        state.stats,
        noise,
        mode=UPDATE if cfg.algo.normalize_obs else OFF,
        seeds=epoch_seeds(cfg.seed, state.epoch, cfg.num_envs),
        start=state.carry,
        stop=stop,
        name=cfg.env,
        steps_before=state.epoch * cfg.steps_per_epoch,
        error_hint="the state before this epoch is kept; ",
    )
    clock.lap("collect")
    episodes, memory = recalled(algo, state, rollout, cfg)
    if cfg.algo.counts_started:
        episodes, unbiased = count_episodes(episodes, cfg.horizon, cfg.time_limit)
        counting = {"gate/unbiased": float(unbiased)}
    else:
        counting = {}
    decision, gate, gate_log, notes = algo.gate.decide(state.gate, episodes)
    clock.lap("gate")
    critics = state.critics.result()
    clock.lap("wait")
    spent = None if state.carry is None else state.carry.totals[:, 1]
    batch, targets, value_log = to_batch(rollout, critics.params, cfg.algo.returns, algo, decision, spent)
    if cfg.algo.inward:
        away = (
            too_certain(batch.act, np.asarray(mean(state.policy, batch.obs)))
            if discrete
            else out_of_reach(rollout.act, noise, state.policy["log_std"]).ravel()
        )
        batch = batch._replace(adv=(batch.adv - cfg.algo.inward * away).astype(batch.adv.dtype))
    _check(cfg, state.epoch, {"an advantage": batch.adv, "a cost advantage": batch.cost_adv})

    def fit(passes: int | None) -> "Future[Critics]":
        rest = (batch.weight, passes, algo.uses_cost)
        return pool.submit(fit_critics, critics, batch.obs, targets, cfg, state.epoch, *rest)

    repeated = algo.step.passes if cfg.algo.critic_passes is None else None
    early = None if repeated else fit(None)
    clock.lap("advantages")
    policy, step, step_log = algo.step.move(state.step, state.policy, batch, decision)
    policy = eased(state.policy, policy, decision)
    _check(cfg, state.epoch, {"the policy": policy})
    fitting = early or fit(repeated(step) if repeated else None)
    clock.lap("policy")

    window = append_window(state.window, rollout.episodes, cfg.window)
    log = {**gate_log, **counting, **step_log, **value_log}
    row = progress_row(
        state.epoch, cfg.steps_per_epoch, cfg.cost_limit, window, rollout.episodes, decision, log
    )
    following = TrainState(
        epoch=state.epoch + 1,
        policy=policy,
        step=step,
        gate=gate,
        critics=fitting,
        stats=stats,
        window=window,
        finished=state.finished + len(rollout.episodes.cost),
        budget=decision.budget,
        worth=decision.worth,
        memory=memory,
        carry=rollout.carry if cfg.carry_episodes else None,
        world=saved_env(envs).snapshot() if cfg.carry_episodes else None,
    )
    notes = (*notes, *episode_warnings(cfg, state.epoch, state.window, rollout.episodes.cost))
    told = tuple(f"Epoch {state.epoch + 1}: {note}" for note in notes)
    return following, Report(row, _episode_rows(cfg, state.epoch, rollout), clock.seconds, told)


def recalled(algo: Algorithm, state: TrainState, rollout: Rollout, cfg: RunConfig) -> tuple[Episodes, State]:
    """Return this epoch's episodes, with those that the algorithm remembers, and its next memory."""
    if algo.memory is None:
        return rollout.episodes, state.memory
    seen = (rollout.obs[:-1], rollout.act, rollout.logp)
    log_ratio, memory = algo.memory.recall(
        state.memory, state.policy, seen, rollout.finished_at, cfg.carry_episodes
    )
    return rollout.episodes._replace(log_ratio=log_ratio), memory


def _episode_rows(cfg: RunConfig, epoch: int, rollout: Rollout) -> list[dict[str, Any]]:
    """Return one row per finished episode, by time of completion; ``step`` counts all environments."""
    episodes = rollout.episodes
    steps = epoch * cfg.steps_per_epoch + (rollout.finished_at[:, 0] + 1) * cfg.num_envs
    return [
        {"epoch": epoch, "step": int(step), "return": float(ret), "cost": float(cost), "length": int(length)}
        for step, ret, cost, length in zip(steps, episodes.ret, episodes.cost, episodes.length, strict=True)
    ]


def _check(cfg: RunConfig, epoch: int, quantities: dict[str, Any]) -> None:
    bad = first_bad(quantities)
    if bad is not None:
        raise RunError(
            f"Training on {cfg.env} stopped in epoch {epoch} (step {(epoch + 1) * cfg.steps_per_epoch}): "
            f"{bad} is not finite; the state before this epoch is saved."
        )
