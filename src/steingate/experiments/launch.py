"""Run a list of runs on an engine: skip finished runs, restart runs whose process was killed."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from steingate.errors import InputError, RunError
from steingate.experiments.run_status import run_status
from steingate.experiments.worker import WorkerExit
from steingate.training.config import RunConfig

MAX_RESTARTS = 3  # consecutive restarts without a new checkpoint


class Engine(Protocol):
    """Runs workers on this machine or on a cluster."""

    slots: int  # number of runs at a time

    def start(self, cfg: RunConfig) -> None:
        """Start or continue a run."""

    def wait(self, timeout: float) -> list[tuple[RunConfig, WorkerExit]]:
        """Return the runs that have ended, after at most ``timeout`` seconds."""

    def stop(self) -> None:
        """Let all runs write a checkpoint and end; return when they have."""


@dataclass(frozen=True)
class Outcome:
    """Result of one run of a grid."""

    run: RunConfig
    status: Literal["finished", "already finished", "failed", "stopped", "not started"]
    message: str = ""

    @property
    def path(self) -> Path:
        """The run folder."""
        return self.run.path


def find_todo(runs: Sequence[RunConfig]) -> tuple[list[RunConfig], list[Outcome]]:
    """Return the runs that are not finished, started ones first, and the outcomes of the others.

    InputError if a run folder contains a run with other settings.
    """
    started: list[RunConfig] = []
    new: list[RunConfig] = []
    outcomes: list[Outcome] = []
    for cfg in runs:
        try:
            status = run_status(cfg)
        except RunError as error:
            outcomes.append(Outcome(cfg, "failed", str(error)))
            continue
        if status.finished:
            outcomes.append(Outcome(cfg, "already finished"))
        else:
            (started if status.started else new).append(cfg)
    return [*started, *new], outcomes


def launch(
    todo: Sequence[RunConfig], engine: Engine, notify: Callable[[RunConfig, str], None] = lambda cfg, text: None,
    stop: Callable[[], bool] = lambda: False, poll: float = 0.5,
) -> list[Outcome]:  # fmt: skip
    """Run everything and return the outcome of each run; a failed run does not stop the others.

    Parameters
    ----------
    todo : runs to start or continue, in this order
    engine : runs them, at most ``engine.slots`` at a time
    notify : called with a run and a text when it finished, failed or is restarted
    stop : polled every ``poll`` seconds; when it returns true, the runs write checkpoints and end
    """
    waiting, running = deque(todo), dict[Path, RunConfig]()
    losses: dict[Path, tuple[int, int]] = {}  # epochs at the last loss, number of losses since then
    outcomes: list[Outcome] = []
    while (waiting or running) and not stop():
        while waiting and len(running) < engine.slots:
            cfg = waiting.popleft()
            running[cfg.path] = cfg
            engine.start(cfg)
        for cfg, end in engine.wait(poll):
            del running[cfg.path]
            outcome = _outcome(cfg, end, losses)
            if outcome is None:
                waiting.appendleft(cfg)
                notify(cfg, f"restarted: {end.message}")
            else:
                outcomes.append(outcome)
                notify(cfg, ": ".join(filter(None, (outcome.status, outcome.message))))
    if running:
        engine.stop()
    outcomes += [_outcome_of_stopped(cfg) for cfg in running.values()]
    return outcomes + [Outcome(cfg, "not started") for cfg in waiting]


def _outcome(cfg: RunConfig, end: WorkerExit, losses: dict[Path, tuple[int, int]]) -> Outcome | None:
    """Return the outcome of a run whose worker ended, or None if it should be restarted."""
    try:
        status = run_status(cfg)
    except (InputError, RunError) as error:
        return Outcome(cfg, "failed", end.message or str(error))
    if end.kind == "failed":
        return Outcome(cfg, "failed", end.message)
    if status.finished:
        return Outcome(cfg, "finished")
    if end.kind == "finished":
        message = f"{cfg.path} is not finished on this machine; --out must be a folder that all machines share."
        return Outcome(cfg, "failed", message)
    epochs, count = losses.get(cfg.path, (-1, 0))
    count = 1 if status.epochs > epochs else count + 1
    losses[cfg.path] = status.epochs, count
    if count <= MAX_RESTARTS:
        return None
    return Outcome(cfg, "failed", f"killed {count} times without a new checkpoint, last time {end.message}.")


def _outcome_of_stopped(cfg: RunConfig) -> Outcome:
    try:
        return Outcome(cfg, "finished" if run_status(cfg).finished else "stopped")
    except (InputError, RunError) as error:
        return Outcome(cfg, "failed", str(error))
