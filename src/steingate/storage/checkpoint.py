"""Checkpoints: one safetensors file per epoch, written atomically, verified by a SHA-256 when read.

Arrays are safetensors tensors; everything else (nested dicts, lists, numbers, text) is JSON in the metadata,
in which ``{"__array__": i}`` stands for tensor number ``i``. Reading a file executes no code, and sizes are
checked against the length of the file before memory is allocated. The metadata has a single entry:
safetensors writes several in random order, and equal checkpoints have to be equal files.
"""

import hashlib
import json
import re
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from steingate.errors import RunError
from steingate.storage.files import read_regular, replace_file, writing

FORMAT = "steingate-checkpoint-2"
MAX_FILE_BYTES = 1 << 29
CHECKPOINTS_KEPT = 2
_MAX_HEADER_BYTES = 16 << 20
_DAMAGE = (
    SafetensorError, ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError, MemoryError,
)  # fmt: skip
_FILE_NAME = re.compile(r"epoch-(\d{8})\.safetensors")


class Checkpoint(NamedTuple):
    """A checkpoint read from ``path``: a tree of dicts, lists, numbers, text and arrays."""

    path: Path
    epoch: int
    tree: dict[str, Any]


class BadCheckpointError(Exception):
    """Says why the content of a file is not a valid checkpoint."""


def checkpoint_path(folder: Path, epoch: int) -> Path:
    """Return the path of the checkpoint of an epoch."""
    return folder / f"epoch-{epoch:08d}.safetensors"


def checkpoint_files(folder: Path) -> list[tuple[int, Path]]:
    """Return (epoch, path) of every checkpoint in a folder, oldest first."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise RunError(f"{folder} is not a folder; it should hold the checkpoints of the run.")
    found = ((_FILE_NAME.fullmatch(path.name), path) for path in folder.glob("epoch-*.safetensors"))
    return sorted((int(match[1]), path) for match, path in found if match)


def write_checkpoint(folder: Path, epoch: int, tree: dict[str, Any]) -> Path:
    """Write one checkpoint, delete all but the newest two, and return its path."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    path = checkpoint_path(folder, epoch)
    write_tree(path, epoch, tree)
    for _, old in checkpoint_files(folder)[:-CHECKPOINTS_KEPT]:
        with suppress(OSError):
            old.unlink(missing_ok=True)
    return path


def write_tree(path: Path, epoch: int, tree: dict[str, Any]) -> None:
    """Write a tree to ``path`` in the format of checkpoints, atomically."""
    content = encode(tree, epoch)
    if len(content) > MAX_FILE_BYTES:
        raise RunError(f"{path} would be larger than {MAX_FILE_BYTES >> 20} MiB and could not be read; use less state.")
    replace_file(path, content)


def read_checkpoint(path: Path) -> Checkpoint:
    """Return the checkpoint at ``path``; raise RunError if it is damaged or was renamed."""
    match = _FILE_NAME.fullmatch(path.name)
    if not match:
        raise RunError(f"{path} is not named like a checkpoint (epoch-00000000.safetensors).")
    checkpoint = read_tree(path)
    if checkpoint.epoch != int(match[1]):
        raise RunError(f"Checkpoint {path} is unusable: it was written for epoch {checkpoint.epoch}.")
    return checkpoint


def read_tree(path: Path) -> Checkpoint:
    """Return the content of a file in the format of checkpoints, whatever its name."""
    if path.is_symlink() or not path.is_file():
        raise RunError(f"Checkpoint {path} is not a regular file.")
    try:
        tree, epoch = decode(read_regular(path, MAX_FILE_BYTES))
    except BadCheckpointError as error:
        raise RunError(f"Checkpoint {path} is unusable: {error}.") from error
    return Checkpoint(path, epoch, tree)


def latest_checkpoint(
    folder: Path,
    warn: Callable[[str], None] = lambda text: None,
    check: Callable[[Checkpoint], object] = lambda checkpoint: None,
) -> Checkpoint | None:
    """Return the newest usable checkpoint of a folder, or None if the folder holds none.

    ``warn`` is called with one sentence for each newer one that is unusable; ``check`` raises RunError for an intact
    checkpoint that the caller cannot use.
    """
    problems = []
    for _, path in reversed(checkpoint_files(folder)):
        try:
            checkpoint = read_checkpoint(path)
            check(checkpoint)
        except RunError as error:
            problems.append(str(error))
            continue
        for problem in problems:
            warn(f"{problem} Using {path.name} instead.")
        return checkpoint
    if problems:
        raise RunError(" ".join(problems) + " No usable checkpoint is left, so the run cannot be resumed.")
    return None


def put_aside(path: Path, reason: str = "damaged") -> None:
    """Rename an unusable checkpoint to ``NAME.damaged`` (or ``.damaged-2``, ...) so that it is not lost."""
    names = (f"{path.name}.{reason}{'' if k == 1 else f'-{k}'}" for k in count(1))
    free = next(other for name in names if not (other := path.with_name(name)).exists())
    with writing(free):
        path.rename(free)


def encode(tree: dict[str, Any], epoch: int) -> bytes:
    """Return the bytes of a checkpoint file; raise TypeError for values other than plain data and arrays."""
    arrays: list[np.ndarray] = []

    def reference(value: Any) -> dict[str, int]:
        if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in "biuf":
            raise TypeError(f"a checkpoint cannot hold {value!r}")
        arrays.append(np.asarray(value, order="C"))  # safetensors permutes arrays in Fortran order
        return {"__array__": len(arrays) - 1}

    text = json.dumps({"epoch": epoch, "tree": tree}, default=reference)
    tensors = {f"{i:06d}": array for i, array in enumerate(arrays)}
    return safetensors.numpy.save(tensors, {"steingate": f"{FORMAT} {_digest(text, arrays)} {text}"})


def decode(content: bytes) -> tuple[dict[str, Any], int]:
    """Return (tree, epoch) of the bytes of a checkpoint file; raise BadCheckpointError if damaged."""
    header_bytes = int.from_bytes(content[:8], "little")
    if len(content) < 8 or header_bytes > min(_MAX_HEADER_BYTES, len(content) - 8):
        raise BadCheckpointError("it is cut short or not a checkpoint")

    def dereference(value: dict[str, Any]) -> Any:
        return arrays[range(len(arrays)).index(value["__array__"])] if "__array__" in value else value

    try:
        metadata = json.loads(content[8 : 8 + header_bytes])["__metadata__"]["steingate"]
        version, digest, text = metadata.split(" ", 2)
        tensors = safetensors.numpy.load(content)
        arrays = [tensors[f"{i:06d}"] for i in range(len(tensors))]
        parsed = json.loads(text, object_hook=dereference)
        tree, epoch = parsed["tree"], parsed["epoch"]
    except _DAMAGE as error:
        raise BadCheckpointError("it was not written by steingate, or it is damaged") from error
    if version != FORMAT:
        raise BadCheckpointError("it was written by another version of steingate")
    if digest != _digest(text, arrays):
        raise BadCheckpointError("its checksum does not match, so it is damaged")
    if not isinstance(tree, dict) or type(epoch) is not int or not 0 <= epoch < 2**63:
        raise BadCheckpointError("its content is inconsistent, so it is damaged")
    return tree, epoch


def _digest(text: str, arrays: list[np.ndarray]) -> str:
    total = hashlib.sha256(text.encode())
    for array in arrays:
        total.update(f"{array.dtype.name} {array.shape} ".encode() + array.tobytes())
    return total.hexdigest()
