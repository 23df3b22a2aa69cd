"""A run from its first epoch, or its last checkpoint, to its end: epochs, tables, checkpoints, stopping."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from steingate.algorithms.common.backend import configure
from steingate.algorithms.common.base import Algorithm
from steingate.errors import InputError, RunError
from steingate.policies.action_distribution import choice_of, outputs
from steingate.runs import RunFolder, folder_lock, newest_checkpoint, read_config, write_config
from steingate.storage.checkpoint import checkpoint_files, put_aside
from steingate.training.assemble import build_algorithm, check_carry, make_envs, saved_env
from steingate.training.config import RunConfig
from steingate.training.environment import TrainerEnv, new_notes
from steingate.training.epoch import run_epoch
from steingate.training.logging.display import Display
from steingate.training.logging.run_writer import RunWriter, changed_versions, record_config
from steingate.training.logging.tensorboard import Events
from steingate.training.logging.wandb_log import WandbLog
from steingate.training.rollout import RolloutStoppedError
from steingate.training.selector import Keeper
from steingate.training.state import TrainState, first_state, from_tree
from steingate.training.stop import StopRequest, stop_on_signals
from steingate.training.stored import stored_config

T = TypeVar("T")


def train(cfg: RunConfig, quiet: bool = False, stop: StopRequest | None = None) -> Path:
    """Train from scratch and return the run folder.

    Ctrl-C and SIGTERM write a checkpoint first, then end in ``KeyboardInterrupt`` and ``SystemExit(143)``. A
    caller that listens to the signals already passes its ``stop``.

    Raises
    ------
    RunError
        If the folder already holds a run or is in use, or if training had to stop.
    """
    return _run(cfg, RunFolder(cfg.path), quiet, stop, fresh=True)


def resume(
    path: str | Path,
    quiet: bool = False,
    stop: StopRequest | None = None,
    total_steps: int | None = None,
    env: Any = None,
) -> Path:
    """Go on from a run's last whole checkpoint, or from its start, to its end; return the run folder.

    ``total_steps`` makes the run longer, finished or not; it then equals one that was longer from the start.
    ``env`` says where the environment is now, or gives again one that was given from Python.
    """
    cfg = stored_config(path, env)
    if "recipe" not in read_config(path)["config"]:
        raise RunError(
            f"{path} was started by an earlier version, which had other settings: report, evaluate and "
            "render read it, but it cannot be resumed; train it anew."
        )
    if total_steps is not None:
        cfg = _longer(cfg, total_steps, path)
    return _run(cfg, RunFolder(Path(path)), quiet, stop, fresh=False)


def _longer(cfg: RunConfig, total_steps: int, path: str | Path) -> RunConfig:
    if total_steps < cfg.total_steps:
        raise InputError(f"total_steps is {total_steps}: {path} is planned for {cfg.total_steps} already.")
    if cfg.algo.needs_epochs and total_steps != cfg.total_steps:
        raise InputError(
            f"{path} cannot be made longer: the learning rate of {cfg.algo.name} falls to 0 over the steps "
            "it was started with; train anew, with --no-clipped.decay to be free to go on later."
        )
    return replace(cfg, total_steps=total_steps)


class Inline(Executor):
    """An executor that runs each call at once, in the calling thread."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        """Run the call now and return its outcome as a finished future; an error is raised here already."""
        future: Future[T] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@contextmanager
def second_thread(overlap: bool) -> Iterator[Executor]:
    """One worker thread that does calls in order, or, with the same results, none at all."""
    with ThreadPoolExecutor(1, "second") if overlap else Inline() as executor:
        yield executor


@dataclass(frozen=True)
class _Job:
    """All that the epochs of one run share."""

    cfg: RunConfig
    algo: Algorithm
    envs: TrainerEnv
    files: RunWriter
    logs: tuple[Events | WandbLog, ...]  # copies of the tables for other viewers
    display: Display
    pool: Executor
    keeper: Keeper
    stop: StopRequest


def _run(cfg: RunConfig, run: RunFolder, quiet: bool, listening: StopRequest | None, fresh: bool) -> Path:
    with ExitStack() as stack:
        stop = stack.enter_context(stop_on_signals()) if listening is None else listening
        learner = configure()
        stop.check()
        algo = build_algorithm(cfg)
        # The environments come first: a run that cannot be made should leave no folder behind.
        envs = stack.enter_context(closing(make_envs(cfg, algo)))
        stop.check()
        check_carry(cfg, envs)
        space = envs.single_action_space
        sizes = (envs.single_observation_space.shape[0], outputs(space))
        state = first_state(cfg, algo, *sizes, discrete=choice_of(space) is not None)
        stop.check()
        stack.enter_context(folder_lock(run))
        display = stack.enter_context(Display(cfg, quiet=quiet))
        if fresh:
            record_config(run, cfg, learner, algo.notes)
            for note in algo.notes:
                display.note(note)
            tables = None
        else:
            for change in changed_versions(run):
                display.note(change)
            state, tables = _last_state(run, state, display)
            record = read_config(run.path)
            if record["config"].get("total_steps") != cfg.total_steps:
                write_config(run, {**record, "config": {**record["config"], "total_steps": cfg.total_steps}})
        for note in new_notes(envs):
            display.note(note)
        files = RunWriter(run, envs, cfg.algo.normalize_obs, algo.account)
        files.keep(state, tables)
        if state.world is not None:
            envs.reset(seed=0)
            saved_env(envs).restore(state.world)
        logs: list[Events | WandbLog] = [Events(run.path)]
        if cfg.wandb:
            logs.append(WandbLog(cfg.wandb, run.path, cfg.to_dict(), cfg.identity))
        for log in logs:
            stack.callback(log.close)
        pool = stack.enter_context(second_thread(cfg.overlap))
        keeper = stack.enter_context(closing(Keeper(cfg, algo, files, stop)))
        state = _epochs(_Job(cfg, algo, envs, files, tuple(logs), display, pool, keeper, stop), state)
        if stop() and state.epoch < cfg.epochs:
            display.note(f"Stopped before epoch {state.epoch + 1}; go on with: steingate resume {run.path}")
            stop.leave()
        try:
            verdict = keeper.finish(state)
        except RolloutStoppedError:
            display.note(f"Stopped before the last test; go on with: steingate resume {run.path}")
            stop.leave()
        if verdict:
            display.note(verdict)
    return run.path


def _last_state(run: RunFolder, first: TrainState, display: Display) -> tuple[TrainState, Any]:
    """Return the state of the newest usable checkpoint, and its marks of the tables.

    Damaged and foreign ones are named and put aside.
    """
    checkpoint = newest_checkpoint(
        run.path, display.note, lambda found: from_tree(found.tree, first, str(found.path))
    )
    if checkpoint is None:
        return first, None
    for epoch, path in checkpoint_files(run.checkpoints):
        if epoch > checkpoint.epoch:
            put_aside(path)
    return from_tree(checkpoint.tree, first, str(checkpoint.path)), checkpoint.tree.get("tables")


def _epochs(job: _Job, state: TrainState) -> TrainState:
    """Run the epochs that are left, or as many as the user lets us; return the last state, which is saved."""
    cfg, files = job.cfg, job.files
    before, saving = state, None
    spent = files.seconds_before()

    def keep(kind: object, error: BaseException | None, trace: object) -> None:
        # The critics of the last state may be what is not finite; then the one before is the last good state.
        if isinstance(error, Exception):
            _done(saving)
            for candidate in (state, before):
                with suppress(Exception):  # the user should hear of the first error, which goes on from here
                    job.pool.submit(files.save, candidate).result()
                    break

    with ExitStack() as stack:
        stack.push(keep)
        while state.epoch < cfg.epochs and not job.stop():
            began = time.perf_counter()
            try:
                following, report = run_epoch(job.algo, cfg, state, job.envs, job.pool, job.stop)
                collected = time.perf_counter()
                following = following._replace(kept=job.keeper.after(state, following))
            except RolloutStoppedError:
                break
            seconds = time.perf_counter() - began
            spent += seconds
            parts = {**report.seconds, "test": time.perf_counter() - collected}
            row = {**report.row, **_times(cfg, seconds, spent, parts)}
            files.add(row, report.episodes)
            before, state = state, following
            for log in job.logs:
                log.add(row)
            job.display.epoch(row)
            for note in report.notes:
                job.display.note(note)
            if saving is not None and saving.done():
                saving.result()
            if state.epoch % cfg.checkpoint_every == 0:
                saving = job.pool.submit(files.save, state)
        _done(saving)
        job.pool.submit(files.save, state).result()
    return state


def _done(saving: "Future[None] | None") -> None:
    if saving is not None:
        saving.exception()


def _times(cfg: RunConfig, seconds: float, spent: float, parts: dict[str, float]) -> dict[str, float]:
    return {
        "Time/FPS": cfg.steps_per_epoch / max(seconds, 1e-9),
        "Time/Total": spent,
        "Time/Epoch": seconds,
        **{f"Time/{name.capitalize()}": value for name, value in parts.items()},
    }
