"""The training loop: a run from its first epoch, or its last checkpoint, to its end."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from steingate.algorithms.base import OnPolicyAlgorithm
from steingate.algorithms.common.jax_setup import configure
from steingate.errors import InputError
from steingate.policies.action_distribution import choice_of, outputs
from steingate.runs import RunFolder, folder_lock, newest_checkpoint, read_config, write_config
from steingate.storage.checkpoint import checkpoint_files, put_aside
from steingate.training.config import RunConfig
from steingate.training.config_file import load_run_config, version_warnings, write_run_config
from steingate.training.environment import (
    TrainerEnv,
    build_algorithm,
    make_envs,
    new_messages,
    require_snapshots,
    restorable,
)
from steingate.training.epoch import run_epoch
from steingate.training.logging.display import Display
from steingate.training.logging.run_writer import RunWriter
from steingate.training.logging.trackers import TensorBoardLog, WandbLog
from steingate.training.rollout import RolloutStoppedError
from steingate.training.selection import (
    MIN_EPISODES,
    Candidate,
    CertifiedCheckpointSelector,
    SelectionState,
    make_candidate,
)
from steingate.training.state import TrainState, first_state, from_tree
from steingate.training.stop import StopRequest, stop_on_signals

T = TypeVar("T")


def train(cfg: RunConfig, quiet: bool = False, stop: StopRequest | None = None) -> Path:
    """Train from scratch and return the run folder.

    Ctrl-C and SIGTERM write a checkpoint first, then raise ``KeyboardInterrupt`` and ``SystemExit(143)``. A
    caller that handles the signals itself passes its ``stop``.

    Raises
    ------
    RunError
        If the folder already holds a run or is in use, or if training fails.
    """
    return _run(cfg, RunFolder(cfg.path), quiet, stop, fresh=True)


def resume(
    path: str | Path,
    quiet: bool = False,
    stop: StopRequest | None = None,
    total_steps: int | None = None,
    env: Any = None,
) -> Path:
    """Continue a run from its last intact checkpoint, or from its start, to its end; return the run folder.

    ``total_steps`` extends the run, which then equals one that was longer from the start. ``env`` is the
    environment, if it was given as a Python object or has moved.
    """
    cfg = load_run_config(path, env)
    if total_steps is not None:
        cfg = _extended(cfg, total_steps, path)
    return _run(cfg, RunFolder(Path(path)), quiet, stop, fresh=False)


def _extended(cfg: RunConfig, total_steps: int, path: str | Path) -> RunConfig:
    if total_steps < cfg.total_steps:
        raise InputError(f"total_steps is {total_steps}, but {path} was started with {cfg.total_steps}.")
    if cfg.algo.depends_on_total_steps and total_steps != cfg.total_steps:
        raise InputError(
            f"{path} cannot be extended: the learning rate of {cfg.algo.name} falls to 0 over the steps it "
            "was started with; train anew, with --no-ppo.lr-decay to be able to extend the run later."
        )
    return replace(cfg, total_steps=total_steps)


class InlineExecutor(Executor):
    """An executor that runs each call immediately, in the calling thread."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        """Run the call and return its result as a completed future; an exception is raised immediately."""
        future: Future[T] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@contextmanager
def background_thread(overlap: bool) -> Iterator[Executor]:
    """One worker thread that runs calls in order; without ``overlap``, an :class:`InlineExecutor`."""
    with ThreadPoolExecutor(1, "background") if overlap else InlineExecutor() as executor:
        yield executor


@dataclass(frozen=True)
class _Trainer:
    """The parts of one run that its epochs share."""

    cfg: RunConfig
    algorithm: OnPolicyAlgorithm
    envs: TrainerEnv
    files: RunWriter
    loggers: tuple[TensorBoardLog | WandbLog, ...]
    display: Display
    pool: Executor
    selector: CertifiedCheckpointSelector
    stop: StopRequest


def _run(cfg: RunConfig, run: RunFolder, quiet: bool, stop: StopRequest | None, fresh: bool) -> Path:
    with ExitStack() as stack:
        stop = stack.enter_context(stop_on_signals()) if stop is None else stop
        learner = configure()
        stop.check()
        algorithm = build_algorithm(cfg)
        if not isinstance(algorithm, OnPolicyAlgorithm):
            raise InputError(f"{algorithm.name} cannot be trained: derive it from OnPolicyAlgorithm.")
        # The environments come first: a run whose environments cannot be made should leave no folder behind.
        envs = stack.enter_context(closing(make_envs(cfg)))
        stop.check()
        require_snapshots(cfg, envs)
        space = envs.single_action_space
        sizes = (envs.single_observation_space.shape[0], outputs(space))
        state = first_state(cfg, algorithm, *sizes, discrete=choice_of(space) is not None)
        stop.check()
        stack.enter_context(folder_lock(run))
        display = stack.enter_context(Display(cfg, quiet=quiet))
        marks: dict[str, Any] = {}
        if fresh:
            messages = list(algorithm.initial_messages(cfg.context))
            write_run_config(run, cfg, learner, messages)
        else:
            messages = version_warnings(run)
            state, marks = _last_state(run, state, display)
            record = read_config(run.path)
            if record["config"].get("total_steps") != cfg.total_steps:
                write_config(run, {**record, "config": {**record["config"], "total_steps": cfg.total_steps}})
        for message in (*messages, *new_messages(envs)):
            display.message(message)
        files = RunWriter(run, envs, cfg, algorithm)
        files.truncate(state, marks)
        if state.env_state is not None:
            envs.reset(seed=0)
            restorable(envs).restore(state.env_state)
        loggers: list[TensorBoardLog | WandbLog] = [TensorBoardLog(run.path)]
        if cfg.wandb:
            loggers.append(WandbLog(cfg.wandb, run.path, cfg.to_dict(), cfg.identity))
        for logger in loggers:
            stack.callback(logger.close)
        pool = stack.enter_context(background_thread(cfg.overlap))
        selector = stack.enter_context(closing(CertifiedCheckpointSelector(cfg, run, files.save_certified, stop)))
        trainer = _Trainer(cfg, algorithm, envs, files, tuple(loggers), display, pool, selector, stop)
        state = _train_epochs(trainer, state)
        again = f"continue with: steingate resume {run.path}"
        if stop() and state.epoch < cfg.epochs:
            display.message(f"Stopped before epoch {state.epoch + 1}; continue with: steingate resume {run.path}")
            stop.leave()
        if cfg.certify.enabled:
            try:
                display.message(selector.finish(state.selection, _last_candidate(trainer, state), state.epoch))
            except RolloutStoppedError:
                display.message(f"Stopped before the last test; {again}")
                stop.leave()
    return run.path


def _last_state(run: RunFolder, first: TrainState, display: Display) -> tuple[TrainState, dict[str, Any]]:
    """Return the state in the newest usable checkpoint, and its marks of the tables.

    Damaged checkpoints and those of other runs are reported and renamed.
    """
    checkpoint = newest_checkpoint(
        run.path, display.message, lambda found: from_tree(found.tree, first, str(found.path))
    )
    if checkpoint is None:
        return first, {}
    for epoch, path in checkpoint_files(run.checkpoints):
        if epoch > checkpoint.epoch:
            put_aside(path)
    return from_tree(checkpoint.tree, first, str(checkpoint.path)), checkpoint.tree["tables"]


def _train_epochs(trainer: _Trainer, state: TrainState) -> TrainState:
    """Run the remaining epochs, until the end or a request to stop; save and return the last state."""
    cfg, files = trainer.cfg, trainer.files
    before, saving = state, None
    total_seconds = files.seconds_before()

    def save_after_error(kind: object, error: BaseException | None, trace: object) -> None:
        # If the critics of the last state are not finite, the state before is the last good one.
        if isinstance(error, Exception):
            _wait(saving)
            for last in (state, before):
                with suppress(Exception):  # the first error is the one to raise
                    trainer.pool.submit(files.save, last).result()
                    break

    with ExitStack() as stack:
        stack.push(save_after_error)
        while state.epoch < cfg.epochs and not trainer.stop():
            start = time.perf_counter()
            try:
                after, report = run_epoch(trainer.algorithm, cfg, state, trainer.envs, trainer.pool, trainer.stop)
                trained = time.perf_counter()
                after = after._replace(selection=_select(trainer, state, after))
            except RolloutStoppedError:
                break
            seconds = time.perf_counter() - start
            total_seconds += seconds
            parts = {**report.seconds, "test": time.perf_counter() - trained}
            row = {**report.row, **_times(cfg, seconds, total_seconds, parts)}
            files.add(row, report.episodes)
            before, state = state, after
            for logger in trainer.loggers:
                logger.add(row)
            trainer.display.epoch(row)
            for message in report.messages:
                trainer.display.message(message)
            if saving is not None and saving.done():
                saving.result()
            if state.epoch % cfg.checkpoint_every == 0:
                saving = trainer.pool.submit(files.save, state)
        _wait(saving)
        trainer.pool.submit(files.save, state).result()
    return state


def _select(trainer: _Trainer, state: TrainState, after: TrainState) -> SelectionState:
    """Offer the policy that collected an epoch to the selector, with the statistics of its episodes."""
    count = after.finished - state.finished
    if not trainer.cfg.certify.enabled or count == 0:
        return state.selection
    episodes = after.window[-max(count, MIN_EPISODES) :]
    return trainer.selector.consider(state.selection, _candidate(trainer, state, episodes, after), after.epoch)


def _last_candidate(trainer: _Trainer, state: TrainState) -> Candidate | None:
    """Return the policy of the last epoch as a candidate; None if no training episode has finished."""
    return _candidate(trainer, state, state.window[-MIN_EPISODES:], state) if state.finished else None


def _candidate(trainer: _Trainer, state: TrainState, episodes: Any, after: TrainState) -> Candidate:
    """Return the policy of ``state``, with the observation statistics ``after`` its epoch, as a candidate."""
    params = trainer.algorithm.env_params(trainer.cfg.context, state.algorithm)
    fraction, limit = params.cost_budget_fraction, trainer.cfg.cost_limit
    return make_candidate(state.epoch, episodes, state.policy, after.stats, fraction, limit)


def _wait(saving: "Future[None] | None") -> None:
    if saving is not None:
        saving.exception()


def _times(cfg: RunConfig, seconds: float, total: float, parts: dict[str, float]) -> dict[str, float]:
    return {
        "Time/FPS": cfg.steps_per_epoch / max(seconds, 1e-9),
        "Time/Total": total,
        "Time/Epoch": seconds,
        **{f"Time/{name.capitalize()}": value for name, value in parts.items()},
    }
