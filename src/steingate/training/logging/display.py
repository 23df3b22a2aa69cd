"""Terminal output of a run: a live panel on a terminal, one line per epoch elsewhere."""

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

STYLES = ("green", "yellow", "red")  # by mode
TERMS = (  # column, label, style
    ("Gate/ReferenceRisk", "reference", "blue"),
    ("Gate/DiscreteTerm", "atoms", "red"),
    ("Gate/InteriorTerm", "interior", "yellow"),
)
_MAX_MODES = 60
_BAR = 30


class Display:
    """Shows rows of ``progress.csv`` during training; a context manager that restores the terminal.

    Parameters
    ----------
    cfg
        The run.
    console
        Console to print to; stderr by default.
    quiet
        Show nothing.
    """

    def __init__(self, cfg: RunConfig, console: Console | None = None, quiet: bool = False) -> None:
        self.cfg = cfg
        self.console = console or Console(file=sys.stderr, highlight=False)
        self.quiet = quiet
        self._modes: deque[int] = deque(maxlen=_MAX_MODES)
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

    def message(self, text: str) -> None:
        """Print a sentence, such as a warning, above the panel."""
        if not self.quiet:
            self.console.print(text, soft_wrap=True, markup=False)

    def epoch(self, row: dict[str, Any]) -> None:
        """Show one epoch's row."""
        self._modes.append(self._step(row)[1])
        if len(self._speeds) == 1 and len(self._modes) == 2:
            self._speeds.clear()  # the first epoch includes compilation
        self._speeds.append(float(row["Time/FPS"]))
        if self.quiet:
            return
        if self._live is not None:
            self._live.update(self._panel(row), refresh=True)
        else:
            self.console.print(self._line(row), soft_wrap=True, markup=False)

    def _line(self, row: dict[str, Any]) -> str:
        parts = [
            f"epoch {row['Train/Epoch'] + 1}/{self.cfg.epochs}",
            f"steps {row['TotalEnvSteps']}",
            f"return {_number(row.get('Train/EpRet'))}",
            f"cost {_number(row.get('Train/EpCost'))}/{self.cfg.cost_limit:g}{_violations(row)}",
        ]
        if row.get("Gate/Budget") is not None:
            parts.append(f"bound {_number(row.get('Gate/Bound'), 3)}/{row['Gate/Budget']:g}")
        parts.append(self._step(row)[0] + (" (fallback)" if row.get("Gate/Fallback") else ""))
        parts += [f"{row['Time/FPS']:.0f} steps/s", f"{self._left(row)} left"]
        return "  ".join(parts)

    def _panel(self, row: dict[str, Any]) -> Panel:
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", justify="right")
        grid.add_column()
        ret = Text(f"{_number(row.get('Train/EpRet')):<{_BAR}}")
        grid.add_row("return", ret + self._recent(row, "EpRet"))
        grid.add_row("cost", _cost(row, self.cfg.cost_limit) + self._recent(row, "EpCost"))
        if row.get("Gate/Budget") is not None:
            grid.add_row("bound", _bound(row))
            grid.add_row("", _terms(row))
        grid.add_row("mode", self._mode_strip(row))
        done = (row["Train/Epoch"] + 1) / self.cfg.epochs
        speed = f"{row['Time/FPS']:,.0f} steps/s   {self._left(row)} left"
        grid.add_row("progress", _bar(done, 1.0, "cyan") + Text(f"  {done:.0%}   {speed}"))
        name = f"{self.cfg.algo.name} · {self.cfg.env} · seed {self.cfg.seed}"
        title = Text(f"{name} · epoch {row['Train/Epoch'] + 1}")  # a Text, because names are not markup
        width = min(self.console.width, 88)
        return Panel(grid, title=title, title_align="left", border_style="dim", width=width)

    def _recent(self, row: dict[str, Any], name: str) -> Text:
        mean = _number(row.get(f"Metrics/{name}"))
        return Text(f"  last {self.cfg.window} episodes {mean}", style="dim")

    def _mode_strip(self, row: dict[str, Any]) -> Text:
        strip = Text()
        for mode in self._modes:
            strip.append("█", style=STYLES[mode])
        name, mode = self._step(row)
        strip.append(f"  {name}", style=f"bold {STYLES[mode]}")
        if row.get("Gate/Fallback"):
            strip.append("  no episode finished: decided by earlier ones", style="yellow")
        return strip

    def _step(self, row: dict[str, Any]) -> tuple[str, Mode]:
        """Return a description of the policy step and its mode; an open gate always improves reward."""
        name, mode = step_in_words(row)
        about = self.cfg.algo.about
        if about.gate != "open":
            return name, mode
        return (f"{name} within the budget", mode) if about.sees else ("reward only", mode)

    def _left(self, row: dict[str, Any]) -> str:
        epochs = self.cfg.epochs - row["Train/Epoch"] - 1
        speed = len(self._speeds) / sum(1.0 / max(fps, 1e-9) for fps in self._speeds)
        minutes, seconds = divmod(round(epochs * self.cfg.steps_per_epoch / speed), 60)
        if minutes < 60:
            return f"{minutes}:{seconds:02d}"
        return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"


def _number(value: Any, digits: int = 2) -> str:
    return "-" if value is None or value != value else f"{value:.{digits}f}"


def _violations(row: dict[str, Any]) -> str:
    rate = row.get("Train/ViolationRate")
    return "" if rate is None else f" ({rate:.0%} violations)"


def _cost(row: dict[str, Any], limit: float) -> Text:
    cost = row.get("Train/EpCost")
    style = "green" if cost is not None and cost <= limit else "red"
    value = Text(f" {_number(cost)}", style=style if cost is not None else "yellow")
    return _bar(cost or 0.0, limit, style) + value.append(f" of {limit:g}{_violations(row)}", "dim")


def _bar(value: float, full: float, style: str) -> Text:
    fraction = value / full if full > 0 else float(value > 0)
    filled = min(max(round(_BAR * fraction), 0), _BAR)
    return Text("━" * filled, style=style) + Text("━" * (_BAR - filled), style="grey30")


def _bound(row: dict[str, Any]) -> Text:
    """Return the bound as a bar of its terms; the scale ends at twice the budget, or at the bound."""
    bound, budget = row.get("Gate/Bound"), float(row["Gate/Budget"])
    if bound is None or bound != bound:
        return Text("no finished episode", style="yellow")
    value = Text(f" {bound:.3f}", style="green" if bound <= budget else "red").append(
        f" of {budget:g}", "dim"
    )
    if row.get("Gate/Guarded"):
        return _bar(bound, 2.0 * budget, "green") + value
    full = max(2.0 * budget, bound, 1e-12)
    text, drawn, total = Text(), 0, 0.0
    for name, _, style in TERMS:
        total += float(row.get(name) or 0.0)
        width = max(min(round(_BAR * total / full), _BAR) - drawn, 0)
        text.append("━" * width, style=style)
        drawn += width
    return text.append("━" * (_BAR - drawn), style="grey30") + value


def _terms(row: dict[str, Any]) -> Text:
    text = Text()
    for name, label, style in TERMS:
        text.append(f"{label} ", style=style).append(f"{_number(row.get(name), 3)}  ", style="dim")
    if row.get("Gate/Guarded"):
        text.append("guard ", style="green").append("empirical risk decides", style="dim")
    return text
