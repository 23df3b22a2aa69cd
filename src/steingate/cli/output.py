"""Output of the commands: tables that look the same in a pipe, warnings, a progress bar for videos."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import floor

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from steingate.certificates.formatting import percent
from steingate.certificates.shift import ShiftRadius
from steingate.escaping import for_terminal

PIPE_WIDTH = 200  # columns of tables in a pipe, so that scripts and grep see whole rows


def warn(text: str) -> None:
    """Print a line to stderr."""
    print(for_terminal(text), file=sys.stderr)


def print_rows(title: str, rows: Iterable[tuple[str, str, str]], footer: str = "") -> None:
    """Print a title (rich markup), rows of name, value and comment, and a closing paragraph."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim")
    for row in rows:
        table.add_row(*(escape(for_terminal(cell)) for cell in row))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    with console.capture() as captured:
        console.print(for_terminal(title))
        console.print(table)
        if footer:
            console.print(escape(for_terminal(footer)), soft_wrap=not console.is_terminal)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def shift_rows(shift: ShiftRadius | None, risk: float) -> list[tuple[str, str, str]]:
    """Return the row of a verdict that says how much the episodes may change; none without a certificate."""
    if shift is None:
        return []
    variation, ratio = (floor(1000.0 * value) / 1000.0 for value in shift[:2])  # rounded down
    claim = f"total variation to deployment at which {percent(risk)} still holds"
    return [("shift", f"{variation:g}", f"{claim}; or no event more than {ratio:.4g} times as likely")]


@contextmanager
def progress_bar(console: Console | None = None) -> Iterator[Callable[..., None]]:
    """Show a progress bar on stderr if it is a terminal; yields ``update(description, completed=None, total=None)``."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = console or Console(file=sys.stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)

        def update(description: str, completed: int | None = None, total: int | None = None) -> None:
            bar.update(task, description=description, completed=completed, total=total)

        yield update
