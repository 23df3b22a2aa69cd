"""What the user sees while a grid runs: one screen on a terminal, plain lines anywhere else."""

import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from steingate.bench.folders import last_row
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
    console
        Where to; stderr by default, so that stdout stays free for results.
    """

    def __init__(
        self,
        name: str,
        out: str | Path,
        todo: Sequence[RunConfig],
        done: int,
        slots: int,
        console: Console | None = None,
    ) -> None:
        self.name, self.slots = name, slots
        self._root = Path(out).resolve()
        self.console = console or Console(file=sys.stderr, highlight=False)
        self.total = len(todo) + done
        self.finished, self.failed = done, 0
        self._waiting = {cfg.path: cfg for cfg in todo}
        self._rows: dict[Path, dict[str, float]] = {}
        self._speeds: dict[str, list[float]] = defaultdict(list)  # of each task, from its finished rows
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
        else:
            self._waiting.pop(cfg.path, None)
        self.finished += what.startswith("finished")
        self.failed += what.startswith("failed")
        if self._live is None or not what.startswith(("started", "goes on", "finished")):
            count = f" ({self.finished + self.failed} of {self.total})" if over else ""
            self.console.print(f"{self._name(cfg)} {what}{count}", soft_wrap=True, markup=False)

    def update(self, running: Sequence[RunConfig]) -> None:
        """Look at the folders of the runs that are going on and show them."""
        for cfg in running:
            row = last_row(cfg.path)
            if row.get("Train/Epoch") != self._rows.get(cfg.path, {}).get("Train/Epoch"):
                self._rows[cfg.path] = row
                # The first epoch compiles, which says nothing about the others.
                if row.get("Train/Epoch", 0.0) > 0.0 and "Time/FPS" in row:
                    self._speeds[cfg.env].append(row["Time/FPS"])
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
            f"{_clock(self.seconds_left(running))} left",
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
                _clock(self._seconds(cfg)),
            )
        return table

    def seconds_left(self, running: Sequence[RunConfig]) -> float | None:
        """Return the time until the last run ends, at the speeds seen so far; ``None`` before that."""
        each = [self._seconds(cfg) for cfg in (*running, *self._waiting.values())]
        known = [seconds for seconds in each if seconds is not None]
        if len(known) < len(each):
            return None
        return max(sum(known) / self.slots, max(known, default=0.0))

    def _name(self, cfg: RunConfig) -> str:
        """Return algorithm, task and seed, after the folder that sets the run apart in its grid, if any."""
        folder = Path(cfg.out).resolve().relative_to(self._root)
        kind = "" if folder == Path() else f"{folder}: "
        return f"{kind}{cfg.algo.name} {cfg.env} seed {cfg.seed}"

    def _seconds(self, cfg: RunConfig) -> float | None:
        # A run's own speed, or that of others on its task, or of all.
        speeds = self._speeds.get(cfg.env) or [speed for list_ in self._speeds.values() for speed in list_]
        recent = speeds[-20:]
        if not recent:
            return None
        left = cfg.epochs * cfg.steps_per_epoch - self._rows.get(cfg.path, {}).get("TotalEnvSteps", 0.0)
        return left * sum(1.0 / max(speed, 1e-9) for speed in recent) / len(recent)


def _mode(row: dict[str, float]) -> Text:
    """Return what the last step did."""
    if row.get("Gate/Mode") not in list(Mode):
        return Text("starting", style="dim")
    name, mode = step_in_words(row)
    return Text(name, style=_STYLES[mode])


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _clock(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
