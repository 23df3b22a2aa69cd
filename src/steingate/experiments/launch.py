"""Run a list of runs on an engine: skip finished runs, restart runs whose process was killed."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from steingate.errors import InputError, RunError, SteingateError
from steingate.experiments.engines import LocalEngine, RayEngine
from steingate.experiments.worker import WorkerExit
from steingate.runs import RunFolder, deciding, load_certification, read_config
from steingate.storage.checkpoint import checkpoint_files
from steingate.training.config import RunConfig

MAX_RESTARTS = 3  # consecutive restarts without a new checkpoint


class RunStatus(NamedTuple):
    """State of a run, read from its folder."""

    started: bool  # whether the run has a folder
    epochs: int  # in the newest checkpoint
    finished: bool  # whether that is the last epoch and the certification of the run is complete


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


def run_status(cfg: RunConfig) -> RunStatus:
    """Return the state of a run; InputError if its folder contains a run with other settings."""
    run = RunFolder(cfg.path)
    if not run.config.exists():
        return RunStatus(started=False, epochs=0, finished=False)
    stored = read_config(run.path).get("config")
    names = ("certify", "algorithm")
    if not isinstance(stored, dict) or not all(isinstance(stored.get(name), dict) for name in names):
        raise RunError(f"{run.config} is damaged: it has no settings; move the folder away.")
    found = _flat(deciding(stored, steps=True))
    for name, value in _flat(deciding(cfg.to_dict(), steps=True)).items():
        if name in found and found[name] != value:
            raise InputError(
                f"{run.path} contains a run with {name} {found[name]!r} where the grid has {value!r}; "
                "choose another --out."
            )
    epochs = max((epoch for epoch, _ in checkpoint_files(run.checkpoints)), default=0)
    certification = load_certification(run.path) or {}
    certified = certification.get("finished") is True and certification.get("epoch") == epochs
    finished = epochs >= cfg.epochs and (certified or not stored["certify"].get("enabled"))
    return RunStatus(True, epochs, finished)


def _flat(settings: dict[str, Any]) -> dict[str, Any]:
    """Return all settings by name; those of the algorithm are named without a prefix."""
    return {**settings["algorithm"], **{name: value for name, value in settings.items() if name != "algorithm"}}


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
    todo: Sequence[RunConfig], engine: LocalEngine | RayEngine,
    notify: Callable[[RunConfig, str], None] = lambda cfg, text: None, stop: Callable[[], bool] = lambda: False,
    poll: float = 0.5,
) -> list[Outcome]:  # fmt: skip
    """Run everything, in this order, and return the outcome of each run; a failed run does not stop the others.

    ``notify`` is called with a run and a text when it finished, failed or is restarted; ``stop`` is polled every
    ``poll`` seconds, and when it returns true the runs write checkpoints and end.
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
    stopped = [_outcome(cfg, WorkerExit("stopped"), losses) for cfg in running.values()]
    return [*outcomes, *filter(None, stopped), *(Outcome(cfg, "not started") for cfg in waiting)]


def _outcome(cfg: RunConfig, end: WorkerExit, losses: dict[Path, tuple[int, int]]) -> Outcome | None:
    """Return the outcome of a run whose worker ended, or None if it should be restarted."""
    try:
        status = run_status(cfg)
    except SteingateError as error:
        return Outcome(cfg, "failed", end.message or str(error))
    if end.kind == "failed":
        return Outcome(cfg, "failed", end.message)
    if status.finished:
        return Outcome(cfg, "finished")
    if end.kind == "stopped":
        return Outcome(cfg, "stopped")
    if end.kind == "finished":
        message = f"{cfg.path} is not finished on this machine; --out must be a folder that all machines share."
        return Outcome(cfg, "failed", message)
    epochs, count = losses.get(cfg.path, (-1, 0))
    count = 1 if status.epochs > epochs else count + 1
    losses[cfg.path] = status.epochs, count
    if count <= MAX_RESTARTS:
        return None
    return Outcome(cfg, "failed", f"killed {count} times without a new checkpoint, last time {end.message}.")
