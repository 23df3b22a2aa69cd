"""The run folder: paths, configuration, certification, checkpoints and the lock. Needs no JAX.

Training writes a run folder; reports, policies and the command line read it::

    config.json               settings and versions
    progress.csv              one row per epoch
    episodes.csv              one row per finished episode
    checkpoints/              the last two checkpoints
    certified.safetensors     the certified checkpoint, if there is one
    certification.json        result of the certification tests
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steingate.errors import RunError
from steingate.storage.checkpoint import (
    Checkpoint,
    latest_checkpoint,
    read_checkpoint,
    read_tree,
    write_checkpoint,
    write_tree,
)
from steingate.storage.files import read_regular, replace_file, try_lock, writing
from steingate.storage.tables import Table, read_episodes, read_progress, table_content, table_file

__all__ = [
    "Checkpoint",
    "RunFolder",
    "Table",
    "certified_checkpoint",
    "check_identity",
    "find_runs",
    "folder_lock",
    "latest_checkpoint",
    "load_certification",
    "newest_checkpoint",
    "read_checkpoint",
    "read_config",
    "read_episodes",
    "read_progress",
    "run_path",
    "table_content",
    "table_file",
    "write_certification",
    "write_checkpoint",
    "write_config",
    "write_tree",
]

_MAX_CONFIG_BYTES = 1 << 20


@dataclass(frozen=True)
class RunFolder:
    """Paths of the files in a run folder."""

    path: Path

    @property
    def config(self) -> Path:
        """The complete configuration, and versions of packages."""
        return self.path / "config.json"

    @property
    def progress(self) -> Path:
        """One row per epoch."""
        return self.path / "progress.csv"

    @property
    def episodes(self) -> Path:
        """One row per finished episode."""
        return self.path / "episodes.csv"

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        return self.path / "checkpoints"

    @property
    def certified(self) -> Path:
        """The best certified policy, in the format of checkpoints; absent if there is none."""
        return self.path / "certified.safetensors"

    @property
    def certification(self) -> Path:
        """Which policy is certified, by which test, or why none is."""
        return self.path / "certification.json"


def run_path(out: str | Path, algo: str, env: str, seed: int) -> Path:
    """Return ``out/algo/env/seed-S``; characters other than letters, digits and ``._-`` become dashes."""

    def plain(name: str) -> str:
        return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "unnamed"

    return Path(out) / plain(algo) / plain(env.removeprefix("steingate/")) / f"seed-{seed}"


def find_runs(root: str | Path) -> list[Path]:
    """Return every run folder at or below ``root``, sorted by path."""
    root = Path(root)
    return sorted(path.parent for path in root.rglob("config.json")) if root.is_dir() else []


def write_config(run: RunFolder, config: dict[str, Any]) -> None:
    """Write ``config.json``; a folder that has one is a run folder."""
    replace_file(run.config, (json.dumps(config, indent=2) + "\n").encode())


def read_config(path: str | Path) -> dict[str, Any]:
    """Return the content of a run's ``config.json``."""
    run = RunFolder(Path(path))
    if not run.config.is_file():
        raise RunError(f"{path} is not a run folder: it has no config.json.")
    return _read_object(run.config, "configuration")


def write_certification(run: RunFolder, content: dict[str, Any]) -> None:
    """Write ``certification.json``."""
    replace_file(run.certification, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())


def load_certification(path: str | Path) -> dict[str, Any] | None:
    """Return the content of a run's ``certification.json``, or None if there is none.

    ``certified`` is true or false; ``sentence`` is a summary for users.
    """
    run = RunFolder(Path(path))
    if not run.certification.exists():
        return None
    content = _read_object(run.certification, "certification")
    if not isinstance(content.get("certified"), bool) or not isinstance(content.get("sentence"), str):
        raise RunError(f"{run.certification} is damaged: remove the file to continue without it.")
    return content


def certified_checkpoint(path: str | Path) -> Checkpoint | None:
    """Return the certified checkpoint of a run folder, or None if there is none.

    Raises
    ------
    RunError
        If the file is damaged or belongs to another run.
    """
    file = RunFolder(Path(path)).certified
    if not file.exists():
        return None
    checkpoint = read_tree(file)
    check_identity(checkpoint, read_config(path))
    return checkpoint


def _read_object(file: Path, name: str) -> dict[str, Any]:
    content = read_regular(file, _MAX_CONFIG_BYTES)
    try:
        found = json.loads(content)
        json.dumps(found, ensure_ascii=False).encode()  # rejects unpaired surrogates
    except (ValueError, RecursionError) as error:  # also for integers of thousands of digits
        raise RunError(f"{file} is damaged and cannot be read as JSON; restore it.") from error
    if not isinstance(found, dict):
        raise RunError(f"{file} is not a {name}: it must hold a JSON object.")
    return found


def check_identity(checkpoint: Checkpoint, config: dict[str, Any]) -> None:
    """Raise RunError if a checkpoint was written by another run than the one with this ``config.json``."""
    if config.get("identity") != checkpoint.tree.get("identity"):
        raise RunError(f"Checkpoint {checkpoint.path} does not belong to this run: another run wrote it.")


def newest_checkpoint(
    path: str | Path,
    warn: Callable[[str], None] = lambda text: None,
    check: Callable[[Checkpoint], object] = lambda checkpoint: None,
) -> Checkpoint | None:
    """Return the newest usable checkpoint of a run folder, or None if there is no checkpoint.

    Parameters
    ----------
    path
        The run folder.
    warn
        Called with one sentence for each skipped checkpoint (damaged, or of another run).
    check
        Raises RunError for an intact checkpoint that the caller cannot use.
    """
    config = read_config(path)

    def usable(checkpoint: Checkpoint) -> None:
        check_identity(checkpoint, config)
        check(checkpoint)

    return latest_checkpoint(RunFolder(Path(path)).checkpoints, warn, usable)


@contextmanager
def folder_lock(run: RunFolder) -> Iterator[None]:
    """Lock the run folder for this process; raise RunError if another process has locked it.

    The operating system releases the lock when the process ends, for whatever reason.
    """
    with writing(run.path):
        run.path.mkdir(parents=True, exist_ok=True)
        file = open(run.path / "lock", "a+", encoding="utf-8")  # noqa: SIM115 (held across the yield)
    try:
        if not try_lock(file):
            file.seek(0)
            owner = file.read(20).strip() or "unknown"
            raise RunError(f"{run.path} is in use by process {owner}; wait for it or choose another --out.")
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
    finally:
        file.close()
