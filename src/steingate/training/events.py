"""TensorBoard events in the run folder: a copy of ``progress.csv`` for another viewer."""

import logging
import math
from pathlib import Path
from types import TracebackType
from typing import Any

from steingate.runs import read_progress


class Events:
    """Writes each row's numbers as scalars over environment steps; a context manager.

    Old event files are dropped and their rows written again from ``progress.csv``, so a resumed run shows
    every epoch once.

    Parameters
    ----------
    run
        The run folder.
    """

    def __init__(self, run: Path) -> None:
        from tensorboardX import SummaryWriter

        logging.getLogger("tensorboardX").setLevel(logging.ERROR)
        for old in run.glob("events.out.tfevents.*"):
            old.unlink(missing_ok=True)
        self._writer = SummaryWriter(str(run), flush_secs=30)
        if (run / "progress.csv").exists() and (run / "progress.csv").stat().st_size:
            columns = read_progress(run)
            for values in zip(*columns.values(), strict=True):
                self.add(dict(zip(columns, values, strict=True)))

    def add(self, row: dict[str, Any]) -> None:
        """Write one epoch."""
        step = int(row["TotalEnvSteps"])
        for name, value in row.items():
            if isinstance(value, int | float) and math.isfinite(value):
                self._writer.add_scalar(name, value, step)

    def __enter__(self) -> "Events":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()
