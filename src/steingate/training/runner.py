"""Start, resume and finish a run: files, environments, logs, and the final certification test."""

from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from steingate.algorithms.common.jax_setup import configure
from steingate.errors import InputError
from steingate.runs import RunFolder, folder_lock, newest_checkpoint, read_config, require_no_rows, write_config
from steingate.storage.checkpoint import checkpoint_files, put_aside
from steingate.training.background import background_thread
from steingate.training.config import RunConfig
from steingate.training.config_file import load_run_config, require_same_certify, version_warnings, write_run_config
from steingate.training.environment import make_envs, new_messages, require_snapshots
from steingate.training.logging.display import Display
from steingate.training.logging.rows import default_limit_note
from steingate.training.logging.run_writer import RunWriter
from steingate.training.logging.trackers import TensorBoardLog, WandbLog
from steingate.training.loop import Trainer, epoch_function, last_candidate, train_epochs
from steingate.training.selection import CertifiedCheckpointSelector
from steingate.training.state import TrainState, first_state, from_tree
from steingate.training.stop import RolloutStoppedError, StopRequest, stop_on_signals


def train(cfg: RunConfig, quiet: bool = False, stop: StopRequest | None = None) -> Path:
    """Train from scratch and return the run folder; RunError if it already holds a run or is in use.

    Ctrl-C and SIGTERM write a checkpoint first, then raise ``KeyboardInterrupt`` and ``SystemExit(143)``. A
    caller that handles the signals itself passes its ``stop``.
    """
    return _run(cfg, RunFolder(cfg.path), quiet, stop, fresh=True)


def resume(
    path: str | Path, quiet: bool = False, stop: StopRequest | None = None, total_steps: int | None = None,
    env: Any = None, trust_code: bool = False,
) -> Path:  # fmt: skip
    """Continue a run from its last intact checkpoint, or from its start, to its end; return the run folder.

    Arguments as in :func:`steingate.resume`; a run that ``total_steps`` extends equals one that was longer from the
    start.
    """
    cfg = load_run_config(path, env, trust_code, log=True)
    steps = cfg.total_steps if total_steps is None else total_steps
    if steps < cfg.total_steps:
        raise InputError(
            f"total_steps is {steps}, but {path} was started with {cfg.total_steps} and runs can only be made longer; "
            f"to judge it as it is: steingate evaluate {path} --until-certified."
        )
    if cfg.algo.depends_on_total_steps and steps != cfg.total_steps:
        raise InputError(
            f"{path} cannot be extended: the learning rate of {cfg.algo.name} falls to 0 over the steps it "
            "was started with; train anew, with --no-ppo.lr-decay to be able to extend the run later."
        )
    return _run(replace(cfg, total_steps=steps), RunFolder(Path(path)), quiet, stop, fresh=False)


def _run(cfg: RunConfig, run: RunFolder, quiet: bool, stop: StopRequest | None, fresh: bool) -> Path:
    with ExitStack() as stack:
        stop = stack.enter_context(stop_on_signals()) if stop is None else stop
        learner = configure()
        stop.check()
        algorithm = cfg.algo
        run_epoch = epoch_function(algorithm)
        # The environments come first: a run whose environments cannot be made should leave no folder behind.
        envs = stack.enter_context(closing(make_envs(cfg, training=True)))
        stop.check()
        require_snapshots(cfg, envs)
        state = first_state(cfg, algorithm, envs)
        stop.check()
        stack.enter_context(folder_lock(run))
        display = Display(cfg, quiet)
        saved: dict[str, Any] = {}  # the checkpoint to continue from
        if fresh:
            messages = [*algorithm.initial_messages(cfg.context), *default_limit_note(cfg)]
            write_run_config(run, cfg, learner, messages)
        else:
            messages = version_warnings(run)
            state, saved = _last_state(run, state, display)
            record = read_config(run.path)
            write_config(run, {**record, "config": {**record["config"], "total_steps": cfg.total_steps}})
        tests = "; certification tests policies without it, in fresh episodes" * cfg.certify.enabled
        noise = f"Epochs show training episodes, with exploration noise{tests}."
        files = RunWriter(run, envs, cfg, algorithm)
        files.truncate(state, saved.get("tables", {}))
        if fresh:
            files.save(state)  # a run that is killed before its next checkpoint can be resumed, too
        else:
            selection, changes = files.restore_certification(state.selection, saved)
            state, messages = state._replace(selection=selection), [*messages, *changes]
        for message in (*messages, *new_messages(envs), noise):
            display.message(message)
        if state.env_state is not None:
            envs.reset(seed=0)
            envs.restore(state.env_state)
        loggers: list[TensorBoardLog | WandbLog] = [TensorBoardLog(run.path)]
        if cfg.wandb:
            loggers.append(WandbLog(cfg.wandb, run.path, cfg.to_dict(), cfg.identity))
        for logger in loggers:
            stack.callback(logger.close)
        pool = stack.enter_context(background_thread(cfg.overlap))
        selector = stack.enter_context(closing(CertifiedCheckpointSelector(cfg, files, stop)))
        trainer = Trainer(cfg, algorithm, run_epoch, envs, files, tuple(loggers), display, pool, selector, stop)
        state = train_epochs(trainer, state)
        again = f"continue with: steingate resume {run.path}"
        if stop() and state.epoch < cfg.epochs:
            judge = f"or judge it as it is with: steingate evaluate {run.path} --until-certified"
            display.message(f"Stopped before epoch {state.epoch + 1}; {again}; {judge}")
            stop.leave()
        if cfg.certify.enabled:
            try:
                selection = selector.finish(state.selection, last_candidate(trainer, state), state.epoch)
            except RolloutStoppedError:
                display.message(f"Stopped before the last test; {again}")
                stop.leave()
            if selection is not state.selection:  # the number of tests first: no file may give delta back
                files.save(state._replace(selection=selection), replace=True)
                files.write_certification(selection.report)
            report = cast(dict[str, Any], selection.report)
            command = (
                f"export {run.path} --to policy.npz" if report["certified"] else f"resume {run.path} --total-steps N"
            )
            advice = "" if report["failure"] else f" Next: steingate {command}"
            display.message(f"{report['sentence']}{advice}", result=True)
    return run.path


def _last_state(run: RunFolder, first: TrainState, display: Display) -> tuple[TrainState, dict[str, Any]]:
    """Return the state in the newest usable checkpoint and the checkpoint's tree.

    Damaged checkpoints and those of other runs are reported and renamed.
    """
    checkpoint = newest_checkpoint(
        run.path, display.message, lambda found: from_tree(found.tree, first, str(found.path))
    )
    if checkpoint is None:
        require_no_rows(run)
        return first, {}
    require_same_certify(run, checkpoint.tree["config"])
    for epoch, path in checkpoint_files(run.checkpoints):
        if epoch > checkpoint.epoch:
            put_aside(path)
    return from_tree(checkpoint.tree, first, str(checkpoint.path)), checkpoint.tree
