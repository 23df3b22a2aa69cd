"""Runs on a Ray cluster, or on a local one of its own: the same worker process as anywhere, in a Ray task.

Ray decides on which machine a run goes on. All that a run leaves behind is in its folder, which every machine
must see, so a run whose worker or machine is lost goes on elsewhere from its last checkpoint.
"""

import os
import socket
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from steingate.bench.process import Ending, ask_to_stop, ending, job_text, start
from steingate.bench.worker import GRACE
from steingate.errors import InputError, MissingExtraError, RunError
from steingate.training.config import RunConfig

_GLANCE = 0.1
_CONNECT_SECONDS = 10.0
_OBJECT_STORE_BYTES = 100 << 20  # nothing but short texts goes through it


class RayEngine:
    """Ray tasks of one CPU each. A context manager; leaving it lets go of the cluster.

    Parameters
    ----------
    workers
        Runs at a time; as many as the cluster has CPUs by default.
    runs
        How many there are to do.
    address
        A cluster, such as ``auto`` or ``ray://host:10001``; by default one is started on this machine and
        ended afterwards.
    """

    def __init__(self, workers: int | None, runs: int, address: str | None = None) -> None:
        if workers is not None and workers < 1:
            raise InputError(f"--workers is {workers}: at least one is needed.")
        self._ray = _import_ray()
        self._address = address
        self._workers, self._runs = workers, runs
        self._running: dict[Any, RunConfig] = {}
        self.slots = 1

    def __enter__(self) -> "RayEngine":
        ray = self._ray
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        if self._address is None:
            # Ray would kill what its workers started when the driver dies; ours save first and then leave.
            os.environ.setdefault("RAY_kill_child_processes_on_worker_exit", "false")
            options |= {
                "address": "local",  # never one that happens to run here
                "num_cpus": self._workers,
                "include_dashboard": False,
                "object_store_memory": _OBJECT_STORE_BYTES,
            }
        else:
            options["address"] = self._address
        try:
            _require_listener(self._address)
            ray.init(**options)
        except (OSError, ValueError, RuntimeError) as error:
            where = self._address or "this machine"
            raise RunError(f"No Ray cluster answers at {where}: {_first_line(error)}.") from error
        cpus = int(ray.cluster_resources().get("CPU", 1))
        self.slots = max(min(self._workers or cpus, self._runs), 1)
        self._task = ray.remote(num_cpus=1, max_retries=0)(_run)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cancel()
        self._ray.shutdown()

    def start(self, cfg: RunConfig) -> None:
        """Hand a run to the cluster, with the absolute path of its folder."""
        # Ray does not pin its workers, so one simulation thread keeps a run to about one core.
        whole = replace(cfg, out=str(Path(cfg.out).resolve()), threads=cfg.threads or 1)
        self._running[self._task.remote(job_text(whole), str(whole.path), os.getcwd())] = cfg

    def ended(self, timeout: float) -> list[tuple[RunConfig, Ending]]:
        """Return the runs that ended, as soon as there is one or the time is up."""
        tasks = list(self._running)
        done, _ = self._ray.wait(tasks, num_returns=1, timeout=timeout)
        if done:
            done, _ = self._ray.wait(tasks, num_returns=len(tasks), timeout=0.0)
        return [(self._running.pop(task), self._ending(task)) for task in done]

    def stop(self) -> None:
        """Let every run write a checkpoint and end."""
        self._cancel()
        if self._running:
            self._ray.wait(list(self._running), num_returns=len(self._running), timeout=GRACE)
        self._running.clear()

    def _cancel(self) -> None:
        for task in self._running:
            self._ray.cancel(task)

    def _ending(self, task: Any) -> Ending:
        errors = self._ray.exceptions
        try:
            kind, message = self._ray.get(task)
        except errors.RayTaskError as error:
            return Ending("failed", f"{_first_line(error.cause or error)}.")
        except errors.RayError as error:
            # Its worker, its machine or the way to it is gone; what it computed is in the run folder.
            return Ending("lost", f"Ray reported {type(error).__name__}")
        return Ending(kind, message)


def _run(job: str, run: str, folder: str) -> tuple[str, str]:
    """Run a job in a worker process on the machine where Ray put this task; return its ending."""
    with suppress(OSError):
        os.chdir(folder)  # so that a task of the user's own, module:Class, is found as it is locally
    process = start(job, Path(run))
    try:
        # Looking now and then instead of waiting, because Ray interrupts Python code only.
        while process.poll() is None:
            time.sleep(_GLANCE)
    finally:
        ask_to_stop(process)
        process.wait()
    kind, message = ending(process.returncode, Path(run))
    return kind, message


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ModuleNotFoundError as error:
        raise MissingExtraError("steingate bench --engine ray", "ray") from error
    return ray


def _require_listener(address: str | None) -> None:
    """Raise an ``OSError`` unless somebody listens at ``host:port``; Ray itself would try for minutes."""
    host, colon, port = (address or "").rpartition("://")[2].rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
