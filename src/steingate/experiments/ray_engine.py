"""Runs on a Ray cluster, or on a local one of its own: the same worker process as anywhere, in a Ray task.

Ray decides on which machine a run goes on. All that a run leaves behind is in its folder, which every machine
must see, so a run whose worker or machine is lost goes on elsewhere from its last checkpoint.
"""

import os
import socket
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from steingate.errors import InputError, MissingExtraError, RunError
from steingate.experiments.local import available_cores
from steingate.experiments.process import Ending, ask_to_stop, ending, job_text, start
from steingate.experiments.ray_nodes import OBJECT_STORE_BYTES, Node, guard, local_nodes, wait_for
from steingate.experiments.worker import GRACE
from steingate.training.config import RunConfig

_GLANCE = 0.1
_CONNECT_SECONDS = 10.0
_LOOK_EVERY = 2.0  # seconds between looks at the cluster
_HEAD_PATIENCE = 30.0  # seconds; after 60 Ray would end this process without a word of ours
_NODE_PATIENCE = 60.0  # seconds in which Ray should stop counting the CPUs of a dead node


class RayEngine:
    """Ray tasks of one CPU each. A context manager; leaving it lets go of the cluster.

    ``slots`` follows the cluster: it falls when a node is lost and rises when one joins.

    Parameters
    ----------
    workers
        Runs at a time; as many as the cluster has CPUs by default. More than that wait in Ray's queue.
    runs
        How many there are to do.
    address
        A cluster, such as ``auto`` or ``ray://host:10001``; by default one is started on this machine and
        ended afterwards.
    nodes
        Start that cluster with so many nodes, which share the workers.
    """

    def __init__(
        self, workers: int | None, runs: int, address: str | None = None, nodes: int | None = None
    ) -> None:
        if workers is not None and workers < 1:
            raise InputError(f"--workers is {workers}: at least one is needed.")
        self._shares = [] if nodes is None else share_cpus(workers, nodes)
        if address is None:
            guard()
        self._ray = _import_ray()
        self._address = address
        self._workers, self._runs = workers, runs
        self._running: dict[Any, RunConfig] = {}
        self._look_next = self._recount_until = 0.0
        self._silent_since: float | None = None
        self.slots = 1

    def __enter__(self) -> "RayEngine":
        with ExitStack() as stack:
            if self._address is None:
                # Ray would kill what its workers started when the driver dies; ours save before they leave.
                os.environ.setdefault("RAY_kill_child_processes_on_worker_exit", "false")
            processes: list[Node] = []
            if self._shares:
                self._address, processes = stack.enter_context(local_nodes(self._shares))
                self._workers = None  # as many as there are CPUs, also when there are fewer
            stack.callback(self._ray.shutdown)
            self._connect()
            if processes:
                wait_for(lambda: self._cpus() >= sum(self._shares), processes)
                pids = ", ".join(str(process.pid) for process in processes)
                print(f"Ray nodes on this machine, the head first: processes {pids}.", file=sys.stderr)
            self._cluster = stack.pop_all()
        self._counted = self._cpus()
        self.slots = self._room()
        self._task = self._ray.remote(num_cpus=1, max_retries=0)(_run)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._cluster:
            self._cancel()

    def _connect(self) -> None:
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        if self._address is None:
            options |= {
                "address": "local",  # never one that happens to run here
                "num_cpus": self._workers,
                "include_dashboard": False,
                "object_store_memory": OBJECT_STORE_BYTES,
            }
        else:
            options["address"] = self._address
        try:
            _require_listener(self._address)
            self._ray.init(**options)
        except (OSError, ValueError, RuntimeError) as error:
            where = self._address or "this machine"
            raise RunError(f"No Ray cluster answers at {where}: {_first_line(error)}.") from error
        known = self._address is not None and ":" in self._address
        self._head = self._address if known else self._ray.get_runtime_context().gcs_address

    def start(self, cfg: RunConfig) -> None:
        """Hand a run to the cluster, with the absolute path of its folder."""
        # Ray does not pin its workers, so one simulation thread keeps a run to about one core.
        whole = replace(cfg, out=str(Path(cfg.out).resolve()), threads=cfg.threads or 1)
        self._running[self._task.remote(job_text(whole), str(whole.path), os.getcwd())] = cfg

    def ended(self, timeout: float) -> list[tuple[RunConfig, Ending]]:
        """Return the runs that ended, as soon as there is one or the time is up."""
        tasks = list(self._running)
        if not tasks:
            time.sleep(timeout)
        done = tasks and self._ray.wait(tasks, num_returns=1, timeout=timeout)[0]
        if done:
            done, _ = self._ray.wait(tasks, num_returns=len(tasks), timeout=0.0)
        endings = [(self._running.pop(task), self._ending(task)) for task in done]
        self._look()
        return endings

    def stop(self) -> None:
        """Let every run write a checkpoint and end."""
        self._cancel()
        if self._running:
            self._ray.wait(list(self._running), num_returns=len(self._running), timeout=GRACE)
        self._running.clear()

    def _look(self) -> None:
        """Now and then count the room there is, and raise a ``RunError`` when the head stays silent."""
        now = time.monotonic()
        if now < self._look_next:
            return
        self._look_next = now + _LOOK_EVERY
        try:
            _require_listener(self._head)  # because Ray's own calls would wait for it
        except OSError as error:
            self.slots = 0
            self._silent_since = self._silent_since or now
            if time.monotonic() - self._silent_since < _HEAD_PATIENCE:
                return
            raise RunError(
                f"The head of the Ray cluster at {self._head} is lost; its runs save what they have and end, "
                "and the same command goes on with them."
            ) from error
        self._silent_since = None
        cpus = self._cpus()
        if cpus != self._counted or now >= self._recount_until:
            self._counted, self._recount_until = cpus, 0.0
            self.slots = self._room()

    def _room(self) -> int:
        return max(min(self._workers or self._counted, self._runs), 1)

    def _cpus(self) -> int:
        return int(self._ray.cluster_resources().get("CPU", 0))

    def _cancel(self) -> None:
        for task in self._running:
            self._ray.cancel(task)

    def _ending(self, task: Any) -> Ending:
        errors = self._ray.exceptions
        try:
            kind, message = self._ray.get(task)
        except errors.RayTaskError as error:
            return Ending("failed", f"{_first_line(error.cause or error)}.")
        except errors.NodeDiedError:
            # Nothing new until Ray has noticed too: it would wait for the CPUs of the dead node.
            self.slots, self._look_next = len(self._running), 0.0
            self._recount_until = time.monotonic() + _NODE_PATIENCE
            return Ending("lost", "its Ray node is gone")
        except errors.RayError as error:
            # Its worker or the way to it is gone; what it computed is in the run folder.
            self._look_next = 0.0
            return Ending("lost", f"Ray reported {type(error).__name__}")
        return Ending(kind, message)


def share_cpus(workers: int | None, nodes: int) -> list[int]:
    """Return the CPUs of each node, one at least; as many in all as workers, or as this machine has cores."""
    if nodes < 1:
        raise InputError(f"--nodes is {nodes}: at least one is needed.")
    if workers is not None and workers < nodes:
        raise InputError(f"--workers is {workers}: each of the {nodes} nodes needs one.")
    cpus = max(workers or len(available_cores()), nodes)
    return [cpus // nodes + (node < cpus % nodes) for node in range(nodes)]


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
    # Ray prints whole logs of a lost node to stdout; what matters of it is in our own sentences.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
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
