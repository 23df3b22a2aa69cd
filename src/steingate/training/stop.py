"""Ctrl-C, SIGTERM and SIGHUP as a request that training checks, so that a checkpoint is written before the end."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

_SHOW_CURSOR = b"\x1b[?25h\n"


class Stopped(SystemExit):
    """The process ends because a signal asked it to; environments may raise a SystemExit of their own."""


class RolloutStoppedError(Exception):
    """The rollout was abandoned because the user asked the run to stop."""


class StopRequest:
    """Whether a signal asked the run to stop, and which."""

    signum: int | None = None

    def __call__(self) -> bool:
        """Return whether the run should stop."""
        return self.signum is not None

    def check(self) -> bool:
        """Raise if the run should stop, else return False."""
        if self():
            self.leave()
        return False

    def leave(self) -> NoReturn:
        """Raise the exception that ends the process with status 128 + signal number, 130 after Ctrl-C."""
        if self.signum is None or self.signum == signal.SIGINT:
            raise KeyboardInterrupt
        raise Stopped(128 + self.signum)


def end_at_once(number: int, frame: FrameType | None = None) -> NoReturn:
    """Signal handler that ends the process immediately, with status 128 + signal number.

    Files need no clean-up: they are replaced atomically or only appended to.
    """
    with suppress(OSError, ValueError, AttributeError):
        if sys.stderr.isatty():
            os.write(sys.stderr.fileno(), _SHOW_CURSOR)
    os._exit(128 + number)


@contextmanager
def stop_on_signals(process: bool = False) -> Iterator[StopRequest]:
    """Turn the first SIGINT, SIGTERM or SIGHUP into a request; a second one is handled as before the block.

    With ``process`` the process ends after the block: a second signal then ends it immediately, also while the block is
    being left. A SIGHUP that is ignored (``nohup``) stays ignored. Outside the main thread no handler can be set.

    Enter it before JAX is imported: JAX runs Python code whenever garbage is collected, and a ``KeyboardInterrupt``
    raised there is lost.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]  # Windows has no SIGHUP
    before = {getattr(signal, name): signal.getsignal(getattr(signal, name)) for name in names}
    if names[-1] == "SIGHUP" and before[signal.SIGHUP] == signal.SIG_IGN:
        del before[signal.SIGHUP]
    second = dict.fromkeys(before, end_at_once) if process else before

    def handle(number: int, frame: FrameType | None) -> None:
        request.signum = number
        for each, handler in second.items():
            signal.signal(each, handler)

    for number in before:
        signal.signal(number, handle)
    try:
        yield request
    finally:
        for number, handler in (second if request() else before).items():
            signal.signal(number, handler)
