"""Writing files so that a crash leaves either the old content or the new one, never half of it."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from steingate.errors import RunError


@contextmanager
def writing(path: Path, kept: str = "what was there before is intact") -> Iterator[None]:
    """Turn the operating system's refusal to write ``path`` into one sentence that says what survived."""
    try:
        yield
    except OSError as error:
        reason = (
            "the disk is full"
            if error.errno in (errno.ENOSPC, errno.EDQUOT)
            else error.strerror or str(error)
        )
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
    """Sync a folder's entries to disk, so that a rename survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
