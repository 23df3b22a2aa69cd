"""The process behind :class:`steingate.envs.worker_pool.Workers`: it steps environments.

``python -m steingate.envs.worker PIPE PARENT`` reads requests from an inherited pipe and answers each with a
pair (problem, answers), one of which is None. It ends when the pipe closes or its parent is gone.
"""

import os
import sys
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

from steingate.envs.foreign import said_and_place
from steingate.envs.make import crew_here
from steingate.envs.worker_pool import Here
from steingate.errors import SteingateError


def main() -> None:
    """Serve until nobody asks any more."""
    parent = int(sys.argv[2])
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    with Connection(int(sys.argv[1])) as pipe:
        try:
            _serve(pipe)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


def _serve(pipe: Connection) -> None:
    order, count = pipe.recv()
    crew: Here | None = None
    try:
        try:
            crew = crew_here(order, count)
            pipe.send((None, []))
        except Exception as error:
            pipe.send((_problem(error, None), None))
            return
        while True:
            request = pipe.recv()
            try:
                answer = _packed(_answer(crew, *request))
            except Exception as error:
                pipe.send((_problem(error, crew.at_work), None))
            else:
                pipe.send_bytes(answer)
    finally:
        if crew is not None:
            crew.close()


def _answer(crew: Here, what: str, *details: Any) -> list[Any]:
    if what in ("reset", "step"):
        return [_copied(told) for told in getattr(crew, what)(*details)]
    found = getattr(crew, what)(*details)
    return found if found is not None else []


def _copied(told: Any) -> Any:
    """Return an answer with an observation of its own: the environment may reuse its buffer."""
    return told._replace(obs=told.obs.copy()) if hasattr(told, "_replace") else (told[0].copy(), told[1])


def _packed(answers: list[Any]) -> bytes:
    """Return the answers as a message; what an info holds that no message can is left out."""
    try:
        return bytes(ForkingPickler.dumps((None, answers)))
    except Exception:
        clean = [
            told._replace(info=_sendable(told.info))
            if hasattr(told, "info")
            else (told[0], _sendable(told[1]))
            for told in answers
        ]
        return bytes(ForkingPickler.dumps((None, clean)))


def _sendable(info: dict[str, Any]) -> dict[str, Any]:
    kept = {}
    for key, value in info.items():
        with suppress(Exception):
            ForkingPickler.dumps(value)
            kept[key] = value
    return kept


def _problem(error: Exception, at_work: int | None) -> tuple[int | None, bool, str, str]:
    if isinstance(error, SteingateError):
        return at_work, True, str(error), ""
    return at_work, False, *said_and_place(error)


def _watch(parent: int) -> None:
    """End this process once its parent is gone, even in the middle of a step."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


if __name__ == "__main__":
    main()
