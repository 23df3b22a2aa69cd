"""What ``steingate monitor`` shows: a live table on a terminal, lines elsewhere, a summary at the end."""

from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from steingate.cli.table import print_rows
from steingate.monitoring.monitor import Monitor
from steingate.monitoring.several import Monitors


class Display:
    """A live table where there is a terminal; elsewhere only events are printed.

    Parameters
    ----------
    monitor
        What to show.
    quiet
        Show nothing at all.
    """

    def __init__(self, monitor: Monitor | Monitors, quiet: bool = False) -> None:
        self._monitor, self._quiet = monitor, quiet
        self._console = Console(highlight=False)
        self._live: Live | None = None
        if self._console.is_terminal and not quiet:
            self._live = Live(
                get_renderable=lambda: live_table(monitor),
                console=self._console,
                refresh_per_second=4,
                transient=True,
            )

    def __enter__(self) -> "Display":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def event(self, text: str) -> None:
        """Print a line that stays."""
        if not self._quiet:
            self._console.print(text, markup=False, soft_wrap=True)

    def refresh(self) -> None:
        """Let a pipe's reader have what was printed; a terminal refreshes itself."""
        if self._live is None and not self._quiet:
            self._console.file.flush()


def live_table(monitor: Monitor | Monitors) -> Table:
    """Return one row per cost: how many episodes, how many over, bound, and state."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("cost", "episodes", "over", "bound", "budget", "p", "drift", "state"):
        table.add_column(name, justify="left" if name in ("cost", "state") else "right", no_wrap=True)
    for name, part in _parts(monitor).items():
        drift = part.drift
        table.add_row(
            escape(name),
            str(part.episodes),
            str(part.over),
            f"{part.bound:.4f}",
            f"{part.budget:g}",
            f"{part.p_value:.2g}",
            f"{drift.evidence:.3g} / {drift.run_length:g}",
            _state(part),
        )
    return table


def show(monitor: Monitor | Monitors) -> None:
    """Print what is known, with every number."""
    for index, (name, part) in enumerate(_parts(monitor).items()):
        if index:
            print()
        label = f" of {escape(name)}" if isinstance(monitor, Monitors) else ""
        print_rows(f"[bold]Monitor{label}[/bold]: {_state(part)}", _rows(part), part.sentence)


def _rows(monitor: Monitor) -> list[tuple[str, str, str]]:
    numbers = monitor.summary()
    drift = monitor.drift
    seen = monitor.over / monitor.episodes if monitor.episodes else 0.0
    alarms = ", ".join(map(str, drift.alarms)) or "none"
    return [
        ("episodes", str(monitor.episodes), f"worst cost {monitor.worst:g}"),
        ("over the limit", str(monitor.over), f"{seen:.1%} of episodes; the limit is {monitor.limit:g}"),
        (
            "bound",
            f"{monitor.bound:.4f}",
            f"on P(cost > {monitor.limit:g}); budget {monitor.budget:g}",
        ),
        ("p-value", f"{monitor.p_value:.3g}", f"of being over the budget; delta is {monitor.delta:g}"),
        ("soft risk", f"{numbers['soft_bound']:.4f}", "bound on its mean"),
        ("mean cost", f"{numbers['mean_bound']:.4g}", f"bound; costs above {monitor.cap:g} count as that"),
        ("CVaR 10%", f"{numbers['cvar_bound']:.4g}", "bound on the mean of the worst tenth, likewise"),
        (
            "drift",
            f"{drift.evidence:.3g}",
            f"alarm at {drift.run_length:g}, baseline {drift.baseline:.4g}; alarms at: {alarms}",
        ),
    ]


def _state(monitor: Monitor) -> str:
    if monitor.unsafe:
        return "[bold red]UNSAFE[/]"
    if monitor.detector.alarm:
        return "[bold red]DRIFT[/]"
    return "[bold green]CERTIFIED[/]" if monitor.certified else "[bold yellow]UNDECIDED[/]"


def _parts(monitor: Monitor | Monitors) -> dict[str, Monitor]:
    return dict(monitor) if isinstance(monitor, Monitors) else {"cost": monitor}
