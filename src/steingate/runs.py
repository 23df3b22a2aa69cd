"""The run folder: training writes it, reports and policies only read it. Needs no JAX."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
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
from steingate.storage.files import read_regular, replace_file, writing
from steingate.storage.locks import try_lock
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
    """The names inside one run folder."""

    path: Path

    @property
    def config(self) -> Path:
        """The resolved configuration with versions."""
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
        """The best policy that was certified, in the format of checkpoints; absent while there is none."""
        return self.path / "certified.safetensors"

    @property
    def certification(self) -> Path:
        """Which policy is certified, by which episodes, or why none is."""
        return self.path / "certification.json"


def run_path(out: str | Path, algo: str, env: str, seed: int) -> Path:
    """Return ``out/algo/env/seed-s``; what is no letter, digit, dot, dash or underscore becomes a dash."""

    def plain(name: str) -> str:
        return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "unnamed"

    return Path(out) / plain(algo) / plain(env.removeprefix("steingate/")) / f"seed-{seed}"


def find_runs(root: str | Path) -> list[Path]:
    """Every run folder at or below ``root``, in order of path."""
    root = Path(root)
    return sorted(path.parent for path in root.rglob("config.json")) if root.is_dir() else []


def write_config(run: RunFolder, config: dict[str, Any]) -> None:
    """Write ``config.json``; its presence is what makes a folder a run."""
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
    """Return the content of a run's ``certification.json``, None where there is none.

    ``sentence`` says it in words; ``certified`` is true or false.
    """
    run = RunFolder(Path(path))
    if not run.certification.exists():
        return None
    verdict = _read_object(run.certification, "verdict")
    if not isinstance(verdict.get("certified"), bool) or not isinstance(verdict.get("sentence"), str):
        raise RunError(f"{run.certification} is damaged: it says neither certified nor not; remove it.")
    return verdict


def certified_checkpoint(path: str | Path) -> Checkpoint | None:
    """Return the best certified policy of a run folder, None where there is none.

    Raises
    ------
    RunError
        If the file is damaged or another run wrote it.
    """
    file = RunFolder(Path(path)).certified
    if not file.exists():
        return None
    checkpoint = read_tree(file)
    check_identity(checkpoint, read_config(path))
    return checkpoint


def _read_object(file: Path, what: str) -> dict[str, Any]:
    content = read_regular(file, _MAX_CONFIG_BYTES)
    try:
        found = json.loads(content)
        json.dumps(found, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    except (ValueError, RecursionError) as error:  # also for integers of thousands of digits
        raise RunError(f"{file} is damaged and cannot be read as JSON; restore it.") from error
    if not isinstance(found, dict):
        raise RunError(f"{file} is not a {what}: it must hold a JSON object.")
    return found


def check_identity(checkpoint: Checkpoint, config: dict[str, Any]) -> None:
    """Refuse a checkpoint that another run wrote; runs from before there were identities are not checked."""
    if config.get("identity") not in (None, checkpoint.tree.get("identity")):
        raise RunError(f"Checkpoint {checkpoint.path} does not belong to this run: another one wrote it.")


def newest_checkpoint(
    path: str | Path,
    warn: Callable[[str], None] = lambda text: None,
    check: Callable[[Checkpoint], object] = lambda checkpoint: None,
) -> Checkpoint | None:
    """Return the newest checkpoint of a run folder that can be used, None when there is none at all.

    Parameters
    ----------
    path
        The run folder.
    warn
        Hears of damaged and foreign ones that were passed over.
    check
        Raises a ``RunError`` for a checkpoint that cannot be used.
    """
    config = read_config(path)

    def usable(checkpoint: Checkpoint) -> None:
        check_identity(checkpoint, config)
        check(checkpoint)

    return latest_checkpoint(RunFolder(Path(path)).checkpoints, warn, usable)


@contextmanager
def folder_lock(run: RunFolder) -> Iterator[None]:
    """Hold the run folder for this process; a second writer is refused by name.

    The lock belongs to the open file, so the system frees it however the process ends.
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


# What settings of methods were before they were settings, for records that do not have them.
_BEFORE: dict[str, Any] = {"first_std": 1.0, "places": False, "inward": 0.0}
_BEFORE_IN_PARTS: dict[str, dict[str, Any]] = {"pace": {"settled": 1.05, "patience": 1.0}}


def completed(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return a method's settings from a ``config.json``, with what was not a setting yet as it was then.

    >>> completed({"lam": 0.95, "first_std": 2.0})
    {'first_std': 2.0, 'places': False, 'inward': 0.0, 'lam': 0.95}
    """
    parts = {
        name: {**then, **recipe[name]}
        for name, then in _BEFORE_IN_PARTS.items()
        if isinstance(recipe.get(name), Mapping)
    }
    return {**_BEFORE, **recipe, **parts}
