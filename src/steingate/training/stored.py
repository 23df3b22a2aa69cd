"""The configuration a run folder was made with, read back and held against what its checkpoints say."""

from pathlib import Path
from typing import Any

from steingate.errors import InputError, RunError
from steingate.runs import Checkpoint, RunFolder, read_checkpoint, read_config
from steingate.storage.checkpoint import checkpoint_files
from steingate.training.config import RunConfig, deciding, digest, read_stored


def stored_config(path: str | Path) -> RunConfig:
    """Return the configuration a run folder was made with.

    Raises
    ------
    RunError
        If it cannot be used, or is no longer the one that the run was started with.
    """
    record = read_config(path)
    settings = record.get("config")
    if not isinstance(settings, dict):
        raise RunError(f"{path}/config.json has no table 'config', so it was not written by steingate train.")
    try:
        cfg = read_stored(settings, f"{path}/config.json")
    except InputError as error:
        raise RunError(str(error)) from error
    if "recipe" in settings:
        _check_unchanged(Path(path), record, cfg)
    return cfg


def _check_unchanged(path: Path, record: dict[str, Any], cfg: RunConfig) -> None:
    """Refuse a configuration that was edited, naming what is different where a checkpoint tells."""
    identity, stored = record.get("identity"), record["config"]
    # Another version may fill in settings that the file does not have: then the file itself is compared.
    if identity in (cfg.identity, digest(stored, cfg.algo.needs_epochs)):
        return
    checkpoint = _newest_whole(path)
    tree = {} if checkpoint is None else checkpoint.tree
    if identity is None and tree.get("identity") is None:
        return  # from before there were identities
    before = tree.get("config")
    changes = list(_changes(deciding(stored), before)) if isinstance(before, dict) else []
    if identity is None:
        changes.append("its identity is gone")
    what = ", ".join(changes) or "its settings do not fit its identity"
    raise RunError(
        f"{path}/config.json was changed after the run was started: {what}; restore it, or train anew. "
        f"Only the number of steps may grow, by steingate resume {path} --total-steps N."
    )


def _changes(now: Any, before: Any, name: str = "") -> list[str]:
    """Return a phrase for each setting that is not what it was."""
    if isinstance(now, dict) and isinstance(before, dict):
        prefix = f"{name}." if name and name != "recipe" else ""
        return [
            phrase
            for key in {**now, **before}
            for phrase in _changes(now.get(key), before.get(key), f"{prefix}{key}")
        ]
    return [] if now == before else [f"{name} is {_shown(now)}, but was {_shown(before)}"]


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _newest_whole(path: Path) -> Checkpoint | None:
    """Return the newest checkpoint that can be read, whoever wrote it."""
    for _, file in reversed(checkpoint_files(RunFolder(path).checkpoints)):
        try:
            return read_checkpoint(file)
        except RunError:
            continue
    return None
