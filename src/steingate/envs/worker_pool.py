"""Who steps foreign environments: this process one by one, or several at once, with the same results.

A worker process is a Python of its own (``python -m steingate.envs.worker``), so neither the threads nor the
main module of this one matter to it. It is told what to make in words, and talks over a pipe; when the pipe
closes, it ends.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steingate.envs.foreign import EnvFailedError, OneEnv, Told
from steingate.errors import InputError, RunError

PATIENCE = 5.0  # seconds that a worker has to end by itself
Parts = dict[str, NDArray[Any]]


class Order(NamedTuple):
    """What a worker is to make, in words that another process understands."""

    spec: str
    options: dict[str, Any]  # of the environment, and of the adapter; a cost as text


class Here:
    """Environments stepped one after the other in this process."""

    processes = 1

    def __init__(self, factory: Callable[[], OneEnv], num_envs: int) -> None:
        self.envs = [factory() for _ in range(num_envs)]
        if len({id(one.env) for one in self.envs}) < num_envs:
            name = self.envs[0].name
            raise InputError(f"{name!r} gives the same environment twice: make a new one at each call.")
        self.at_work: int | None = None

    def reset(
        self, seeds: Sequence[int | None], options: dict[str, Any] | None
    ) -> Iterator[tuple[NDArray[np.float64], dict[str, Any]]]:
        """Reset all, and give what each shows and says."""
        for i, (one, seed) in enumerate(zip(self.envs, seeds, strict=True)):
            self.at_work = i
            yield one.reset(seed, options)

    def step(self, actions: Any) -> Iterator[Told]:
        """Step all, and give what each says."""
        for i, (one, action) in enumerate(zip(self.envs, actions, strict=True)):
            self.at_work = i
            yield one.step(action)

    def render(self) -> list[Any]:
        """Return one frame per environment."""
        return [one.env.render() for one in self.envs]

    def snapshot(self) -> list[tuple[Parts, int]]:
        """Return the state of each, and how many steps of its episode are over."""
        return [(one.snapshot(), one.elapsed) for one in self.envs]

    def restore(self, states: Sequence[tuple[Parts, int]]) -> None:
        """Go back to a snapshot."""
        for one, (parts, elapsed) in zip(self.envs, states, strict=True):
            one.restore(parts, elapsed)

    def close(self) -> None:
        """Close all."""
        for one in self.envs:
            one.close()


class Workers:
    """Environments stepped by several processes at once, each of which has its share of them.

    Parameters
    ----------
    order : what to make
    name : how messages call the environment
    num_envs : environments in all
    count : processes
    """

    def __init__(self, order: Order, name: str, num_envs: int, count: int) -> None:
        self.name, self.processes = name, count
        self.at_work: int | None = None
        cuts = [round(i * num_envs / count) for i in range(count + 1)]
        self._shares = [slice(a, b) for a, b in pairwise(cuts)]
        self._processes: list[subprocess.Popen[bytes]] = []
        self._pipes: list[Connection] = []
        try:
            for share in self._shares:
                self._start(order, share)
            self._collect()
        except BaseException:
            self.close()
            raise

    def _start(self, order: Order, share: slice) -> None:
        ours, theirs = Pipe()
        with theirs:
            command = [sys.executable, "-m", "steingate.envs.worker", str(theirs.fileno()), str(os.getpid())]
            places = [place or os.getcwd() for place in sys.path]
            # A session of its own: Ctrl-C is for this process, which then ends the others.
            self._processes.append(
                subprocess.Popen(
                    command,
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
                )
            )
        self._pipes.append(ours)
        self._send(len(self._pipes) - 1, (order, share.stop - share.start))

    def reset(
        self, seeds: Sequence[int | None], options: dict[str, Any] | None
    ) -> Iterator[tuple[NDArray[np.float64], dict[str, Any]]]:
        """Reset all, and give what each shows and says."""
        yield from self._asked([("reset", list(seeds[share]), options) for share in self._shares])

    def step(self, actions: Any) -> Iterator[Told]:
        """Step all, and give what each says."""
        yield from self._asked([("step", actions[share]) for share in self._shares])

    def render(self) -> list[Any]:
        """Return one frame per environment."""
        return self._asked([("render",)] * len(self._shares))

    def snapshot(self) -> list[tuple[Parts, int]]:
        """Return the state of each, and how many steps of its episode are over."""
        return self._asked([("snapshot",)] * len(self._shares))

    def restore(self, states: Sequence[tuple[Parts, int]]) -> None:
        """Go back to a snapshot."""
        self._asked([("restore", list(states[share])) for share in self._shares])

    def close(self) -> None:
        """End the processes: they close their environments when the pipe closes."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
            if process.poll() is None:
                process.kill()
                process.wait()

    def _asked(self, requests: Sequence[Any]) -> list[Any]:
        for i, request in enumerate(requests):
            self._send(i, request)
        return self._collect()

    def _send(self, i: int, message: Any) -> None:
        try:
            self._pipes[i].send(message)
        except OSError as error:
            raise self._lost(i) from error

    def _collect(self) -> list[Any]:
        """Return the answers of all, in order; of several errors the first environment's is raised."""
        answers: list[Any] = []
        failed: Exception | None = None
        for i, (pipe, share) in enumerate(zip(self._pipes, self._shares, strict=True)):
            try:
                problem, found = pipe.recv()
            except (EOFError, OSError) as error:
                raise self._lost(i) from error
            if problem is None:
                answers += found
            elif failed is None:
                at, refused, said, place = problem
                self.at_work = None if at is None else share.start + at
                failed = InputError(said) if refused else EnvFailedError(said, place)
        if failed is not None:
            raise failed
        return answers

    def _lost(self, i: int) -> RunError:
        """Return the sentence about a process that is not there any more."""
        with suppress(subprocess.TimeoutExpired):
            self._processes[i].wait(PATIENCE)
        code, share = self._processes[i].returncode, self._shares[i]
        how = f"signal {-code}" if code is not None and code < 0 else f"status {code}"
        numbers = f"{share.start} to {share.stop - 1}" if share.stop - share.start > 1 else f"{share.start}"
        return RunError(
            f"The process that stepped environment {numbers} of {self.name!r} ended with {how}; "
            "look above for what it said, or step all in one process with workers=1."
        )
