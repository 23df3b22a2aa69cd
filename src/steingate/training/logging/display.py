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
_MAX_MODES = 60  # epochs in the strip of modes
_BAR = 30  # width of a bar


class _Console(Console):
    """A console that raises if its reader is gone; rich would end the process."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Display:
    """Shows rows of ``progress.csv`` during training; a context manager that restores the terminal.

    If the output is closed or its disk is full, nothing more is shown and training goes on.

    Parameters
    ----------
    cfg
        The run.
    console
        Console to print to; stderr by default.
    quiet
        Show only the result.
    """

    def __init__(self, cfg: RunConfig, console: Console | None = None, quiet: bool = False) -> None:
        self.cfg, self.quiet, self._closed = cfg, quiet, False
        self.console = console or _Console(file=sys.stderr, highlight=False)
        self._modes: deque[int] = deque(maxlen=_MAX_MODES)
        self._speeds: deque[float] = deque(maxlen=20)
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
        self._modes.append(mode)
        if len(self._speeds) == 1 and len(self._modes) == 2:
            self._speeds.clear()  # the first epoch includes compilation
        self._speeds.append(float(row["Time/FPS"]))
        if self.quiet:
            return
        number, limit = row["Train/Epoch"] + 1, f"{self.cfg.cost_limit:g}"
        speed = f"{row['Time/FPS']:,.0f} steps/s"
        ret, cost, rate = (row.get(f"Train/{name}") for name in ("EpRet", "EpCost", "ViolationRate"))
        over = "" if rate is None else f" ({rate:.0%} violations)"
        if row.get("Gate/Bound") is not None:
            words = f"risk bound {row['Gate/Bound']:.1%} (budget {100 * row['Gate/Budget']:.3g}%)  {words}"
        if row.get("Gate/Fallback"):
            words += " (no episode finished: decided by earlier ones)"
        if self._live is None:
            parts = (
                f"epoch {number}/{self.cfg.epochs}",
                f"steps {row['TotalEnvSteps']:,}",
                f"return {_number(ret)}",
                f"cost {_number(cost)}/{limit}{over}",
                words,
                speed,
                f"{self._time_left(row)} left",
            )
            self._show(partial(self.console.print, "  ".join(parts), soft_wrap=True, markup=False))
            return
        cost_style = "yellow" if cost is None else "green" if cost <= self.cfg.cost_limit else "red"
        done = number / self.cfg.epochs
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", justify="right")
        grid.add_column()
        grid.add_row("return", Text(f"{_number(ret):<{_BAR}}") + self._recent(row, "EpRet"))
        grid.add_row(
            "cost",
            _bar(cost or 0.0, self.cfg.cost_limit, cost_style)
            + Text(f" {_number(cost)}", style=cost_style).append(f" of {limit}{over}", "dim")
            + self._recent(row, "EpCost"),
        )
        strip = Text().join(Text("█", style=STYLES[each]) for each in self._modes)
        grid.add_row("update", strip)
        grid.add_row("", Text(words, style=STYLES[mode]))
        left = Text(f"  {done:.0%}   {speed}   {self._time_left(row)} left")
        grid.add_row("progress", _bar(done, 1.0, "cyan") + left)
        # A Text, because names of algorithms and environments are not markup.
        title = Text(f"{self.cfg.algo.name} · {self.cfg.env} · seed {self.cfg.seed} · epoch {number}")
        width = min(self.console.width, 88)
        panel = Panel(grid, title=title, title_align="left", border_style="dim", width=width)
        self._show(partial(self._live.update, panel, refresh=True))

    def _recent(self, row: dict[str, Any], name: str) -> Text:
        mean = _number(row.get(f"Metrics/{name}"))
        return Text(f"  last {self.cfg.window} episodes {mean}", style="dim")

    def _time_left(self, row: dict[str, Any]) -> str:
        steps = (self.cfg.epochs - row["Train/Epoch"] - 1) * self.cfg.steps_per_epoch
        seconds = round(steps * sum(1.0 / max(fps, 1e-9) for fps in self._speeds) / len(self._speeds))
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _bar(value: float, full: float, style: str) -> Text:
    """Return a bar of ``value / full``; a limit of 0 fills it with any positive value."""
    fraction = value / full if full > 0 else float(value > 0)
    filled = min(max(round(_BAR * fraction), 0), _BAR)
    return Text("━" * filled, style=style) + Text("━" * (_BAR - filled), style="grey30")
