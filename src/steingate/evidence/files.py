"""Reading the files of a bundle with bounds, and ``SHA256SUMS``, which lists the digest of each."""

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steingate.errors import RunError
from steingate.escaping import printable
from steingate.storage.files import open_no_link

SCHEMA_VERSION = 1
_MAX_FILES, _MAX_BYTES = 64, 64 << 20


def sha256(content: bytes) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def read_folder(folder: Path) -> tuple[dict[str, bytes], list[str]]:
    """Return the content of each regular file of a folder, and a sentence for everything else in it.

    Symbolic links are not followed; pipes and devices are not read. RunError if it cannot be a bundle.
    """
    try:
        names = sorted(entry.name for entry, _ in zip(os.scandir(folder), range(_MAX_FILES + 1), strict=False))
    except OSError as error:
        raise RunError(f"{folder} is no evidence bundle ({error.strerror}).") from error
    if "evidence.json" not in names or len(names) > _MAX_FILES:
        reason = "it has no evidence.json" if "evidence.json" not in names else f"it has more than {_MAX_FILES} files"
        raise RunError(f"{folder} is no evidence bundle: {reason}.")
    files, problems, left = {}, [], _MAX_BYTES
    for name in names:
        try:
            with open_no_link(folder / name, "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise OSError("it is no regular file")
                content = file.read(left + 1)
        except OSError as error:
            link = (folder / name).is_symlink()
            reason = "it is a symbolic link" if link else str(error.strerror or error).lower()
            problems.append(f"{printable(name, 80)} cannot be read: {reason}.")
            continue
        if len(content) > left:
            raise RunError(f"{folder} is larger than {_MAX_BYTES >> 20} MiB and will not be read.")
        files[name], left = content, left - len(content)
    return files, problems


def sums(files: Mapping[str, bytes]) -> bytes:
    """Return the content of ``SHA256SUMS``, in the format of the command ``sha256sum``."""
    return "".join(f"{sha256(files[name])}  {name}\n" for name in sorted(files) if name != "SHA256SUMS").encode()


def compare_sums(files: Mapping[str, bytes]) -> list[str]:
    """Return a sentence for each file that was changed, removed or added since ``SHA256SUMS`` was written."""
    stored = files.get("SHA256SUMS", b"")
    if stored == sums(files):
        return []
    listed = dict(line.split("  ", 1)[::-1] for line in stored.decode("utf-8", "replace").splitlines() if "  " in line)
    problems = [f"{printable(name, 80)} is missing." for name in sorted(set(listed) - set(files))[:_MAX_FILES]]
    for name in sorted(set(files) - {"SHA256SUMS"}):
        if name not in listed:
            problems.append(f"{printable(name, 80)} does not belong to the bundle.")
        elif listed[name] != sha256(files[name]):
            problems.append(f"{printable(name, 80)} was changed: its SHA-256 is not the one in SHA256SUMS.")
    return problems or ["SHA256SUMS was changed."]


def parse_object(files: Mapping[str, bytes], name: str) -> dict[str, Any]:
    """Return the JSON object in a file of a bundle; RunError if it holds none."""
    try:
        found = json.loads(files[name])
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise RunError(f"{name} holds no JSON object.")
    return found


def to_json(content: Mapping[str, Any]) -> bytes:
    """Return the content of a JSON file of a bundle."""
    return (json.dumps(content, indent=2, allow_nan=False) + "\n").encode()
