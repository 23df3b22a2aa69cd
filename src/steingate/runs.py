"""The run folder: paths, configuration, certification, checkpoints and the lock. Needs no JAX.

Training writes a run folder; reports, policies and the command line read it::

    config.json             settings and versions
    progress.csv            one row per epoch
    episodes.csv            one row per finished episode
    checkpoints/            the last two checkpoints
    certified.safetensors   the certified checkpoint, if there is one
    certification.json      which policy is certified, by which test, or why none is
    evaluations.jsonl       one line per evaluation
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any

from steingate.errors import RunError
from steingate.escaping import printable
from steingate.settings import too_deep
from steingate.storage.checkpoint import Checkpoint, checkpoint_files, latest_checkpoint, read_tree
from steingate.storage.files import process_lock, read_regular, remove_temporary, replace_file
from steingate.storage.tables import Table

WITHOUT_EFFECT = ("overlap", "threads", "workers", "checkpoint_every", "wandb", "out", "certify")
_MAX_JSON_BYTES, _MAX_SENTENCE = 1 << 20, 2000


class RunFolder:
    """Paths of the files in a run folder; see the top of this module."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self.config = self.path / "config.json"
        self.progress = self.path / "progress.csv"
        self.episodes = self.path / "episodes.csv"
        self.checkpoints = self.path / "checkpoints"
        self.certified = self.path / "certified.safetensors"
        self.certification = self.path / "certification.json"


def run_path(out: str | Path, algo: str, env: str, seed: int) -> Path:
    """Return ``out/algo/env/seed-S``; characters other than letters, digits and ``._-`` become dashes."""
    names = (algo, env.removeprefix("steingate/"))
    folders = [re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "unnamed" for name in names]
    return Path(out, *folders, f"seed-{seed}")


def deciding(stored: Mapping[str, Any], steps: bool = False) -> dict[str, Any]:
    """Return the settings of a stored configuration that must not change during a run.

    With ``steps`` the number of steps is one of them; otherwise the run may be extended.
    """
    idle = WITHOUT_EFFECT if steps else (*WITHOUT_EFFECT, "total_steps")
    return {name: value for name, value in stored.items() if name not in idle}


def digest(stored: Mapping[str, Any], steps: bool) -> str:
    """Return a digest of the deciding settings of a stored configuration."""
    return hashlib.sha256(json.dumps(deciding(stored, steps), sort_keys=True).encode()).hexdigest()


def find_runs(root: str | Path) -> list[Path]:
    """Return every run folder at or below ``root``, sorted by path."""
    root = Path(root)
    return sorted(path.parent for path in root.rglob("config.json")) if root.is_dir() else []


def write_config(run: RunFolder, config: dict[str, Any]) -> None:
    """Write ``config.json``; a folder that has one is a run folder."""
    replace_file(run.config, (json.dumps(config, indent=2) + "\n").encode())


def read_config(path: str | PathLike[str]) -> dict[str, Any]:
    """Return the content of a run's ``config.json``."""
    run = RunFolder(path)
    if not run.config.is_file():
        raise RunError(f"{path} is not a run folder: it has no config.json.")
    return _read_object(run.config)


def write_certification(run: RunFolder, content: dict[str, Any]) -> None:
    """Write ``certification.json`` with a digest of its content."""
    content = {**content, "digest": content_digest(content)}
    text = json.dumps(content, indent=2, allow_nan=False)
    text = re.sub(r"\[\n[\d,\s]+\]", lambda seeds: " ".join(seeds[0].split()), text)  # on one line
    replace_file(run.certification, (text + "\n").encode())


