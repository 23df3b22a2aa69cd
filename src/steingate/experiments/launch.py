"""A list of runs to its end, on any engine: what is finished is not repeated, what is lost goes on."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from steingate.errors import InputError, RunError
from steingate.experiments.folders import Standing, standing
from steingate.experiments.process import Ending
from steingate.training.config import RunConfig

Status = Literal["finished", "already finished", "failed", "stopped", "not started"]
RETRIES = 3  # losses in a row without a new checkpoint in between


class Engine(Protocol):
    """A place where runs can go on."""

    slots: int

    def start(self, cfg: RunConfig) -> None:
        """Start a run, or go on with it."""

    def ended(self, timeout: float) -> list[tuple[RunConfig, Ending]]:
        """Return the runs that ended since the last call, after at most ``timeout`` seconds."""

    def stop(self) -> None:
        """Let every run write a checkpoint and end; return when all have."""


class Watch(Protocol):
    """Somebody who wants to see what happens."""

    def update(self, running: Sequence[RunConfig]) -> None:
        """Look at the runs that are going on."""

    def event(self, cfg: RunConfig, what: str) -> None:
        """Take note of a start or an end."""


@dataclass(frozen=True)
class Outcome:
    """What became of one run."""

    run: RunConfig
    status: Status
    message: str = ""

    @property
    def path(self) -> Path:
        """The run folder."""
        return self.run.path


def sort_out(runs: Sequence[RunConfig]) -> tuple[list[RunConfig], list[Outcome]]:
    """Return the runs that are left to do, begun ones first, and the outcomes that are already known.

    Raises
    ------
    InputError
        If a run folder holds a run with other settings.
    """
    begun: list[RunConfig] = []
    new: list[RunConfig] = []
    known: list[Outcome] = []
    for cfg in runs:
        try:
            found = standing(cfg)
        except InputError:
            raise
        except RunError as error:
            known.append(Outcome(cfg, "failed", str(error)))
            continue
        if found.finished:
            known.append(Outcome(cfg, "already finished"))
        else:
            (begun if found.begun else new).append(cfg)
    return [*begun, *new], known


def launch(
    todo: Sequence[RunConfig],
    engine: Engine,
    watch: Watch,
    stop: Callable[[], bool] = lambda: False,
    tick: float = 0.5,
) -> list[Outcome]:
    """Run everything and return an outcome for each run; a run that fails does not stop the others.

    Parameters
    ----------
    todo
        Runs to start or to go on with, in this order.
    engine
        Where; as many at a time as it has slots.
    watch
        Sees starts, ends and, every ``tick`` seconds, the runs that are going on.
    stop
        When it returns true, the runs write checkpoints and end.
    """
    waiting, running = deque(todo), dict[Path, RunConfig]()
    losses: dict[Path, tuple[int, int]] = {}
    outcomes: list[Outcome] = []
    while (waiting or running) and not stop():
        while waiting and len(running) < engine.slots:
            cfg = waiting.popleft()
            running[cfg.path] = cfg
            engine.start(cfg)
            watch.event(cfg, "goes on" if cfg.path in losses else "started")
        for cfg, end in engine.ended(tick):
            del running[cfg.path]
            outcome = _judge(cfg, end, losses)
            if outcome is None:
                waiting.appendleft(cfg)
                watch.event(cfg, f"lost, to be taken up again: {end.message}")
            else:
                outcomes.append(outcome)
                watch.event(cfg, f"failed: {outcome.message}" if outcome.message else outcome.status)
        watch.update(list(running.values()))
    if running:
        engine.stop()
    outcomes += [_after_stop(cfg) for cfg in running.values()]
    return outcomes + [Outcome(cfg, "not started") for cfg in waiting]


def _judge(cfg: RunConfig, end: Ending, losses: dict[Path, tuple[int, int]]) -> Outcome | None:
    """Return the outcome of a run that ended, or ``None`` when it should be taken up again."""
    try:
        found = standing(cfg)
    except (InputError, RunError) as error:
        return Outcome(cfg, "failed", end.message or str(error))
    if end.kind == "failed":
        return Outcome(cfg, "failed", end.message)
    if found.finished:
        return Outcome(cfg, "finished")
    if end.kind == "finished":
        return Outcome(
            cfg,
            "failed",
            f"{cfg.path} is not finished on this machine although its worker says so; "
            "--out must be a folder that all machines share.",
        )
    return _lost(cfg, found, end, losses)


def _lost(
    cfg: RunConfig, found: Standing, end: Ending, losses: dict[Path, tuple[int, int]]
) -> Outcome | None:
    before, count = losses.get(cfg.path, (-1, 0))
    count = 1 if found.saved > before else count + 1
    losses[cfg.path] = found.saved, count
    if count <= RETRIES:
        return None
    return Outcome(
        cfg, "failed", f"It was lost {count} times without a new checkpoint; the last time {end.message}."
    )


def _after_stop(cfg: RunConfig) -> Outcome:
    try:
        return Outcome(cfg, "finished" if standing(cfg).finished else "stopped")
    except (InputError, RunError) as error:
        return Outcome(cfg, "failed", str(error))
