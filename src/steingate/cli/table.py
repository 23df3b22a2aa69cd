"""Tables for people: the same text with and without a terminal, colors only where there is one."""

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table


def print_rows(title: str, rows: Iterable[tuple[str, str, str]], footer: str = "") -> None:
    """Print a title, rows of name, value and note, and a closing paragraph; ``title`` may use rich markup."""
    console = Console(highlight=False)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim")
    for name, value, note in rows:
        table.add_row(escape(name), escape(value), escape(note))
    if console.is_terminal:
        _print(console, title, table, footer)
        return
    # A pipe has no width: wrapping at 80 columns would tear rows apart, and padding helps nobody.
    wide = Console(highlight=False, width=200)
    with wide.capture() as captured:
        _print(wide, title, table, footer)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _print(console: Console, title: str, table: Table, footer: str) -> None:
    console.print(title)
    console.print(table)
    if footer:
        console.print(escape(footer), soft_wrap=not console.is_terminal)