def content_digest(content: dict[str, Any]) -> str:
    """Return the SHA-256 of a JSON object without its entry ``digest``."""
    text = json.dumps({key: value for key, value in content.items() if key != "digest"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def load_certification(path: str | PathLike[str]) -> dict[str, Any] | None:
    """Return the content of a run's ``certification.json``, or None if there is none.

    ``certified`` is true or false; ``sentence`` is a summary for users. RunError if the file is damaged, was edited, or
    belongs to another run.
    """
    run = RunFolder(path)
    if not run.certification.exists():
        return None
    content = _read_object(run.certification)
    identity = read_config(path).get("identity") if "identity" in content else None
    problem = certification_problem(content, identity)
    if problem:
        raise RunError(f"{run.certification} {problem}; `steingate resume {path}` writes it again.")
    return {**content, "sentence": printable(content["sentence"], _MAX_SENTENCE)}


def certification_problem(content: Mapping[str, Any], identity: Any) -> str:
    """Return why a certification is not the one that training wrote for the run with this identity, or ""."""
    if not isinstance(content.get("certified"), bool) or not isinstance(content.get("sentence"), str):
        return "is damaged"
    if content.get("digest") != content_digest(dict(content)):
        return "was edited"
    return "" if content.get("identity", identity) == identity else "belongs to another run"


def read_evidence(path: str | PathLike[str]) -> dict[str, Any] | None:
    """Return the content of the ``evidence.json`` of an evidence bundle; None if the folder has none."""
    file = Path(path) / "evidence.json"
    return _read_object(file) if file.is_file() else None


def _read_object(file: Path) -> dict[str, Any]:
    content = read_regular(file, _MAX_JSON_BYTES)
    try:
        found = json.loads(content)
        json.dumps(found, ensure_ascii=False).encode()  # rejects unpaired surrogates
    except (ValueError, RecursionError) as error:  # also for integers of thousands of digits
        raise RunError(f"{file} is damaged and cannot be read as JSON; restore it.") from error
    if not isinstance(found, dict) or too_deep(found):
        raise RunError(f"{file} is damaged: it must hold a JSON object whose tables are not nested too deeply.")
    return found


def certified_checkpoint(path: str | PathLike[str]) -> Checkpoint | None:
    """Return the certified checkpoint of a run folder, or None if there is none.

    RunError if the file is damaged or belongs to another run.
    """
    file = RunFolder(path).certified
    if not file.exists():
        return None
    checkpoint = read_tree(file)
    _check_identity(checkpoint, read_config(path))
    return checkpoint


def _check_identity(checkpoint: Checkpoint, config: dict[str, Any]) -> None:
    if config.get("identity") != checkpoint.tree.get("identity"):
        raise RunError(f"Checkpoint {checkpoint.path} does not belong to this run: another run wrote it.")


def newest_checkpoint(
    path: str | PathLike[str],
    warn: Callable[[str], None] = lambda text: None,
    check: Callable[[Checkpoint], object] = lambda checkpoint: None,
) -> Checkpoint | None:
    """Return the newest usable checkpoint of the run in a folder; arguments as for ``latest_checkpoint``."""
    config = read_config(path)

    def usable(checkpoint: Checkpoint) -> None:
        _check_identity(checkpoint, config)
        check(checkpoint)

    return latest_checkpoint(RunFolder(path).checkpoints, warn, usable)


def require_no_rows(run: RunFolder) -> None:
    """Raise RunError if a run without checkpoints has results, which training from the start would delete."""
    tables = (run.progress, run.episodes)
    if run.certified.exists() or any(path.exists() and read_regular(path).count(b"\n") > 1 for path in tables):
        raise RunError(f"{run.path} has results but no checkpoint, so it cannot be resumed; restore {run.checkpoints}.")


def is_edited(record: Mapping[str, Any]) -> bool:
    """Return whether the settings in the content of ``config.json`` differ from those the run was started with."""
    settings = record.get("config")
    known = isinstance(settings, dict) and (digest(settings, steps=False), digest(settings, steps=True))
    return not known or record.get("identity") not in known


def find_edits(path: str | PathLike[str]) -> list[str]:
    """Return the files of a run that differ from what training wrote, as far as their digests show.

    These are the settings, the certification, and the rows of both tables up to the newest checkpoint.
    """
    run, marks = RunFolder(path), dict[str, Any]()
    for _, file in reversed(checkpoint_files(run.checkpoints)):  # before the tables, which only grow
        with suppress(RunError):
            marks = read_tree(file).tree.get("tables") or {}
            break
    edited = [run.config.name] if is_edited(read_config(path)) else []
    try:
        load_certification(path)
    except RunError:
        edited.append(run.certification.name)
    for table in (run.progress, run.episodes):
        try:
            Table(table, time_prefixes=("Time/",)).check(marks[table.stem])
        except RunError:
            edited.append(table.name)
        except (KeyError, TypeError):
            continue
    return edited


@contextmanager
def folder_lock(run: RunFolder) -> Iterator[None]:
    """Lock the run folder for this process; raise RunError if another process has locked it."""
    try:
        run.path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise RunError(f"Cannot create the folder {run.path}: {reason}; choose another --out.") from error
    with process_lock(run.path / "lock", str(run.path), "wait for it or choose another --out"):
        for folder in (run.path, run.checkpoints):
            remove_temporary(folder)
        yield
