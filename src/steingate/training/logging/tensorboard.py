"""TensorBoard event files: a copy of ``progress.csv`` in the run folder."""

import math
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tensorboardX.proto.event_pb2 import Event
from tensorboardX.proto.summary_pb2 import Summary
from tensorboardX.record_writer import RecordWriter

from steingate.errors import RunError
from steingate.runs import read_progress
from steingate.storage.files import writing


class Events:
    """Writes each row's numbers as scalars over environment steps.

    Existing event files are replaced, with the rows of ``progress.csv``, so that a resumed run shows every
    epoch once. Records are written by this thread, so that a full disk raises an error; TensorBoard sees them
    when the file's buffer is flushed, every few epochs.

    Parameters
    ----------
    run
        The run folder.
    """

    def __init__(self, run: Path) -> None:
        for old in run.glob("events.out.tfevents.*"):
            with writing(old):
                old.unlink(missing_ok=True)
        self.path = run / f"events.out.tfevents.{int(time.time())}.steingate"
        with writing(self.path):
            self._file = RecordWriter(str(self.path))
        with ExitStack() as stack:
            stack.callback(self.close)
            self._write(Event(wall_time=time.time(), file_version="brain.Event:2"))
            if (run / "progress.csv").exists() and (run / "progress.csv").stat().st_size:
                columns = read_progress(run)
                for values in zip(*columns.values(), strict=True):
                    self.add(dict(zip(columns, values, strict=True)))
            stack.pop_all()

    def add(self, row: dict[str, Any]) -> None:
        """Write one epoch's finite numbers."""
        scalars = [
            Summary.Value(tag=name, simple_value=value)
            for name, value in row.items()
            if isinstance(value, int | float) and math.isfinite(value)
        ]
        step = row.get("TotalEnvSteps")
        if not isinstance(step, int) or not 0 <= step < 2**63:
            raise RunError(
                f"{self.path.parent}/progress.csv is damaged: TotalEnvSteps is {step!r}; restore it."
            )
        self._write(Event(wall_time=time.time(), step=step, summary=Summary(value=scalars)))

    def close(self) -> None:
        """Flush the buffer and close the file."""
        with writing(self.path, "the last checkpoint is intact"):
            self._file.close()

    def _write(self, event: Event) -> None:
        with writing(self.path, "the last checkpoint is intact"):
            self._file.write(event.SerializeToString())
