"""A lock on an open file, which the system frees however the process ends; by fcntl, or msvcrt on Windows."""

import sys
from typing import IO, Any


def try_lock(file: IO[Any]) -> bool:
    """Return whether the open file is now locked for this process; false when another one holds it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            # One byte far behind the text, so that others can still read whose lock it is.
            file.seek(1 << 20)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
