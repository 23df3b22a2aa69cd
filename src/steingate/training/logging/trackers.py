"""Copies of ``progress.csv`` for TensorBoard and, on request, Weights & Biases."""

import time
from contextlib import ExitStack
from math import isfinite
from pathlib import Path
from typing import Any

from tensorboardX.proto.event_pb2 import Event
from tensorboardX.proto.summary_pb2 import Summary
from tensorboardX.record_writer import RecordWriter

from steingate.errors import MissingExtraError, RunError
from steingate.storage.files import writing
from steingate.storage.tables import read_progress


def _finite_numbers(row: dict[str, Any]) -> dict[str, float]:
    return {key: value for key, value in row.items() if isinstance(value, int | float) and isfinite(value)}


class TensorBoardLog:
    """Event file in the run folder: the numbers of each row as scalars over environment steps.

    An existing file is replaced by one with the rows of ``progress.csv``, so that a resumed run shows every epoch once.
    Records are written by this thread, so that a full disk raises an error; TensorBoard sees them when the file's
    buffer is flushed, every few epochs.
    """

    def __init__(self, run: Path) -> None:
        for old in run.glob("events.out.tfevents.*"):
            with writing(old):
                old.unlink(missing_ok=True)
        self.path, progress = run / f"events.out.tfevents.{int(time.time())}.steingate", run / "progress.csv"
        with writing(self.path):
            self._file = RecordWriter(str(self.path))
        with ExitStack() as stack:
            stack.callback(self.close)
            self._write(Event(wall_time=time.time(), file_version="brain.Event:2"))
            columns = read_progress(run) if progress.exists() and progress.stat().st_size else {}
            for values in zip(*columns.values(), strict=True):
                self.add(dict(zip(columns, values, strict=True)))
            stack.pop_all()

    def add(self, row: dict[str, Any]) -> None:
        """Write one epoch's finite numbers."""
        step = row.get("TotalEnvSteps")
        if not isinstance(step, int) or not 0 <= step < 2**63:
            raise RunError(f"{self.path.parent}/progress.csv is damaged: TotalEnvSteps is {step!r}; restore it.")
        scalars = [Summary.Value(tag=key, simple_value=value) for key, value in _finite_numbers(row).items()]
        self._write(Event(wall_time=time.time(), step=step, summary=Summary(value=scalars)))

    def close(self) -> None:
        """Flush the buffer and close the file."""
        with writing(self.path, "the last checkpoint is intact"):
            self._file.close()

    def _write(self, event: Event) -> None:
        with writing(self.path, "the last checkpoint is intact"):
            self._file.write(event.SerializeToString())


class WandbLog:
    """A run of a Weights & Biases project; ``WANDB_MODE=offline`` keeps the data on this machine.

    A resumed run continues the same W&B run: its id is made of the run folder's name and the ``identity`` of the run.
    """

    def __init__(self, project: str, run: Path, config: dict[str, Any], identity: str) -> None:
        try:
            import wandb
        except ImportError:
            raise MissingExtraError("Logging to Weights & Biases", "wandb") from None
        name = "-".join(run.parts[-3:])
        self._run = wandb.init(
            project=project, name=name, id=f"{name}-{identity[:8]}", resume="allow", dir=run, config=config,
            reinit="finish_previous",
        )  # fmt: skip

    def add(self, row: dict[str, Any]) -> None:
        """Send one epoch's finite numbers, over environment steps."""
        self._run.log(_finite_numbers(row), step=int(row["TotalEnvSteps"]))

    def close(self) -> None:
        """Send the remaining data and finish the run."""
        self._run.finish()
