"""State of a run, read from its folder: not started, started or finished."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from steingate.errors import InputError, RunError
from steingate.runs import RunFolder, deciding, load_certification, read_config
from steingate.storage.checkpoint import checkpoint_files
from steingate.training.config import RunConfig


class RunStatus(NamedTuple):
    """State of a run."""

    started: bool  # whether the run has a folder
    epochs: int  # in the newest checkpoint
    finished: bool  # whether that is the last epoch and the certification of the run is complete


def run_status(cfg: RunConfig) -> RunStatus:
    """Return the state of a run; InputError if its folder contains a run with other settings."""
    run = RunFolder(cfg.path)
    if not run.config.exists():
        return RunStatus(started=False, epochs=0, finished=False)
    stored = read_config(run.path).get("config")
    names = ("certify", "algorithm")
    if not isinstance(stored, dict) or not all(isinstance(stored.get(name), dict) for name in names):
        raise RunError(f"{run.config} is damaged: it has no settings; move the folder away.")
    found = dict(_flat(deciding(stored, steps=True)))
    for name, value in _flat(deciding(cfg.to_dict(), steps=True)):
        if name in found and found[name] != value:
            raise InputError(
                f"{run.path} contains a run with {name} {found[name]!r} where the grid has {value!r}; "
                "choose another --out."
            )
    epochs = max((epoch for epoch, _ in checkpoint_files(run.checkpoints)), default=0)
    certification = load_certification(run.path) or {}
    certified = certification.get("finished") is True and certification.get("epoch") == epochs
    finished = epochs >= cfg.epochs and (certified or not stored["certify"].get("enabled"))
    return RunStatus(True, epochs, finished)


def _flat(settings: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield names and values of all settings; those of the algorithm are named without a prefix."""
    for name, value in settings.items():
        if name == "algorithm":
            yield from _flat(value)
        else:
            yield name, value
