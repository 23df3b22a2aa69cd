"""Runs on this machine: one process each, on cores of its own."""

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import TracebackType

from steingate.errors import InputError
from steingate.experiments.process import Ending, ask_to_stop, ending, job_text, start
from steingate.experiments.worker import GRACE
from steingate.training.config import RunConfig

_GLANCE = 0.05


@dataclass(frozen=True)
class _Running:
    cfg: RunConfig
    slot: int
    process: "subprocess.Popen[bytes]"


class LocalEngine:
    """Worker processes pinned to cores so that they do not fight for them.

    A context manager; leaving it ends what is still running.

    Parameters
    ----------
    workers
        Runs at a time; as many as there are cores by default.
    runs
        How many there are to do: few runs share all cores.
    """

    def __init__(self, workers: int | None, runs: int) -> None:
        if workers is not None and workers < 1:
            raise InputError(f"--workers is {workers}: at least one is needed.")
        cores = available_cores()
        self.slots = max(min(workers or len(cores), runs), 1)
        self.shares = share_cores(cores, self.slots)
        self._running: list[_Running] = []

    def __enter__(self) -> "LocalEngine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for running in self._running:
            running.process.kill()
            running.process.wait()
        self._running.clear()

    def start(self, cfg: RunConfig) -> None:
        """Start a run on the first free share of the cores."""
        taken = {running.slot for running in self._running}
        slot = next(slot for slot in range(self.slots) if slot not in taken)
        process = start(job_text(cfg, self.shares[slot]), cfg.path)
        self._running.append(_Running(cfg, slot, process))

    def ended(self, timeout: float) -> list[tuple[RunConfig, Ending]]:
        """Return the runs that ended, as soon as there is one or the time is up."""
        patience = time.monotonic() + timeout
        while not (done := [each for each in self._running if each.process.poll() is not None]):
            if time.monotonic() >= patience:
                return []
            time.sleep(min(_GLANCE, timeout))
        for each in done:
            self._running.remove(each)
            ask_to_stop(each.process)
        return [(each.cfg, ending(each.process.returncode, each.cfg.path)) for each in done]

    def stop(self) -> None:
        """Let every run write a checkpoint and end."""
        for running in self._running:
            ask_to_stop(running.process)
        patience = time.monotonic() + GRACE
        while self._running and time.monotonic() < patience:
            self.ended(1.0)


def available_cores() -> list[int]:
    """Return the cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def share_cores(cores: Sequence[int], shares: int) -> list[list[int]]:
    """Return neighboring cores for each share; more shares than cores take turns."""
    count = len(cores)
    if shares >= count:
        return [[cores[share % count]] for share in range(shares)]
    edges = [count * share // shares for share in range(shares + 1)]
    return [list(cores[low:high]) for low, high in pairwise(edges)]
