"""TensorBoard events in the run folder: a copy of ``progress.csv`` for another viewer."""

from pathlib import Path
from typing import Any

from steingate.runs import read_progress
from steingate.storage.tfevents import EventFile


class Events:
    """Writes each row's numbers as scalars over environment steps.

    Old event files are dropped and their rows written again from ``progress.csv``, so a resumed run shows
    every epoch once.

    Parameters
    ----------
    run
        The run folder.
    """

    def __init__(self, run: Path) -> None:
        for old in run.glob("events.out.tfevents.*"):
            old.unlink(missing_ok=True)
        self._file = EventFile(run)
        if (run / "progress.csv").exists() and (run / "progress.csv").stat().st_size:
            columns = read_progress(run)
            for values in zip(*columns.values(), strict=True):
                self.add(dict(zip(columns, values, strict=True)))

    def add(self, row: dict[str, Any]) -> None:
        """Write one epoch."""
        scalars = {name: value for name, value in row.items() if isinstance(value, int | float)}
        self._file.add(int(row["TotalEnvSteps"]), scalars)
