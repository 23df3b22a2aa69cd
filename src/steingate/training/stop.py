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


class StopRequest:
    """Whether a signal asked the run to stop, and which."""

    def __init__(self) -> None:
        self.signum: int | None = None

    def __call__(self) -> bool:
        """Return whether the run should stop."""
        return self.signum is not None

    def check(self) -> bool:
        """Raise if the run should stop, else return False."""
        if self():
            self.leave()
        return False

    def leave(self) -> None:
        """Raise the exception that ends the process with status 128 + signal number, 130 after Ctrl-C."""
        if self.signum is None or self.signum == signal.SIGINT:
            raise KeyboardInterrupt
        raise Stopped(128 + self.signum)


def end_at_once(number: int, frame: FrameType | None = None) -> NoReturn:
    """Signal handler that ends the process immediately, with status 128 + signal number.

    An exception could be raised anywhere, for example during clean-up, and would print a traceback. Files need no
    clean-up: they are replaced atomically or only appended to.
    """
    with suppress(OSError, ValueError, AttributeError):
        if sys.stderr.isatty():
            os.write(sys.stderr.fileno(), _SHOW_CURSOR)
    os._exit(128 + number)


@contextmanager
def stop_on_signals(process: bool = False) -> Iterator[StopRequest]:
    """Turn the first SIGINT, SIGTERM or SIGHUP into a request; a second one takes effect immediately.

    A SIGHUP that is ignored (``nohup``) stays ignored.

    Enter it before JAX is imported: JAX runs Python code whenever garbage is collected, and a ``KeyboardInterrupt``
    raised there is lost. Outside the main thread no handler can be set, and the signals are handled as before.

    With ``process`` the process ends after the block: a second signal then ends it immediately, also while the block is
    being left. Otherwise the second signal is handled as before the block.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    hangup = getattr(signal, "SIGHUP", None)  # not on Windows
    numbers = [signal.SIGINT, signal.SIGTERM, *([hangup] if hangup else [])]
    before = {number: signal.getsignal(number) for number in numbers}
    if hangup and before[hangup] == signal.SIG_IGN:
        del before[hangup]
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
