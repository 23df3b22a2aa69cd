"""Executors for work beside training: one background thread, or the calling thread."""

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any


def completed(value: Any) -> "Future[Any]":
    """Return a completed future with the given result."""
    future: Future[Any] = Future()
    future.set_result(value)
    return future


class InlineExecutor(Executor):
    """An executor that runs each call immediately, in the calling thread."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Run the call and return its result as a completed future; an exception is raised immediately."""
        return completed(fn(*args, **kwargs))


def background_thread(overlap: bool) -> Executor:
    """Return one worker thread that runs calls in order; without ``overlap``, an :class:`InlineExecutor`."""
    return ThreadPoolExecutor(1, "background") if overlap else InlineExecutor()
