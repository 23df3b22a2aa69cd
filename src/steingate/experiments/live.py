"""What the user sees while a grid runs: one screen on a terminal, plain lines anywhere else."""

import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from steingate.experiments.folders import last_row
from steingate.experiments.forecast import Forecast
from steingate.experiments.times import stopwatch, time_of_day
from steingate.gates.base import Mode
from steingate.gates.modes import step_in_words
from steingate.training.config import RunConfig

_BAR = 24
_SUMMARY_EVERY = 60.0  # seconds between plain lines about everything
_STYLES = {Mode.IMPROVE: "green", Mode.BALANCE: "yellow", Mode.RECOVER: "red"}


class LiveTable:
    """Shows a grid's runs from their folders; a context manager that leaves the terminal as it was.

    Parameters
    ----------
    name, out
        The grid and its folder.
    todo
        Runs to be done now.
    done
        Runs that were finished before.
    slots
        Runs at a time.
    forecast
        What is known about speeds; it is told of all that happens.
    console
        Where to; stderr by default, so that stdout stays free for results.
    now
        The time of day.
    """

    def __init__(
        self,
        name: str,
        out: str | Path,
        todo: Sequence[RunConfig],
        done: int,
        slots: int,
        forecast: Forecast,
        console: Console | None = None,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        self.name, self.slots = name, slots
        self._forecast, self._now = forecast, now
        self._root = Path(out).resolve()
        self.console = console or Console(file=sys.stderr, highlight=False)
        self.total = len(todo) + done
        self.finished, self.failed = done, 0
        self._waiting = {cfg.path: cfg for cfg in todo}
        self._rows: dict[Path, dict[str, float]] = {}
        self._live: Live | None = None
        self._told = time.monotonic()

    def __enter__(self) -> "LiveTable":
        if self.console.is_terminal:
            self._live = Live(console=self.console, transient=True, auto_refresh=False)
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)
            self._live = None

    def event(self, cfg: RunConfig, what: str) -> None:
        """Take note of a start or an end, and say so where there is no screen; failures are always said."""
        over = what.startswith(("finished", "failed"))
        if what.startswith("lost"):
            self._waiting[cfg.path] = cfg
            self._forecast.lost(cfg)
        else:
            self._waiting.pop(cfg.path, None)
        if what.startswith(("started", "goes on")):
            self._rows[cfg.path] = last_row(cfg.path)  # of an earlier process; says nothing about this one
            self._forecast.started(cfg)
        self.finished += what.startswith("finished")
        self.failed += what.startswith("failed")
        if self._live is None or not what.startswith(("started", "goes on", "finished")):
            count = f" ({self.finished + self.failed} of {self.total})" if over else ""
            self.console.print(f"{self._name(cfg)} {what}{count}", soft_wrap=True, markup=False)

    def update(self, running: Sequence[RunConfig]) -> None:
        """Look at the folders of the runs that are going on and show them."""
        for cfg in running:
            row = last_row(cfg.path)
            if row and row.get("Train/Epoch") != self._rows.get(cfg.path, {}).get("Train/Epoch"):
                self._rows[cfg.path] = row
                self._forecast.row(cfg, row)
        if self._live is not None:
            self._live.update(Group(Text(self.summary(running)), self.screen(running)), refresh=True)
        elif running and time.monotonic() - self._told > _SUMMARY_EVERY:
            self._told = time.monotonic()
            self.console.print(self.summary(running), soft_wrap=True, markup=False)

    def summary(self, running: Sequence[RunConfig]) -> str:
        """Return one line about the whole grid."""
        parts = [
            f"{self.name}: {self.finished} of {self.total} finished",
            *([f"{self.failed} failed"] if self.failed else []),
            f"{len(running)} running",
            f"{len(self._waiting)} waiting",
            self._end(self._forecast.left(running, list(self._waiting.values()), self.slots)),
        ]
        return "   ".join(parts)

    def screen(self, running: Sequence[RunConfig]) -> Table:
        """Return the runs that are going on, one line each."""
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for heading in ("run", "", "", "return", "cost", "mode", "steps/s", "left"):
            right = heading in ("return", "cost", "steps/s", "left")
            table.add_column(heading, justify="right" if right else "left", no_wrap=True)
        for cfg in running:
            row = self._rows.get(cfg.path, {})
            share = row.get("TotalEnvSteps", 0.0) / (cfg.epochs * cfg.steps_per_epoch)
            filled = round(_BAR * min(share, 1.0))
            bar = Text("━" * filled, style="cyan") + Text("━" * (_BAR - filled), style="grey30")
            cost, limit = row.get("Metrics/EpCost"), cfg.cost_limit
            table.add_row(
                Text(self._name(cfg)),
                bar,
                f"{share:.0%}",
                _figure(row.get("Metrics/EpRet")),
                Text(f"{_figure(cost)}/{limit:g}", style="red" if cost is not None and cost > limit else ""),
                _mode(row),
                f"{row.get('Time/FPS', 0.0):,.0f}",
                stopwatch(self._forecast.seconds(cfg)),
            )
        return table

    def _name(self, cfg: RunConfig) -> str:
        """Return algorithm, task and seed, after the folder that sets the run apart in its grid, if any."""
        folder = Path(cfg.out).resolve().relative_to(self._root)
        kind = "" if folder == Path() else f"{folder}: "
        return f"{kind}{cfg.algo.name} {cfg.env} seed {cfg.seed}"

    def _end(self, seconds: float | None) -> str:
        done = "" if seconds is None else f", done at {time_of_day(seconds, self._now())}"
        return f"{stopwatch(seconds)} left{done}"


def _mode(row: dict[str, float]) -> Text:
    """Return what the last step did."""
    if row.get("Gate/Mode") not in list(Mode):
        return Text("starting", style="dim")
    name, mode = step_in_words(row)
    return Text(name, style=_STYLES[mode])


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
