"""Checkpoints: one safetensors file each, checksummed, replaced atomically, the last two kept.

A file is an 8-byte length, a JSON header and raw little-endian arrays, nothing else: reading one runs no
code. The header's metadata holds the tree that the arrays hang on and a SHA-256 over tree, layout and data.
Everything is checked against fixed bounds before memory is taken.
"""

import hashlib
import json
import math
import re
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steingate.errors import RunError
from steingate.storage.files import read_regular, replace_file, writing

FORMAT = "steingate-checkpoint-1"
KEPT = 2
MAX_HEADER_BYTES = 16 << 20
MAX_FILE_BYTES = 4 << 30
_MAX_DEPTH = 32
_NAME = re.compile(r"epoch-(\d{8})\.safetensors")
_DTYPES = {
    "BOOL": "|b1", "U8": "|u1", "I8": "|i1", "U16": "<u2", "I16": "<i2", "U32": "<u4",
    "I32": "<i4", "U64": "<u8", "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8",
}  # fmt: skip
_CODES = {np.dtype(text): code for code, text in _DTYPES.items()}


class Checkpoint(NamedTuple):
    """One checkpoint as read: its file and its tree of dicts, lists, numbers, text and arrays."""

    path: Path
    epoch: int
    tree: dict[str, Any]


def checkpoint_path(folder: Path, epoch: int) -> Path:
    """Name of the checkpoint of a given epoch."""
    return folder / f"epoch-{epoch:08d}.safetensors"


def checkpoint_files(folder: Path) -> list[tuple[int, Path]]:
    """(epoch, file) of every checkpoint present, oldest first."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is not a folder; it should hold the checkpoints of the run.")
    found = ((_NAME.fullmatch(path.name), path) for path in folder.glob("epoch-*.safetensors"))
    return sorted((int(match[1]), path) for match, path in found if match)


def write_checkpoint(folder: Path, epoch: int, tree: dict[str, Any]) -> Path:
    """Write one checkpoint and drop all but the newest ones; returns its path."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    path = checkpoint_path(folder, epoch)
    replace_file(path, encode(tree, epoch))
    for _, old in checkpoint_files(folder)[:-KEPT]:
        with suppress(OSError):  # a folder of that name is none of ours
            old.unlink(missing_ok=True)
    return path


def latest_checkpoint(
    folder: Path,
    warn: Callable[[str], None] = lambda text: None,
    check: Callable[[Checkpoint], object] = lambda checkpoint: None,
) -> Checkpoint | None:
    """Return the newest checkpoint that can be used, None when there is none at all.

    Parameters
    ----------
    folder
        Where they are.
    warn
        Hears of those that were passed over.
    check
        Raises RunError for a whole checkpoint that cannot be used here.
    """
    files = checkpoint_files(folder)
    problems = []
    for _, path in reversed(files):
        try:
            checkpoint = read_checkpoint(path)
            check(checkpoint)
        except RunError as error:
            problems.append(str(error))
            continue
        for problem in problems:
            warn(f"{problem} Going on from {path.name} instead.")
        return checkpoint
    if problems:
        raise RunError(" ".join(problems) + " No usable checkpoint is left, so the run cannot go on.")
    return None


def put_aside(path: Path) -> None:
    """Rename a checkpoint that cannot be used, so that it is neither lost nor in the way."""
    names = (f"{path.name}.damaged{number}" for number in ("", *(f"-{k}" for k in range(2, 100))))
    free = next((other for name in names if not (other := path.with_name(name)).exists()), None)
    if free is None:
        raise RunError(f"{path.parent} holds a hundred damaged copies of {path.name}; remove them.")
    with writing(free):
        path.rename(free)


def read_checkpoint(path: Path) -> Checkpoint:
    """Return the checkpoint at ``path``; anything but a whole one raises an error that names it."""
    match = _NAME.fullmatch(path.name)
    if not match:
        raise RunError(f"{path} is not named like a checkpoint (epoch-00000000.safetensors).")
    if path.is_symlink() or not path.is_file():
        raise RunError(f"Checkpoint {path} is not a regular file.")
    content = read_regular(path, MAX_FILE_BYTES)
    try:
        tree, epoch = decode(content)
    except _BadFileError as error:
        raise RunError(f"Checkpoint {path} is unusable: {error}.") from error
    if epoch != int(match[1]):
        raise RunError(f"Checkpoint {path} is unusable: it was written for epoch {epoch}, not for its name.")
    return Checkpoint(path, epoch, tree)


class _BadFileError(Exception):
    """Why bytes are not a checkpoint."""


