"""What the user sees while a run trains: a live panel on a terminal, one line per epoch anywhere else."""

import sys
from collections import deque
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from steingate.gates.base import Mode
from steingate.gates.modes import step_in_words
from steingate.training.config import RunConfig

STYLES = ("green", "yellow", "red")  # of the modes
TERMS = (
    ("Gate/ReferenceRisk", "reference"),
    ("Gate/DiscreteTerm", "atoms"),
    ("Gate/InteriorTerm", "interior"),
)
TERM_STYLES = {"reference": "blue", "atoms": "red", "interior": "yellow"}
_STRIP = 60
_BAR = 30


class Display:
    """Shows rows of ``progress.csv`` as they come; a context manager that leaves the terminal as it was.

    Parameters
    ----------
    cfg
        The run.
    console
        Where to; stderr by default, so that stdout stays free for results.
    quiet
        Show nothing.
    """

    def __init__(self, cfg: RunConfig, console: Console | None = None, quiet: bool = False) -> None:
        self.cfg = cfg
        self.console = console or Console(file=sys.stderr, highlight=False)
        self.quiet = quiet
        self.modes: deque[int] = deque(maxlen=_STRIP)
        self._speeds: deque[float] = deque(maxlen=20)
        self._live: Live | None = None

    def __enter__(self) -> "Display":
        if self.console.is_terminal and not self.quiet:
            waiting = Text("compiling and collecting the first epoch ...", style="dim")
            self._live = Live(waiting, console=self.console, transient=True, auto_refresh=False)
            self._live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._live is not None:
            self._live.__exit__(*error)
            self._live = None

    def note(self, text: str) -> None:
        """Show a sentence that is not about one epoch, such as a warning."""
        if self.quiet:
            return
        self.console.print(text, soft_wrap=True, markup=False)  # above the panel, where it stays

    def epoch(self, row: dict[str, Any]) -> None:
        """Show one epoch's row."""
        self.modes.append(self._told(row)[1])
        if len(self._speeds) == 1 and len(self.modes) == 2:
            self._speeds.clear()  # the first epoch compiles, which says nothing about the others
        self._speeds.append(float(row["Time/FPS"]))
        if self.quiet:
            return
        if self._live is not None:
            self._live.update(self.panel(row), refresh=True)
        else:
            self.console.print(self.line(row), soft_wrap=True, markup=False)

    def line(self, row: dict[str, Any]) -> str:
        """Return the row as one plain line."""
        parts = [
            f"epoch {row['Train/Epoch'] + 1}/{self.cfg.epochs}",
            f"steps {row['TotalEnvSteps']}",
            f"return {_number(row.get('Epoch/EpRet'))}",
            f"cost {_number(row.get('Epoch/EpCost'))}/{self.cfg.cost_limit:g}{_over(row)}",
        ]
        if row.get("Gate/Budget") is not None:
            parts.append(f"bound {_number(row.get('Gate/Bound'), 3)}/{row['Gate/Budget']:g}")
        parts.append(self._told(row)[0] + (" (fallback)" if row.get("Gate/Fallback") else ""))
        parts += [f"{row['Time/FPS']:.0f} steps/s", f"{self._left(row)} left"]
        return "  ".join(parts)

    def panel(self, row: dict[str, Any]) -> Panel:
        """Return the row as the live panel."""
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", justify="right")
        grid.add_column()
        grid.add_row(
            "return", Text(f"{_number(row.get('Epoch/EpRet')):<{_BAR}}") + self._recent(row, "EpRet")
        )
        grid.add_row("cost", _cost(row, self.cfg.cost_limit) + self._recent(row, "EpCost"))
        if row.get("Gate/Budget") is not None:
            grid.add_row("bound", _bound(row))
            grid.add_row("", _terms(row))
        grid.add_row("mode", self._strip(row))
        done = (row["Train/Epoch"] + 1) / self.cfg.epochs
        pace = f"{row['Time/FPS']:,.0f} steps/s   {self._left(row)} left"
        grid.add_row("progress", _bar(done, 1.0, "cyan") + Text(f"  {done:.0%}   {pace}"))
        name = f"{self.cfg.algo.name} · {self.cfg.env} · seed {self.cfg.seed}"
        title = Text(f"{name} · epoch {row['Train/Epoch'] + 1}")  # names are not markup
        width = min(self.console.width, 88)
        return Panel(grid, title=title, title_align="left", border_style="dim", width=width)

    def _recent(self, row: dict[str, Any], name: str) -> Text:
        mean = _number(row.get(f"Metrics/{name}"))
        return Text(f"  last {self.cfg.window} episodes {mean}", style="dim")

    def _strip(self, row: dict[str, Any]) -> Text:
        strip = Text()
        for mode in self.modes:
            strip.append("█", style=STYLES[mode])
        name, mode = self._told(row)
        strip.append(f"  {name}", style=f"bold {STYLES[mode]}")
        if row.get("Gate/Fallback"):
            strip.append("  no episode finished: judged by older ones", style="yellow")
        return strip

    def _told(self, row: dict[str, Any]) -> tuple[str, Mode]:
        """Return what the step did; methods with an open gate raise reward whatever the cost."""
        name, mode = step_in_words(row)
        about = self.cfg.algo.about
        if about.gate != "open":
            return name, mode
        return (f"{name} within the budget", mode) if about.sees else ("reward alone", mode)

    def _left(self, row: dict[str, Any]) -> str:
        epochs = self.cfg.epochs - row["Train/Epoch"] - 1
        speed = len(self._speeds) / sum(1.0 / max(fps, 1e-9) for fps in self._speeds)
        minutes, seconds = divmod(round(epochs * self.cfg.steps_per_epoch / speed), 60)
        return (
            f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
            if minutes >= 60
            else f"{minutes}:{seconds:02d}"
        )


