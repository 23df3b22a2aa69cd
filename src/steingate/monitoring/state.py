"""Files with the state of a monitor: JSON with a checksum, replaced atomically."""

import hashlib
import json
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from steingate.errors import RunError
from steingate.storage.files import read_regular, replace_file

_MAX_BYTES = 16 << 20


def write_state(path: str | Path, state: Mapping[str, Any]) -> None:
    """Write a state (JSON types) with its SHA-256."""
    body = json.dumps(state, allow_nan=False, sort_keys=True)
    content = json.dumps({"sha256": _digest(body), "state": json.loads(body)}, sort_keys=True)
    replace_file(Path(path), content.encode() + b"\n")


def read_state(path: str | Path) -> dict[str, Any]:
    """Return the state in a file; raise RunError if it is damaged."""
    source = Path(path)
    try:
        content = json.loads(read_regular(source, _MAX_BYTES))
        state, digest = content["state"], content["sha256"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise RunError(f"{source} is not the state of a monitor, or it is damaged.") from None
    if not isinstance(state, dict) or _digest(json.dumps(state, sort_keys=True)) != digest:
        raise RunError(f"{source} is damaged: its checksum does not match; delete it to start anew.")
    return state


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def require(holds: bool, name: str) -> None:
    """Raise ``ValueError`` with the name of the damaged part of a state."""
    if not holds:
        raise ValueError(name)


def as_count(value: Any) -> int:
    """Return a value that must be a nonnegative integer."""
    require(type(value) is int and value >= 0, f"{value!r} is not a count")
    return int(value)


def as_real(value: Any) -> float:
    """Return a value that must be a finite nonnegative number."""
    require(type(value) in (int, float) and isfinite(value) and value >= 0, f"{value!r} is not a number")
    return float(value)
