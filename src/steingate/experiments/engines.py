"""Engines: workers on the cores of this machine, or as tasks of a Ray cluster. Both are context managers.

``slots`` is the number of runs at a time, ``start`` starts or continues a run, ``wait`` returns the runs that have
ended, and ``stop`` lets all runs write a checkpoint and end.
"""

import os
import secrets
import socket
from collections.abc import Sequence
from concurrent import futures
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from threading import Event
from typing import Any

import numpy as np

from steingate.errors import InputError, RunError, needs
from steingate.experiments.worker import GRACE, WorkerExit, job_text, run_worker
from steingate.tasks.validation import usable_cores
from steingate.training.config import RunConfig

LOCAL = "local"
_CONNECT_SECONDS = 10.0


class LocalEngine:
    """Worker processes that are pinned to disjoint sets of cores.

    Parameters
    ----------
    workers : number of runs at a time; None is one per core
    runs : number of runs to do; if there are fewer than cores, each gets several
    """

    def __init__(self, workers: int | None, runs: int) -> None:
        cores = usable_cores()
        self.slots = _slots(workers, len(cores), runs)
        self.cores = split_cores(cores, self.slots)
        self._free: SimpleQueue[list[int]] = SimpleQueue()
        for part in self.cores:
            self._free.put(part)
        self._threads = futures.ThreadPoolExecutor(self.slots)
        self._running: dict[futures.Future[WorkerExit], RunConfig] = {}
        self._stop = Event()

    def __enter__(self) -> "LocalEngine":
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._threads.shutdown()

    def start(self, cfg: RunConfig) -> None:
        """Start a run on the first free set of cores."""
        self._running[self._threads.submit(self._work, cfg)] = cfg

    def _work(self, cfg: RunConfig) -> WorkerExit:
        cores = self._free.get()
        try:
            return run_worker(job_text(cfg, cores), cfg.path, self._stop.is_set)
        finally:
            self._free.put(cores)

    def wait(self, timeout: float) -> list[tuple[RunConfig, WorkerExit]]:
        """Return the runs that have ended, after at most ``timeout`` seconds."""
        done, _ = futures.wait(self._running, timeout, futures.FIRST_COMPLETED)
        return [(self._running.pop(task), task.result()) for task in done]

    def stop(self) -> None:
        """Let every run write a checkpoint and end."""
        self._stop.set()
        futures.wait(self._running)


class RayEngine:
    """Ray tasks of one CPU, each of which starts the same worker process as the local engine.

    All machines must see the run folders under the same path. Ray queues tasks until a CPU is free; a run whose
    machine is lost continues on another one from its last checkpoint.

    Parameters
    ----------
    workers : number of runs at a time; None is as many as the cluster has CPUs
    runs : number of runs to do
    address : ``local`` starts a cluster on this machine; ``auto`` or ``HOST:PORT`` connects to one
    """

    def __init__(self, workers: int | None, runs: int, address: str = LOCAL) -> None:
        self.slots = _slots(workers, runs, runs)
        if address == LOCAL and "RAY_AUTH_MODE" not in os.environ:  # must be set before Ray is imported
            os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # Workers notice the end of their Ray task and write a checkpoint; Ray must not kill them before.
        os.environ.setdefault("RAY_kill_child_processes_on_worker_exit", "false")
        with needs("steingate bench --ray", "ray"):
            import ray
        self._ray: Any = ray
        self._address, self._workers = address, workers
        self._running: dict[Any, RunConfig] = {}

    def __enter__(self) -> "RayEngine":
        options: dict[str, Any] = {"address": self._address, "log_to_driver": False, "logging_level": "error"}
        if self._address == LOCAL:
            options |= {"num_cpus": self._workers, "include_dashboard": False}
        host, _, port = self._address.rpartition("://")[2].rpartition(":")
        try:
            if port.isdigit():  # Ray would try for minutes
                socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
            self._ray.init(**options)
        except (OSError, ValueError, RuntimeError) as error:
            raise RunError(f"No Ray cluster answers at {self._address}: {_first_line(error)}.") from error
        self._task = self._ray.remote(num_cpus=1, max_retries=0)(_run_in_folder)
        return self

    def __exit__(self, *error: object) -> None:
        self._cancel()
        self._ray.shutdown()

    def start(self, cfg: RunConfig) -> None:
        """Submit a run with the absolute path of its folder, and with one simulation thread."""
        absolute = replace(cfg, out=str(Path(cfg.out).resolve()), threads=cfg.threads or 1)
        self._running[self._task.remote(job_text(absolute), str(absolute.path), os.getcwd())] = cfg

    def wait(self, timeout: float) -> list[tuple[RunConfig, WorkerExit]]:
        """Return the runs that have ended, after at most ``timeout`` seconds."""
        done, _ = self._ray.wait(list(self._running), num_returns=1, timeout=timeout)
        return [(self._running.pop(task), self._exit(task)) for task in done]

    def stop(self) -> None:
        """Let every run write a checkpoint and end."""
        self._cancel()
        self._ray.wait(list(self._running), num_returns=len(self._running), timeout=GRACE)
        self._running.clear()

    def _cancel(self) -> None:
        for task in self._running:
            self._ray.cancel(task)

    def _exit(self, task: Any) -> WorkerExit:
        try:
            return WorkerExit(*self._ray.get(task))
        except self._ray.exceptions.RayTaskError as error:
            return WorkerExit("failed", f"{_first_line(error.cause or error)}.")
        except self._ray.exceptions.NodeDiedError:
            return WorkerExit("lost", "its Ray node is gone")
        except self._ray.exceptions.RayError as error:
            return WorkerExit("lost", f"Ray reported {type(error).__name__}")


def split_cores(cores: Sequence[int], parts: int) -> list[list[int]]:
    """Divide cores into parts of neighbors; if there are more parts than cores, cores are used repeatedly.

    >>> split_cores([0, 1, 2, 3, 4], 2), split_cores([0, 1], 3)
    ([[0, 1, 2], [3, 4]], [[0], [1], [0]])
    """
    if parts >= len(cores):
        return [[cores[part % len(cores)]] for part in range(parts)]
    return [part.tolist() for part in np.array_split(cores, parts)]


def _slots(workers: int | None, default: int, runs: int) -> int:
    if workers is not None and workers < 1:
        raise InputError(f"--workers is {workers}: it must be at least 1.")
    return max(min(workers or default, runs), 1)


def _run_in_folder(job: str, run: str, folder: str) -> tuple[str, str]:
    """Run a worker to its end on the machine where Ray has placed this task."""
    with suppress(OSError):
        os.chdir(folder)  # ``module:Class`` is imported from the working directory
    kind, message = run_worker(job, Path(run))
    return kind, message


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