def _number(value: Any, digits: int = 2) -> str:
    return "-" if value is None or value != value else f"{value:.{digits}f}"


def _over(row: dict[str, Any]) -> str:
    """Return the share of the epoch's episodes that went over the limit, where the row has it."""
    share = row.get("Epoch/OverLimit")
    return "" if share is None else f" ({share:.0%} over)"


def _cost(row: dict[str, Any], limit: float) -> Text:
    cost = row.get("Epoch/EpCost")
    style = "green" if cost is not None and cost <= limit else "red"
    value = Text(f" {_number(cost)}", style=style if cost is not None else "yellow")
    return _bar(cost or 0.0, limit, style) + value.append(f" of {limit:g}{_over(row)}", "dim")


def _bar(value: float, full: float, style: str) -> Text:
    share = value / full if full > 0 else float(value > 0)
    filled = min(max(round(_BAR * share), 0), _BAR)
    return Text("━" * filled, style=style) + Text("━" * (_BAR - filled), style="grey30")


def _bound(row: dict[str, Any]) -> Text:
    """Return the bound as a bar of its terms, on a scale up to twice the budget, or up to the bound."""
    bound, budget = row.get("Gate/Bound"), float(row["Gate/Budget"])
    if bound is None or bound != bound:
        return Text("no finished episode", style="yellow")
    verdict = Text(f" {bound:.3f}", style="green" if bound <= budget else "red").append(
        f" of {budget:g}", "dim"
    )
    if row.get("Gate/Guarded"):
        return _bar(bound, 2.0 * budget, "green") + verdict
    full = max(2.0 * budget, bound, 1e-12)
    text, drawn, total = Text(), 0, 0.0
    for column, name in TERMS:
        total += float(row.get(column) or 0.0)
        width = max(min(round(_BAR * total / full), _BAR) - drawn, 0)
        text.append("━" * width, style=TERM_STYLES[name])
        drawn += width
    return text.append("━" * (_BAR - drawn), style="grey30") + verdict


def _terms(row: dict[str, Any]) -> Text:
    text = Text()
    for column, name in TERMS:
        text.append(f"{name} ", style=TERM_STYLES[name]).append(
            f"{_number(row.get(column), 3)}  ", style="dim"
        )
    if row.get("Gate/Guarded"):
        text.append("guard ", style="green").append("empirical risk decides", style="dim")
    return text
