"""Files with the state of a monitor: JSON with a checksum, replaced atomically, locked while in use."""

import hashlib
import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from math import isfinite
from pathlib import Path
from typing import Any

from steingate.errors import RunError
from steingate.storage.files import process_lock, read_regular, replace_file

MAX_BYTES = 256 << 20  # of a state file, for writing and for reading
_PREFIX = b'{"sha256": "'
_BODY = b'", "state": '


def write_state(path: str | Path, state: Mapping[str, Any]) -> None:
    """Write a state (JSON types) with its SHA-256; raise RunError if it is larger than ``MAX_BYTES``."""
    body = json.dumps(state, allow_nan=False).encode()
    if len(body) > MAX_BYTES - 200:
        raise RunError(
            f"Cannot write {path}: the state has {len(body) / 2**20:,.0f} MiB, and at most {MAX_BYTES >> 20} are "
            "allowed; divide the monitors among several files."
        )
    replace_file(Path(path), b"".join((_PREFIX, _digest(body), _BODY, body, b"}\n")))


def read_state(path: str | Path) -> dict[str, Any]:
    """Return the state in a file; raise RunError if it is damaged."""
    source = Path(path)
    content = read_regular(source, MAX_BYTES)
    start = len(_PREFIX) + 64 + len(_BODY)
    digest, body = content[len(_PREFIX) : len(_PREFIX) + 64], content[start:-2]
    if content != b"".join((_PREFIX, digest, _BODY, body, b"}\n")):
        raise RunError(f"{source} is not the state of a monitor, or it is damaged.")
    if _digest(body) != digest:
        raise RunError(f"{source} is damaged: its checksum does not match; delete it to start anew.")
    try:
        state = json.loads(body)
    except (ValueError, RecursionError):
        state = None
    if not isinstance(state, dict):
        raise RunError(f"{source} is not the state of a monitor, or it is damaged.")
    return state


def lock_state(path: str | Path) -> AbstractContextManager[None]:
    """Hold the lock of a state file; raise RunError with the process that holds it already."""
    return process_lock(Path(f"{path}.lock"), str(path), "stop it, or use another --state")


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()


def require(holds: bool, name: str) -> None:
    """Raise ``ValueError`` with the name of the damaged part of a state."""
    if not holds:
        raise ValueError(name)


def as_count(value: Any) -> int:
    """Return a value that must be a nonnegative integer."""
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError("a number that is no count")
    return value


def as_counts(values: Any) -> list[int]:
    """Return a list that must contain nonnegative integers."""
    require(isinstance(values, list) and set(map(type, values)) <= {int}, "counts")
    require(min(values, default=0) >= 0 and max(values, default=0) < 1 << 63, "counts")
    return list(values)


def as_reals(values: Any) -> list[float]:
    """Return a list that must contain finite nonnegative numbers."""
    require(isinstance(values, list) and set(map(type, values)) <= {int, float}, "numbers")
    require(isfinite(sum(values)) and min(values, default=0) >= 0, "numbers")
    return list(values)


def as_real(value: Any) -> float:
    """Return a value that must be a finite nonnegative number."""
    if type(value) not in (int, float) or not (isfinite(value) and value >= 0):
        raise ValueError("a value that is no number")
    return float(value)
