"""Calls to several environments: one after the other in this process, or in worker processes.

Both give the same results. A worker is a new Python process, independent of the threads and the main module of this
one. It makes its environments by name and answers calls over a pipe until the pipe is closed.

Gymnasium's ``AsyncVectorEnv`` is not used: it starts one process per environment, runs the main module of a script
again, and names neither the environment nor the step in its errors.
"""

import os
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from statistics import median
from typing import Any

import numpy as np

from steingate.envs.adapters import EnvAdapter
from steingate.errors import InputError, RunError, SteingateError

SLOW_STEP_SECONDS = 5e-4  # worker processes are faster for slower steps; see benchmarks/bench_workers.py
_SHUTDOWN_SECONDS = 5.0  # time for a worker to end by itself
_WORKER = "from steingate.envs.worker_pool import serve; serve()"

Arguments = Sequence[tuple[Any, ...] | None]  # of a call of each environment; None if it is not called


class EnvFailedError(Exception):
    """An environment raised an exception in a worker process; the message says which one and where."""


def describe_error(error: BaseException) -> str:
    """Return type, message and location of an environment's exception on one line."""
    if isinstance(error, EnvFailedError):
        return str(error)
    message = " ".join(str(error).split()).rstrip(".")
    frames = traceback.extract_tb(error.__traceback__)
    location = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return type(error).__name__ + (f": {message}" if message else "") + location


class LocalEnvs:
    """Environments that are called one after the other in this process; ``current_env`` is called last."""

    def __init__(self, adapters: list[EnvAdapter]) -> None:
        self.adapters = adapters
        self.current_env: int | None = None
        if len({id(adapter.env) for adapter in adapters}) < len(adapters):
            raise InputError(f"{adapters[0].name!r} gives the same environment twice: make a new one at each call.")

    def call(self, method: str, arguments: Arguments) -> list[Any]:
        """Call a method of the adapters; return the results, None for those that are not called."""
        results = []
        for i, (adapter, given) in enumerate(zip(self.adapters, arguments, strict=True)):
            self.current_env = i
            results.append(None if given is None else getattr(adapter, method)(*given))
        return results

    def close(self) -> None:
        """Close the environments."""
        for adapter in self.adapters:
            adapter.close()


class WorkerPool:
    """Environments that are called in worker processes, each of which has a contiguous block of them.

    Parameters
    ----------
    env, options : name of the environment and options of ``make_vec``, which must be picklable
    name : name of the environment in error messages
    """

    def __init__(self, env: str, options: dict[str, Any], name: str, num_envs: int, num_processes: int) -> None:
        self.name = name
        self.current_env: int | None = None  # the one that failed
        self._blocks = np.array_split(np.arange(num_envs), num_processes)
        self.processes: list[subprocess.Popen[bytes]] = []
        self._pipes: list[Connection] = []
        try:
            for block in self._blocks:
                self._start_process()
                self._pipes[-1].send((env, len(block), options))
            self._receive()
        except BaseException:
            self.close()
            raise

    def _start_process(self) -> None:
        ours, theirs = Pipe()
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _WORKER, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C interrupts this process, which then ends the workers
                env={**os.environ, "PYTHONPATH": paths},
            )
        self.processes.append(process)
        self._pipes.append(ours)

    def call(self, method: str, arguments: Arguments) -> list[Any]:
        """Call a method of the adapters; return the results, None for those that are not called."""
        for i, block in enumerate(self._blocks):
            try:
                self._pipes[i].send((method, [arguments[k] for k in block]))
            except OSError as error:
                raise self._worker_ended(i) from error
        return self._receive()

    def _receive(self) -> list[Any]:
        """Return the answers of all workers in order; raise the error of the first failed environment."""
        results: list[Any] = []
        failures: list[tuple[int | None, Exception]] = []
        for i, block in enumerate(self._blocks):
            try:
                failure, answers = self._pipes[i].recv()
            except (EOFError, OSError) as error:
                raise self._worker_ended(i) from error
            results += answers
            if failure is not None:
                index, exception = failure
                failures.append((None if index is None else int(block[index]), exception))
        if failures:
            self.current_env, exception = failures[0]
            raise exception
        return results

    def _worker_ended(self, i: int) -> RunError:
        """Return the error for a worker process that ended unexpectedly."""
        with suppress(subprocess.TimeoutExpired):
            self.processes[i].wait(_SHUTDOWN_SECONDS)
        code, block = self.processes[i].returncode, self._blocks[i]
        how = f"signal {-code}" if code is not None and code < 0 else f"status {code}"
        numbers = f"{block[0]} to {block[-1]}" if len(block) > 1 else f"{block[0]}"
        return RunError(
            f"The process that stepped environment {numbers} of {self.name!r} ended with {how}; "
            "see its output above, or step all environments in one process with workers=1."
        )

    def close(self) -> None:
        """Close the pipes; the workers then close their environments and end."""
        for pipe in self._pipes:
            pipe.close()
        for process in self.processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_SHUTDOWN_SECONDS)
            if process.poll() is None:
                process.kill()
                process.wait()


def serve() -> None:
    """Run a worker process, whose argument is the file descriptor of its pipe.

    The first message makes the environments, and the others are calls. An answer has a failure, (index of the
    environment, exception) or None, and the list of results.
    """
    from steingate.envs.make import make_vec  # imports this module

    envs: Any = None
    with Connection(int(sys.argv[1])) as pipe, suppress(EOFError, ConnectionError):
        try:
            while True:
                message = pipe.recv()
                try:
                    if envs is None:
                        env, num_envs, options = message
                        vec: Any = make_vec(env, num_envs, **options)
                        envs, answer = vec.worker_pool, _pickle([])
                    else:
                        answer = _pickle(envs.call(*message))
                except (Exception, SystemExit) as error:
                    expected = isinstance(error, SteingateError)
                    failure = InputError(str(error)) if expected else EnvFailedError(describe_error(error))
                    answer = ForkingPickler.dumps(((envs and envs.current_env, failure), []))
                pipe.send_bytes(answer)
        finally:
            if envs is not None:
                envs.close()


def _pickle(results: list[Any]) -> Any:
    """Return the answer with these results; infos that cannot be pickled are left out."""
    try:
        return ForkingPickler.dumps((None, results))
    except Exception:
        return ForkingPickler.dumps((None, [result and result._replace(info={}) for result in results]))


def measure_step(env: EnvAdapter) -> float:
    """Return the median duration of 30 random steps in seconds, fewer if they take long; 0 if one fails."""
    times: list[float] = []
    try:
        env.reset(0)
        while len(times) < 3 or (len(times) < 30 and sum(times) < 0.3):
            action = env.action_space.sample()
            start = time.perf_counter()
            env.step(action)
            times.append(time.perf_counter() - start)
    except (Exception, SystemExit):  # reported when the environment is used
        return 0.0
    return median(times)
