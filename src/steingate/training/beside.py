"""Work beside the main thread, or, with the same interface and the same results, in it."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any


class Inline(Executor):
    """An executor that runs each call at once, in the calling thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run the call now and return its outcome as a finished future; an error is raised here already."""
        return finished(fn(*args, **kwargs))


def finished(value: Any) -> Future[Any]:
    """Return a future that already holds ``value``."""
    future: Future[Any] = Future()
    future.set_result(value)
    return future


@contextmanager
def beside(overlap: bool) -> Iterator[Executor]:
    """One worker thread that does calls in order, or none at all."""
    with ThreadPoolExecutor(1, "beside") if overlap else Inline() as executor:
        yield executor
