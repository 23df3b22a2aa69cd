"""Terminal output of a run: one line per epoch, and messages."""

import os
import sys
from collections import deque
from contextlib import suppress
from datetime import timedelta
from typing import Any, TextIO

from steingate.algorithms.modes import describe_update
from steingate.escaping import for_terminal
from steingate.training.config import RunConfig


class Display:
    """Prints rows of ``progress.csv`` and messages; ``quiet`` prints only the result.

    If the output is closed or its disk is full, nothing more is printed and training goes on.
    """

    def __init__(self, cfg: RunConfig, quiet: bool = False, file: TextIO | None = None) -> None:
        self.cfg, self.quiet, self._file, self._closed = cfg, quiet, file or sys.stderr, False
        self._speeds: deque[float] = deque(maxlen=20)
        self._epochs = 0

    def message(self, text: str, result: bool = False) -> None:
        """Print a sentence, such as a warning; the ``result`` of the run is printed if quiet, too."""
        if self._closed or (self.quiet and not result):
            return
        try:
            print(for_terminal(text), file=self._file, flush=True)
        except (OSError, ValueError):  # ValueError: the file is closed
            self._closed = True
            with suppress(OSError, ValueError):  # what is buffered must not fail at exit either
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._file.fileno())

    def epoch(self, row: dict[str, Any]) -> None:
        """Print one epoch's row."""
        if self._epochs == 1:
            self._speeds.clear()  # the first epoch includes compilation
        self._epochs += 1
        self._speeds.append(float(row["Time/FPS"]))
        means = (row.get("Train/EpRet"), row.get("Train/EpCost"))
        ret, cost = ("-" if mean is None else f"{mean:.2f}" for mean in means)
        rate, bound = row.get("Train/ViolationRate"), row.get("Gate/Bound")
        fallback = " (no episode finished: decided by earlier ones)" * bool(row.get("Gate/Fallback"))
        parts = [
            f"epoch {row['Train/Epoch'] + 1}/{self.cfg.epochs}",
            f"steps {row['TotalEnvSteps']:,}",
            f"return {ret}",
            f"cost {cost}/{self.cfg.cost_limit:g}" + ("" if rate is None else f" ({100 * rate:.0f} % violations)"),
            "" if bound is None else f"risk bound {100 * bound:.1f} % (accepted {100 * row['Gate/Budget']:.3g} %)",
            f"{describe_update(row)[0]}{fallback}",
            f"{row['Time/FPS']:,.0f} steps/s",
            f"{self._time_left(row)} left" if self._epochs > 1 else "",
        ]
        self.message("  ".join(filter(None, parts)))

    def _time_left(self, row: dict[str, Any]) -> str:
        steps = (self.cfg.epochs - row["Train/Epoch"] - 1) * self.cfg.steps_per_epoch
        seconds = round(steps * sum(1.0 / max(fps, 1e-9) for fps in self._speeds) / len(self._speeds))
        return str(timedelta(seconds=seconds))
