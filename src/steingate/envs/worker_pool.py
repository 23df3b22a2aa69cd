"""Stepping several environments: one after the other in this process, or in worker processes.

Both give the same results. A worker is a new Python process, independent of the threads and the main module of this
one. It receives an :class:`EnvSpec`, makes its environments, and answers requests over a pipe. It ends when the pipe
is closed or the parent process is gone.
"""

import copy
import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steingate.envs.adapters import EnvAdapter, StepResult
from steingate.errors import InputError, RunError, SteingateError
from steingate.tasks.validation import usable_cores

SHUTDOWN_SECONDS = 5.0  # time for a worker to end by itself
MESSAGE_SECONDS = 2e-4  # cost of one request to a worker and its answer; see benchmarks/bench_workers.py
MIN_SPEEDUP = 1.3  # expected speedup from which worker processes are started
_MEASURED_STEPS, _MEASURED_SECONDS = 30, 0.3  # a measurement ends with the first of them
_WORKER = "from steingate.envs.worker_pool import serve; serve()"

UNCHANGED = -1  # as a seed: do not reset this environment

State = tuple[dict[str, NDArray[Any]], int]  # snapshot of an environment, elapsed steps of its episode


class EnvSpec(NamedTuple):
    """Specification from which a worker process makes environments."""

    name: str
    options: dict[str, Any]  # of the environment and of the adapter; a cost function is given by name


class EnvFailedError(Exception):
    """An environment raised an exception in a worker process; ``location`` is where."""

    def __init__(self, message: str, location: str) -> None:
        super().__init__(message)
        self.message, self.location = message, location


def describe_error(error: BaseException) -> tuple[str, str]:
    """Return type and message of an environment's exception on one line, and where it was raised."""
    if isinstance(error, EnvFailedError):
        return error.message, error.location
    message = " ".join(str(error).split()).rstrip(".")
    frames = traceback.extract_tb(error.__traceback__)
    location = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__, location


class SyncWorkers:
    """Environments stepped one after the other in this process."""

    num_processes = 1

    def __init__(self, factory: Callable[[], EnvAdapter], num_envs: int) -> None:
        self.envs = [factory() for _ in range(num_envs)]
        if len({id(adapter.env) for adapter in self.envs}) < num_envs:
            name = self.envs[0].name
            raise InputError(f"{name!r} gives the same environment twice: make a new one at each call.")
        self.current_env: int | None = None

    def reset(
        self, seeds: Sequence[int | None], options: dict[str, Any] | None
    ) -> Iterator[tuple[NDArray[np.float64], dict[str, Any]] | None]:
        """Reset all environments whose seed is not ``UNCHANGED``; yield (observation, info) of each, else None."""
        for i, (env, seed) in enumerate(zip(self.envs, seeds, strict=True)):
            self.current_env = i
            yield None if seed == UNCHANGED else env.reset(seed, options)

    def step(self, actions: Any) -> Iterator[StepResult]:
        """Step all environments; yield the result of each."""
        for i, (env, action) in enumerate(zip(self.envs, actions, strict=True)):
            self.current_env = i
            yield env.step(action)

    def render(self) -> list[Any]:
        """Return one frame per environment."""
        return [adapter.env.render() for adapter in self.envs]

    def snapshot(self) -> list[State]:
        """Return the state of each environment and the elapsed steps of its episode."""
        return [(env.snapshot(), env.elapsed_steps) for env in self.envs]

    def restore(self, states: Sequence[State]) -> None:
        """Return to a snapshot."""
        for env, (state, elapsed_steps) in zip(self.envs, states, strict=True):
            env.restore(state, elapsed_steps)

    def close(self) -> None:
        """Close all environments."""
        for env in self.envs:
            env.close()


