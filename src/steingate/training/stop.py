"""Ctrl-C and SIGTERM as a question the loop can ask, so that a checkpoint is written before the end."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

_SHOW_CURSOR = b"\x1b[?25h\n"


class StopRequest:
    """Whether a signal asked the run to stop, and which."""

    def __init__(self) -> None:
        self.signum: int | None = None

    def __call__(self) -> bool:
        """Return whether the run should stop."""
        return self.signum is not None

    def check(self) -> bool:
        """Leave if the run should stop, else return False."""
        if self():
            self.leave()
        return False

    def leave(self) -> None:
        """Raise what ends the process with the customary status: 130 after Ctrl-C, 143 after SIGTERM."""
        if self.signum == signal.SIGTERM:
            raise SystemExit(128 + signal.SIGTERM)
        raise KeyboardInterrupt


def end_at_once(number: int, frame: FrameType | None = None) -> NoReturn:
    """End the process here and now with the customary status, as a handler of a signal.

    An exception could come up anywhere, in the middle of a clean-up or in code that cannot pass it on, and
    would leave a traceback. Files need no clean-up: they are replaced atomically or only appended to.
    """
    with suppress(OSError, ValueError, AttributeError):
        if sys.stderr.isatty():
            os.write(sys.stderr.fileno(), _SHOW_CURSOR)
    os._exit(128 + number)


@contextmanager
def stop_on_signals(process: bool = False) -> Iterator[StopRequest]:
    """Turn the first SIGINT or SIGTERM into a request; a second one of either acts at once.

    Enter it before JAX is imported: JAX runs Python code whenever garbage is collected, and a
    ``KeyboardInterrupt`` raised there is lost. Outside the main thread no handler can be set, and the signals
    keep the meaning they had.

    Parameters
    ----------
    process
        The process does nothing else and ends soon after: a second signal then ends it on the spot, also
        while the block is being left. Otherwise the second one means what it meant before.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
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
