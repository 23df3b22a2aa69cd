"""The training loop: epochs until the end of the run, with logs, checkpoints and certified-checkpoint selection.

The loop does not depend on the kind of learner. For an off-policy learner add a function with the signature of
``run_epoch`` to ``EPOCH_FUNCTIONS``: it may call the environments and update the policy in any order, and keeps its
replay buffer and critics in ``TrainState.algorithm``.
"""

import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

from steingate.algorithms.base import Algorithm, OnPolicyAlgorithm
from steingate.errors import InputError
from steingate.training.background import completed
from steingate.training.config import RunConfig
from steingate.training.environment import TrainerEnv
from steingate.training.epoch import EpochReport, run_epoch
from steingate.training.logging.display import Display
from steingate.training.logging.rows import time_columns
from steingate.training.logging.run_writer import RunWriter
from steingate.training.logging.trackers import TensorBoardLog, WandbLog
from steingate.training.selection import (
    MIN_EPISODES,
    Candidate,
    CertifiedCheckpointSelector,
    SelectionState,
    make_candidate,
)
from steingate.training.state import TrainState
from steingate.training.stop import RolloutStoppedError, StopRequest

EpochFunction = Callable[..., tuple[TrainState, EpochReport]]
EPOCH_FUNCTIONS: dict[Any, EpochFunction] = {OnPolicyAlgorithm: run_epoch}


def epoch_function(algorithm: Algorithm) -> EpochFunction:
    """Return the function that trains one epoch of an algorithm, by the base class of the algorithm."""
    for kind, function in EPOCH_FUNCTIONS.items():
        if isinstance(algorithm, kind):
            return function
    raise InputError(f"{algorithm.name} cannot be trained: derive it from steingate.algorithms.base.OnPolicyAlgorithm.")


@dataclass(frozen=True)
class Trainer:
    """The parts of one run that its epochs share."""

    cfg: RunConfig
    algorithm: Algorithm
    run_epoch: EpochFunction
    envs: TrainerEnv
    files: RunWriter
    loggers: tuple[TensorBoardLog | WandbLog, ...]
    display: Display
    pool: Executor
    selector: CertifiedCheckpointSelector
    stop: StopRequest


def train_epochs(trainer: Trainer, state: TrainState) -> TrainState:
    """Run the remaining epochs, until the end or a request to stop; save and return the last state."""
    cfg, files = trainer.cfg, trainer.files
    before, total_seconds = state, files.seconds_before()
    saving: Future[None] = completed(None)

    def save_after_error(kind: object, error: BaseException | None, trace: object) -> None:
        # If the critics of the last state are not finite, the state before is the last good one.
        if isinstance(error, Exception):
            saving.exception()  # waits
            for last in (state, before):
                with suppress(Exception):  # the first error is the one to raise
                    trainer.pool.submit(files.save, last).result()
                    break

    with ExitStack() as stack:
        stack.push(save_after_error)
        while state.epoch < cfg.epochs and not trainer.stop():
            start = time.perf_counter()
            try:
                after, report = trainer.run_epoch(
                    trainer.algorithm, cfg, state, trainer.envs, trainer.pool, trainer.stop
                )
                trained = time.perf_counter()
                after = after._replace(selection=_select(trainer, state, after))
            except RolloutStoppedError:
                break
            seconds = time.perf_counter() - start
            total_seconds += seconds
            parts = {**report.seconds, "test": time.perf_counter() - trained}
            row = {**report.row, **time_columns(cfg, seconds, total_seconds, parts)}
            files.add(row, report.episodes)
            before, state = state, after
            for logger in trainer.loggers:
                logger.add(row)
            trainer.display.epoch(row)
            for message in report.messages:
                trainer.display.message(message)
            if saving.done():
                saving.result()
            if state.epoch % cfg.checkpoint_every == 0:
                saving = trainer.pool.submit(files.save, state)
        saving.exception()  # waits
        trainer.pool.submit(files.save, state).result()
    return state


def _select(trainer: Trainer, state: TrainState, after: TrainState) -> SelectionState:
    """Offer the policy that collected an epoch to the selector, with the statistics of its episodes."""
    count = after.finished - state.finished
    if not trainer.cfg.certify.enabled or count == 0:
        return state.selection
    candidate = _candidate(trainer, state, max(count, MIN_EPISODES), after)
    return trainer.selector.consider(state.selection, candidate, after.epoch)


def last_candidate(trainer: Trainer, state: TrainState) -> Candidate | None:
    """Return the policy of the last epoch as a candidate; None if no training episode has finished."""
    return _candidate(trainer, state, MIN_EPISODES, state) if state.finished else None


def _candidate(trainer: Trainer, state: TrainState, episodes: int, after: TrainState) -> Candidate:
    """Return the policy of ``state`` with the last episodes and observation statistics ``after`` its epoch."""
    fraction = trainer.algorithm.env_params(trainer.cfg.context, state.algorithm).cost_budget_fraction
    window, limit = after.window[-episodes:], trainer.cfg.cost_limit
    return make_candidate(state.epoch, window, state.policy, after.stats, fraction, limit)
