"""Reading files that may be anything, and writing them so that a crash leaves the old content or the new."""

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from steingate.errors import RunError

MAX_BYTES = 1 << 30
FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


@contextmanager
def open_regular(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file for reading.

    A folder, pipe, socket or device is refused by name. Opening never waits: a pipe without a writer would
    hold the process for ever. Symbolic links are followed.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise RunError(f"{path} cannot be read: it is not a regular file.")
            yield file
    except IsADirectoryError:
        raise RunError(f"{path} cannot be read: it is not a regular file.") from None
    except OSError as error:
        raise RunError(f"{path} cannot be read ({error.strerror or error}).") from error


def read_regular(path: Path, most: int = MAX_BYTES) -> bytes:
    """Return the bytes of a regular file of at most ``most`` bytes; anything else is refused by name."""
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > most:
            raise RunError(f"{path} is larger than {most >> 20} MiB and will not be read.")
        return file.read()


@contextmanager
def writing(path: Path, kept: str = "what was there before is intact") -> Iterator[None]:
    """Turn the operating system's refusal to write ``path`` into one sentence that says what survived."""
    try:
        yield
    except OSError as error:
        reason = "the disk is full" if error.errno in FULL else error.strerror or str(error)
        raise RunError(
            f"Cannot write {path}: {reason}; {kept}, so free some space or fix access and resume."
        ) from error


def replace_file(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` through a temporary name, synced to disk before it takes the place."""
    temporary = path.with_name(f".{path.name}.tmp")
    with writing(path):
        try:
            with open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Sync a folder's entries to disk, so that a rename survives a power cut; Windows cannot."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
