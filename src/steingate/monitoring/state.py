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


def write_state(path: str | Path, state: Mapping[str, Any]) -> None:
    """Write a state (JSON types) with its SHA-256; raise RunError if it is larger than ``MAX_BYTES``."""
    body = json.dumps(state, allow_nan=False)
    content = f'{{"sha256": "{_digest(body)}", "state": {body}}}\n'.encode()
    if len(content) > MAX_BYTES:
        raise RunError(
            f"Cannot write {path}: the state has {len(content) / 2**20:,.0f} MiB, and at most {MAX_BYTES >> 20} are "
            "allowed; divide the monitors among several files."
        )
    replace_file(Path(path), content)


def read_state(path: str | Path) -> dict[str, Any]:
    """Return the state in a file; raise RunError if it is damaged."""
    source = Path(path)
    try:
        content = json.loads(read_regular(source, MAX_BYTES))
        digest, state = content["sha256"], content["state"]
        intact = isinstance(state, dict) and digest == _digest(json.dumps(state))
    except (KeyError, TypeError, ValueError, RecursionError):
        raise RunError(f"{source} is not the state of a monitor, or it is damaged.") from None
    if not intact:
        raise RunError(f"{source} is damaged: its checksum does not match; delete it to start anew.")
    return dict(state)


def lock_state(path: str | Path) -> AbstractContextManager[None]:
    """Hold the lock of a state file; raise RunError with the process that holds it already."""
    return process_lock(Path(f"{path}.lock"), str(path), "stop it, or use another --state")


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def require(holds: bool, name: str) -> None:
    """Raise ``ValueError`` with the name of the damaged part of a state."""
    if not holds:
        raise ValueError(name)


def as_count(value: Any) -> int:
    """Return a value that must be a nonnegative integer."""
    require(type(value) is int and 0 <= value < 1 << 63, "a number that is no count")
    return int(value)


def as_real(value: Any) -> float:
    """Return a value that must be a finite nonnegative number."""
    require(type(value) in (int, float) and isfinite(value) and value >= 0, "a value that is no number")
    return value  # type: ignore[no-any-return]


def as_counts(values: Any) -> list[int]:
    """Return a list that must contain nonnegative integers."""
    require(isinstance(values, list), "counts")
    return [as_count(value) for value in values]


def as_reals(values: Any) -> list[float]:
    """Return a list that must contain finite nonnegative numbers."""
    require(isinstance(values, list), "numbers")
    return [as_real(value) for value in values]