def encode(tree: dict[str, Any], epoch: int) -> bytes:
    """Bytes of a checkpoint file."""
    arrays: list[np.ndarray] = []
    structure = json.dumps({"epoch": epoch, "tree": _pack(tree, arrays)}, sort_keys=True, allow_nan=False)
    layout: dict[str, Any] = {}
    position = 0
    for index, array in enumerate(arrays):
        end = position + array.nbytes
        layout[f"{index:06d}"] = {
            "dtype": _CODES[array.dtype], "shape": list(array.shape), "data_offsets": [position, end],
        }  # fmt: skip
        position = end
    data = b"".join(array.tobytes() for array in arrays)
    metadata = {"format": FORMAT, "structure": structure, "sha256": _digest(structure, layout, data)}
    header = json.dumps({"__metadata__": metadata, **layout}).encode()
    return struct.pack("<Q", len(header)) + header + data


def decode(content: bytes) -> tuple[dict[str, Any], int]:
    """(tree, epoch) of a checkpoint file's bytes."""
    if len(content) < 8:
        raise _BadFileError("it is shorter than a header")
    length = struct.unpack("<Q", content[:8])[0]
    if length > min(MAX_HEADER_BYTES, len(content) - 8):
        raise _BadFileError("it is cut short or not a checkpoint of this package")
    try:
        header = json.loads(content[8 : 8 + length])
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise _BadFileError("its header is not readable, so it is damaged or of another kind") from error
    metadata = header.pop("__metadata__", None) if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise _BadFileError("it was not written by this package, or by another version of it")
    data = memoryview(content)[8 + length :]
    structure = metadata.get("structure")
    if not isinstance(structure, str) or metadata.get("sha256") != _digest(structure, header, data):
        raise _BadFileError("its checksum does not match, so it is damaged or cut short")
    arrays = _arrays(header, data)
    try:
        parsed = json.loads(structure)
        tree, epoch = _unpack(parsed["tree"], arrays), parsed["epoch"]
    except (KeyError, IndexError, TypeError, ValueError, RecursionError) as error:
        raise _BadFileError("its structure is inconsistent") from error
    if not isinstance(tree, dict) or not isinstance(epoch, int):
        raise _BadFileError("its structure is inconsistent")
    return tree, epoch


def _digest(structure: str, layout: dict[str, Any], data: bytes | memoryview) -> str:
    total = hashlib.sha256()
    total.update(json.dumps([FORMAT, structure, layout], sort_keys=True).encode())
    total.update(data)
    return total.hexdigest()


def _arrays(layout: dict[str, Any], data: memoryview) -> list[np.ndarray]:
    """Return the arrays by name; offsets must tile the data exactly, so no size is taken on trust."""
    arrays, position = [], 0
    for name in sorted(layout):
        entry = layout[name]
        try:
            dtype = np.dtype(_DTYPES[entry["dtype"]])
            shape = tuple(entry["shape"])
            begin, end = entry["data_offsets"]
            if len(shape) > _MAX_DEPTH or any(type(n) is not int or n < 0 for n in (*shape, begin, end)):
                raise ValueError
        except (KeyError, TypeError, ValueError) as error:
            raise _BadFileError(f"array {name} is described wrongly") from error
        if begin != position or end - begin != math.prod(shape) * dtype.itemsize or end > len(data):
            raise _BadFileError(f"array {name} does not fit its place")
        arrays.append(np.frombuffer(data[begin:end], dtype).reshape(shape).copy())
        position = end
    if position != len(data):
        raise _BadFileError("it holds bytes that belong to no array")
    return arrays


def _pack(value: Any, arrays: list[np.ndarray], depth: int = 0) -> Any:
    """JSON for a tree; arrays go to the list, and numbers that JSON lacks become text with a tag."""
    if depth > _MAX_DEPTH:
        raise TypeError("a checkpoint's tree is nested too deeply")
    if isinstance(value, dict):
        return {"dict": {str(key): _pack(item, arrays, depth + 1) for key, item in value.items()}}
    if isinstance(value, list | tuple):
        return {"list": [_pack(item, arrays, depth + 1) for item in value]}
    if isinstance(value, np.ndarray | np.generic):
        array = np.ascontiguousarray(value).reshape(np.shape(value))
        if array.dtype not in _CODES:
            raise TypeError(f"a checkpoint cannot hold arrays of type {array.dtype}")
        arrays.append(array)
        return {"array": len(arrays) - 1}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return int(value) if isinstance(value, int) and not isinstance(value, bool) else value
    raise TypeError(f"a checkpoint cannot hold a {type(value).__name__}")


def _unpack(value: Any, arrays: list[np.ndarray], depth: int = 0) -> Any:
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    if not isinstance(value, dict):
        if isinstance(value, list):
            raise TypeError
        return value
    ((kind, content),) = value.items()
    if kind == "dict":
        return {key: _unpack(item, arrays, depth + 1) for key, item in content.items()}
    if kind == "list":
        return [_unpack(item, arrays, depth + 1) for item in content]
    if kind == "array" and type(content) is int and content >= 0:
        return arrays[content]
    if kind == "float" and content in ("inf", "-inf", "nan"):
        return float(content)
    raise ValueError(f"unknown kind {kind}")
