"""Executors for work beside training: one background thread, or the calling thread."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


class InlineExecutor(Executor):
    """An executor that runs each call immediately, in the calling thread."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        """Run the call and return its result as a completed future; an exception is raised immediately."""
        future: Future[T] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@contextmanager
def background_thread(overlap: bool) -> Iterator[Executor]:
    """One worker thread that runs calls in order; without ``overlap``, an :class:`InlineExecutor`."""
    with ThreadPoolExecutor(1, "background") if overlap else InlineExecutor() as executor:
        yield executor
