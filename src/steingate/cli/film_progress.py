"""How far a film is: a bar with its total on a terminal, nothing anywhere else."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn


class FilmProgress:
    """What is being done, and how many steps of how many are filmed."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task: TaskID = bar.add_task("", total=None)

    def say(self, text: str) -> None:
        """Show what is being done now."""
        self._bar.update(self._task, description=text)

    def steps(self, done: int, total: int | None) -> None:
        """Show how many steps are filmed, of how many if that is known."""
        self._bar.update(self._task, description="filming, steps", completed=done, total=total)


@contextmanager
def film_progress(console: Console | None = None) -> Iterator[FilmProgress]:
    """Show a bar on stderr that vanishes at the end; not a character where stderr is no terminal."""
    console = console or Console(file=sys.stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield FilmProgress(bar)