class WorkerPool:
    """Environments stepped by several processes, each with a contiguous block of them.

    ``name`` is the name of the environment in error messages.
    """

    def __init__(self, spec: EnvSpec, name: str, num_envs: int, num_processes: int) -> None:
        self.name, self.num_processes = name, num_processes
        self.current_env: int | None = None
        bounds = [round(i * num_envs / num_processes) for i in range(num_processes + 1)]
        self._blocks = [slice(a, b) for a, b in pairwise(bounds)]
        self.processes: list[subprocess.Popen[bytes]] = []
        self._pipes: list[Connection] = []
        try:
            for i, block in enumerate(self._blocks):
                self._start_process()
                self._send(i, (spec, block.stop - block.start))
            self._receive()
        except BaseException:
            self.close()
            raise

    def _start_process(self) -> None:
        ours, theirs = Pipe()
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _WORKER, str(theirs.fileno()), str(os.getpid())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C interrupts this process, which then ends the workers
                env={**os.environ, "PYTHONPATH": paths},
            )
        self.processes.append(process)
        self._pipes.append(ours)

    def reset(
        self, seeds: Sequence[int | None], options: dict[str, Any] | None
    ) -> list[tuple[NDArray[np.float64], dict[str, Any]] | None]:
        """Reset all environments whose seed is not ``UNCHANGED``; return (observation, info) of each, else None."""
        return self._request([("reset", list(seeds[block]), options) for block in self._blocks])

    def step(self, actions: Any) -> list[StepResult]:
        """Step all environments; return the result of each."""
        return self._request([("step", actions[block]) for block in self._blocks])

    def render(self) -> list[Any]:
        """Return one frame per environment."""
        return self._request([("render",)] * len(self._blocks))

    def snapshot(self) -> list[State]:
        """Return the state of each environment and the elapsed steps of its episode."""
        return self._request([("snapshot",)] * len(self._blocks))

    def restore(self, states: Sequence[State]) -> None:
        """Return to a snapshot."""
        self._request([("restore", list(states[block])) for block in self._blocks])

    def close(self) -> None:
        """Close the pipes; the workers then close their environments and end."""
        for pipe in self._pipes:
            pipe.close()
        for process in self.processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(SHUTDOWN_SECONDS)
            if process.poll() is None:
                process.kill()
                process.wait()

    def _request(self, requests: Sequence[Any]) -> list[Any]:
        for i, request in enumerate(requests):
            self._send(i, request)
        return self._receive()

    def _send(self, i: int, message: Any) -> None:
        try:
            self._pipes[i].send(message)
        except OSError as error:
            raise self._worker_ended(i) from error

    def _receive(self) -> list[Any]:
        """Return the answers of all workers in order; raise the error of the first failed environment."""
        answers: list[Any] = []
        failure: Exception | None = None
        for i, (pipe, block) in enumerate(zip(self._pipes, self._blocks, strict=True)):
            try:
                problem, found = pipe.recv()
            except (EOFError, OSError) as error:
                raise self._worker_ended(i) from error
            if problem is None:
                answers += found
            elif failure is None:
                index, is_input_error, message, location = problem
                self.current_env = None if index is None else block.start + index
                failure = InputError(message) if is_input_error else EnvFailedError(message, location)
        if failure is not None:
            raise failure
        return answers

    def _worker_ended(self, i: int) -> RunError:
        """Return the error for a worker process that ended unexpectedly."""
        with suppress(subprocess.TimeoutExpired):
            self.processes[i].wait(SHUTDOWN_SECONDS)
        code, block = self.processes[i].returncode, self._blocks[i]
        how = f"signal {-code}" if code is not None and code < 0 else f"status {code}"
        numbers = f"{block.start} to {block.stop - 1}" if block.stop - block.start > 1 else f"{block.start}"
        return RunError(
            f"The process that stepped environment {numbers} of {self.name!r} ended with {how}; "
            "see its output above, or step all environments in one process with workers=1."
        )


def serve() -> None:
    """Run a worker process; its arguments are the file descriptor of the pipe and the id of the parent."""
    parent = int(sys.argv[2])
    threading.Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()
    with Connection(int(sys.argv[1])) as pipe, suppress(EOFError, BrokenPipeError, ConnectionResetError):
        _answer_requests(pipe)


