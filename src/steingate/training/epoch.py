"""One epoch. Start reading here."""

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, NamedTuple

from steingate.algos.base import Algorithm, first_bad
from steingate.envs.adapters import epoch_seeds
from steingate.errors import RunError
from steingate.training.clock import Clock
from steingate.training.collect import Rollout, collect
from steingate.training.collect_kernels import PUSH, RAW
from steingate.training.config import RunConfig
from steingate.training.critics import fit_critics
from steingate.training.learn import to_batch
from steingate.training.progress import progress_row, slide
from steingate.training.randomness import action_noise
from steingate.training.state import TrainState


class Report(NamedTuple):
    """What an epoch tells the log: a row of progress, a row per finished episode, and where the time went."""

    row: dict[str, Any]
    episodes: list[dict[str, Any]]
    seconds: dict[str, float]


def run_epoch(
    algo: Algorithm,
    cfg: RunConfig,
    state: TrainState,
    envs: Any,
    pool: Executor,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[TrainState, Report]:
    """Collect, decide, fit the critics, move the policy; return the next state and what to report.

    Fitting the critics needs neither the new policy nor the next rollout, so it is handed to ``pool`` and may
    take until the next epoch asks for values; a pool that works at once gives the same numbers.
    """
    clock = Clock()
    rollout, stats = collect(
        envs,
        state.policy,
        state.stats,
        action_noise(cfg.seed, state.epoch, (cfg.horizon, cfg.num_envs, *envs.single_action_space.shape)),
        mode=PUSH if cfg.normalise_obs else RAW,
        seeds=epoch_seeds(cfg.seed, state.epoch, cfg.num_envs),
        start=state.carry,
        stop=stop,
        name=cfg.env,
        steps_before=state.epoch * cfg.steps_per_epoch,
    )
    clock.lap("collect")
    decision, gate, gate_log = algo.gate.decide(state.gate, rollout.episodes)
    clock.lap("gate")
    critics = state.critics.result()
    clock.lap("wait")
    batch, targets, value_log = to_batch(rollout, critics.params, cfg)
    _check(cfg, state.epoch, {"an advantage": batch.adv, "a cost advantage": batch.cost_adv})
    fitting = pool.submit(fit_critics, critics, batch.obs, targets, cfg, state.epoch)
    clock.lap("advantages")
    policy, step, step_log = algo.step.move(state.step, state.policy, batch, decision)
    _check(cfg, state.epoch, {"the policy": policy})
    clock.lap("policy")

    window = slide(state.window, rollout.episodes, cfg.window)
    log = {**gate_log, **step_log, **value_log}
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
        carry=rollout.carry if cfg.carry_episodes else None,
        world=envs.snapshot() if cfg.carry_episodes else None,
    )
    return following, Report(row, _episode_rows(cfg, state.epoch, rollout), clock.seconds)


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
