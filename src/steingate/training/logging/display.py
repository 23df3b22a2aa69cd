"""Terminal output of a run: a live panel on a terminal, one line per epoch elsewhere."""

import os
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from steingate.algorithms.modes import describe_update
from steingate.escaping import for_terminal
from steingate.training.config import RunConfig

STYLES = ("green", "yellow", "red")  # by mode


class _Console(Console):
    """A console that raises if its reader is gone; rich would end the process."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Display:
    """Shows rows of ``progress.csv`` during training; a context manager that restores the terminal.

    If the output is closed or its disk is full, nothing more is shown and training goes on. ``quiet`` shows only the
    result.
    """

    def __init__(self, cfg: RunConfig, console: Console | None = None, quiet: bool = False) -> None:
        self.cfg, self.quiet, self._closed = cfg, quiet, False
        self.console = console or _Console(file=sys.stderr, highlight=False)
        self._speeds: deque[float] = deque(maxlen=20)
        self._epochs = 0
        self._live: Live | None = None

    def __enter__(self) -> "Display":
        if self.console.is_terminal and not self.quiet:
            waiting = Text("compiling and collecting the first epoch ...", style="dim")
            self._live = Live(waiting, console=self.console, transient=True, auto_refresh=False)
            self._show(self._live.__enter__)
        return self

    def __exit__(self, *error: Any) -> None:
        if self._live is not None:
            self._show(partial(self._live.__exit__, *error))
            self._live = None

    def _show(self, draw: Callable[[], object]) -> None:
        if self._closed:
            return
        try:
            draw()
        except (OSError, ValueError):  # ValueError: the file is closed
            self._closed = True
            with suppress(OSError, ValueError):  # what is buffered must not fail at exit either
                os.dup2(os.open(os.devnull, os.O_WRONLY), self.console.file.fileno())

    def message(self, text: str, result: bool = False) -> None:
        """Print a sentence, such as a warning, above the panel; the ``result`` of the run is shown if quiet, too."""
        if result or not self.quiet:
            self._show(partial(self.console.print, for_terminal(text), soft_wrap=True, markup=False))

    def epoch(self, row: dict[str, Any]) -> None:
        """Show one epoch's row."""
        words, mode = describe_update(row)
        if self._epochs == 1:
            self._speeds.clear()  # the first epoch includes compilation
        self._epochs += 1
        self._speeds.append(float(row["Time/FPS"]))
        if self.quiet:
            return
        number, limit = row["Train/Epoch"] + 1, f"{self.cfg.cost_limit:g}"
        rate = row.get("Train/ViolationRate")
        over = "" if rate is None else f" ({rate:.0%} violations)"
        if row.get("Gate/Bound") is not None:
            words = f"risk bound {row['Gate/Bound']:.1%} (budget {100 * row['Gate/Budget']:.3g}%)  {words}"
        if row.get("Gate/Fallback"):
            words += " (no episode finished: decided by earlier ones)"
        shown = {
            "epoch": f"{number}/{self.cfg.epochs}",
            "steps": f"{row['TotalEnvSteps']:,}",
            "return": _number(row.get("Train/EpRet")),
            "cost": f"{_number(row.get('Train/EpCost'))}/{limit}{over}",
            "update": words,
            "speed": f"{row['Time/FPS']:,.0f} steps/s  {self._time_left(row)} left",
        }
        if self._live is None:
            parts = (value if name in ("update", "speed") else f"{name} {value}" for name, value in shown.items())
            self._show(partial(self.console.print, "  ".join(parts), soft_wrap=True, markup=False))
            return
        for name in ("return", "cost"):
            mean = _number(row.get(f"Metrics/Ep{'Ret' if name == 'return' else 'Cost'}"))
            shown[name] += f"  (last {self.cfg.window} episodes: {mean})"
        grid = Table.grid(padding=(0, 2))
        for name, value in shown.items():  # as Text, because names of algorithms and environments are not markup
            grid.add_row(Text(name, style="dim"), Text(value, style=STYLES[mode] if name == "update" else ""))
        title = Text(f"{self.cfg.algo.name} · {self.cfg.env} · seed {self.cfg.seed}")
        panel = Panel(grid, title=title, title_align="left", border_style="dim", width=min(self.console.width, 88))
        self._show(partial(self._live.update, panel, refresh=True))

    def _time_left(self, row: dict[str, Any]) -> str:
        steps = (self.cfg.epochs - row["Train/Epoch"] - 1) * self.cfg.steps_per_epoch
        seconds = round(steps * sum(1.0 / max(fps, 1e-9) for fps in self._speeds) / len(self._speeds))
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