def _answer_requests(pipe: Connection) -> None:
    """Make environments, then answer each request with (problem, answers), one of which is None."""
    from steingate.envs.make import make_sync_workers  # imports this module

    envs: SyncWorkers | None = None
    try:
        try:
            envs = make_sync_workers(*pipe.recv())
            pipe.send((None, []))
        except Exception as error:
            pipe.send((_problem(error, None), None))
            return
        while True:
            method, *arguments = pipe.recv()
            try:
                answers = getattr(envs, method)(*arguments) or []
                if method in ("reset", "step"):
                    answers = [_copy_obs(answer) for answer in answers]
                message = _pickle(answers)
            except (Exception, SystemExit) as error:
                pipe.send((_problem(error, envs.current_env), None))
            else:
                pipe.send_bytes(message)
    finally:
        if envs is not None:
            envs.close()


def _copy_obs(answer: Any) -> Any:
    """Copy the observation of an answer, because the environment may reuse its buffer."""
    if isinstance(answer, StepResult):
        return answer._replace(obs=answer.obs.copy())
    return None if answer is None else (answer[0].copy(), answer[1])


def _pickle(answers: list[Any]) -> bytes:
    """Return the pickled answers, without entries of infos that cannot be pickled."""
    try:
        return bytes(ForkingPickler.dumps((None, answers)))
    except Exception:
        return bytes(ForkingPickler.dumps((None, [_with_picklable_info(answer) for answer in answers])))


def _with_picklable_info(answer: Any) -> Any:
    if answer is None:
        return None
    entries, info = {}, answer.info if isinstance(answer, StepResult) else answer[1]
    for key, value in info.items():
        with suppress(Exception):
            ForkingPickler.dumps(value)
            entries[key] = value
    return answer._replace(info=entries) if isinstance(answer, StepResult) else (answer[0], entries)


def _problem(error: BaseException, env: int | None) -> tuple[int | None, bool, str, str]:
    if isinstance(error, SteingateError):
        return env, True, str(error), ""
    return env, False, *describe_error(error)


def _exit_with_parent(parent: int) -> None:
    """End this process when its parent is gone, even during a step."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def choose_num_processes(
    env: EnvAdapter, num_envs: int, requested: int | None, available: bool, max_processes: int | None = None
) -> tuple[int, str]:
    """Return the number of processes that step the environments, and a message for the user or "".

    ``requested`` is the number that the user asks for; None measures the speed of ``env`` to decide, with at most
    ``max_processes`` (default: usable cores). ``available`` tells whether a worker process can make the environments.
    """
    windows = sys.platform == "win32"
    count = min(num_envs, requested or max_processes or len(usable_cores()))
    seconds = None if requested is not None or count < 2 else measure_step(env)
    slow = seconds is not None and expected_speedup(seconds, num_envs, count) >= MIN_SPEEDUP
    if count < 2 or (requested is None and not slow):
        return 1, ""
    measured = "" if seconds is None else f"A step takes {seconds * 1e3:.2g} ms"
    if available and not windows:
        return count, measured and f"{measured}: {count} processes step the environments."
    where = "on Windows" if windows else "for an environment that other processes cannot import by name"
    advice = "" if windows else "; put it into a file and pass env='./FILE.py:NAME' to use several processes"
    effect = f"{measured}; only one process can be used" if measured else f"workers={requested} has no effect"
    return 1, f"{effect} {where}{advice}."


def expected_speedup(step_seconds: float, num_envs: int, num_processes: int) -> float:
    """Return the expected speedup of one step of all environments with several processes.

    >>> expected_speedup(1e-6, 8, 2) < 1 < expected_speedup(1e-3, 8, 2) < 2
    True
    """
    envs_per_process = -(-num_envs // num_processes)
    return num_envs * step_seconds / (envs_per_process * step_seconds + num_processes * MESSAGE_SECONDS)


def measure_step(env: EnvAdapter) -> float | None:
    """Return the median duration of a step with random actions in seconds; None if the environment fails."""
    space, times = copy.deepcopy(env.action_space), list[float]()
    try:
        env.reset(0)
        end = time.perf_counter() + _MEASURED_SECONDS
        while len(times) < _MEASURED_STEPS and (len(times) < 3 or time.perf_counter() < end):
            action = space.sample()
            start = time.perf_counter()
            env.step(action)
            times.append(time.perf_counter() - start)
    except (Exception, SystemExit):  # reported when the environment is used
        return None
    return median(times)
