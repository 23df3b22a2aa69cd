"""File access: bounded reads of regular files only, atomic writes, and file locks."""

import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import IO, Any, BinaryIO

from steingate.errors import RunError

MAX_BYTES = 1 << 30
_DISK_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


@contextmanager
def open_regular(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file for reading; raise RunError for a folder, pipe, socket or device.

    Symbolic links are followed. Opening does not block, not even for a pipe without a writer.
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


def read_regular(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """Return the content of a regular file; raise RunError if it is larger than ``max_bytes``."""
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > max_bytes:
            raise RunError(f"{path} is larger than {max_bytes >> 20} MiB and will not be read.")
        return file.read()


@contextmanager
def writing(path: Path, intact: str = "the previous content is intact") -> Iterator[None]:
    """Convert an OSError while writing ``path`` to a RunError that names what is still intact."""
    try:
        yield
    except OSError as error:
        reason = "the disk is full" if error.errno in _DISK_FULL else error.strerror or str(error)
        reason = "it is a symbolic link" if error.errno == errno.ELOOP else reason
        raise RunError(
            f"Cannot write {path}: {reason}; {intact}, so free some space or fix access and resume."
        ) from error


def replace_file(path: Path, content: bytes) -> None:
    """Write a file atomically: to a new file of a random name, synced to disk, then renamed.

    Neither name is followed if it is a symbolic link: a link at ``path`` is replaced. Pipes and character devices, such
    as ``/dev/stdout``, are written to instead; a pipe needs a reader.
    """
    with writing(path):
        if _is_stream(path):
            with open(os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0)), "wb") as stream:
                os.set_blocking(stream.fileno(), True)
                stream.write(content)
            return
        temporary = temporary_path(path)
        try:
            with open_no_link(temporary, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        if sys.platform != "win32":  # so that the new name survives a power cut
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def _is_stream(path: Path) -> bool:
    """Return whether a path leads to a pipe or a character device; block devices and sockets are refused."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise OSError(errno.EINVAL, "it is a device or socket", str(path))
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def open_no_link(path: str | PathLike[str], mode: str, **options: Any) -> IO[Any]:
    """Open a file unless it is a symbolic link; never waits for a pipe. Arguments as for :func:`open`."""
    extra = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"))
    return open(path, mode, opener=lambda name, flags: os.open(name, flags | extra, 0o666), **options)


def temporary_path(path: Path) -> Path:
    """Return a random name beside ``path`` that nobody can guess, with the same suffix before ``.tmp``."""
    return path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.tmp")


def remove_temporary(folder: Path) -> None:
    """Delete the temporary files of :func:`replace_file` that killed processes left in a folder."""
    for path in [] if folder.is_symlink() else folder.glob(f".*.{'?' * 16}.tmp"):
        with suppress(OSError):
            path.unlink()


def try_lock(file: IO[Any]) -> bool:
    """Lock an open file for this process; return False if another process holds the lock.

    The operating system releases the lock when the file is closed or the process ends.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(1 << 20)  # one byte far behind the text, so that other processes can read the text
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def process_lock(lock: Path, name: str, advice: str) -> Iterator[None]:
    """Lock a file for this process; a ``RunError`` says which process has locked ``name`` already, and gives advice."""
    with writing(lock):
        file = open_no_link(lock, "a+", encoding="utf-8")
    with file:
        if not try_lock(file):
            file.seek(0)
            raise RunError(f"{name} is in use by process {file.read(20).strip() or 'unknown'}; {advice}.")
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
