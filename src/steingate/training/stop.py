"""Ctrl-C and SIGTERM as a question the loop can ask, so that a checkpoint is written before the end."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


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


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Turn the first SIGINT or SIGTERM into a request; a second one of either acts at once.

    Enter it before JAX is imported: JAX runs Python code whenever garbage is collected, and a
    ``KeyboardInterrupt`` raised there is lost. Outside the main thread no handler can be set, and the signals
    keep the meaning they had.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def handle(number: int, frame: FrameType | None) -> None:
        request.signum = number
        for each, old in before.items():
            signal.signal(each, old)

    for number in before:
        signal.signal(number, handle)
    try:
        yield request
    finally:
        for number, old in before.items():
            signal.signal(number, old)
