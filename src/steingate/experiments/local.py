"""Local engine: one process per run, each on its own CPU cores."""

import subprocess
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steingate.errors import InputError
from steingate.experiments.worker import GRACE, WorkerExit, job_text, start_worker, stop_worker, worker_exit
from steingate.tasks.validation import usable_cores
from steingate.training.config import RunConfig

_POLL = 0.05


class _Running(NamedTuple):
    cfg: RunConfig
    slot: int
    process: "subprocess.Popen[bytes]"


class LocalEngine:
    """Worker processes that are pinned to disjoint sets of cores; a context manager.

    Parameters
    ----------
    workers : number of runs at a time; None is one per core
    runs : number of runs to do; if there are fewer than cores, each gets several
    """

    def __init__(self, workers: int | None, runs: int) -> None:
        if workers is not None and workers < 1:
            raise InputError(f"--workers is {workers}: it must be at least 1.")
        cores = usable_cores()
        self.slots = max(min(workers or len(cores), runs), 1)
        self.cores = split_cores(cores, self.slots)
        self._running: list[_Running] = []

    def __enter__(self) -> "LocalEngine":
        return self

    def __exit__(self, *error: object) -> None:
        for running in self._running:
            running.process.kill()
            running.process.wait()
        self._running.clear()

    def start(self, cfg: RunConfig) -> None:
        """Start a run on the first free set of cores."""
        taken = {running.slot for running in self._running}
        slot = next(slot for slot in range(self.slots) if slot not in taken)
        process = start_worker(job_text(cfg, self.cores[slot]), cfg.path)
        self._running.append(_Running(cfg, slot, process))

    def wait(self, timeout: float) -> list[tuple[RunConfig, WorkerExit]]:
        """Return the runs that have ended, after at most ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        while not (done := [running for running in self._running if running.process.poll() is not None]):
            if time.monotonic() >= deadline:
                return []
            time.sleep(min(_POLL, timeout))
        for running in done:
            self._running.remove(running)
            stop_worker(running.process)
        return [(running.cfg, worker_exit(running.process, running.cfg.path)) for running in done]

    def stop(self) -> None:
        """Let every run write a checkpoint and end."""
        for running in self._running:
            stop_worker(running.process)
        deadline = time.monotonic() + GRACE
        while self._running and time.monotonic() < deadline:
            self.wait(1.0)


def split_cores(cores: Sequence[int], parts: int) -> list[list[int]]:
    """Divide cores into parts of neighbors; if there are more parts than cores, cores are used repeatedly.

    >>> split_cores([0, 1, 2, 3, 4], 2), split_cores([0, 1], 3)
    ([[0, 1, 2], [3, 4]], [[0], [1], [0]])
    """
    if parts >= len(cores):
        return [[cores[part % len(cores)]] for part in range(parts)]
    return [part.tolist() for part in np.array_split(cores, parts)]
