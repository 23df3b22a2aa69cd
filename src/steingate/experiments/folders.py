"""How far a run has come, read from its folder alone: whether it is finished, begun, or another run's."""

import csv
import math
import os
from pathlib import Path
from typing import Any, NamedTuple

from steingate.errors import InputError, RunError
from steingate.runs import RunFolder, read_config
from steingate.storage.checkpoint import checkpoint_files
from steingate.storage.files import open_regular
from steingate.training.config import WITHOUT_EFFECT, RunConfig, read_stored

_TAIL = 1 << 16


class Standing(NamedTuple):
    """Whether a run has a folder, how many epochs a checkpoint holds, and whether that is all of them."""

    begun: bool
    saved: int
    finished: bool


def standing(cfg: RunConfig) -> Standing:
    """Return how far the run of a configuration has come.

    Raises
    ------
    InputError
        If its folder holds a run with other settings.
    RunError
        If its folder is damaged.
    """
    run = RunFolder(cfg.path)
    if not holds(run, cfg, "--out"):
        return Standing(begun=False, saved=0, finished=False)
    saved = max((epoch for epoch, _ in checkpoint_files(run.checkpoints)), default=0)
    return Standing(begun=True, saved=saved, finished=saved >= cfg.epochs)


def holds(run: RunFolder, cfg: RunConfig, option: str) -> bool:
    """Return whether there is a run of a configuration in a folder.

    Raises
    ------
    InputError
        If it is a run with other settings; ``option`` is what the user can choose otherwise.
    RunError
        If its configuration is damaged.
    """
    if not run.config.exists():
        return False
    stored = read_config(run.path).get("config")
    if not isinstance(stored, dict):
        raise RunError(f"{run.config} is damaged: it has no configuration; move the folder away.")
    try:
        before = read_stored(stored, str(run.config))
    except InputError as error:
        raise RunError(str(error)) from error
    _require_same(cfg, before, run.path, option)
    return True


def last_row(run: Path) -> dict[str, float]:
    """Return the numbers of the last whole row of a run's ``progress.csv``, empty while there is none."""
    return next(iter(recent_rows(run, 1)), {})


def recent_rows(run: Path, count: int) -> list[dict[str, float]]:
    """Return the numbers of the last whole rows of a run's ``progress.csv``, oldest first.

    There are fewer than ``count`` while the file has fewer, or where that many do not fit into 64 kB.
    """
    try:
        with open_regular(RunFolder(run).progress) as file:
            header = file.readline(_TAIL)
            start = file.tell()
            end = file.seek(0, os.SEEK_END)
            begin = file.seek(max(start, end - _TAIL))
            rows = file.read(_TAIL).rpartition(b"\n")[0].splitlines()
    except RunError:
        return []
    if not header.endswith(b"\n"):
        return []
    if begin > start:
        rows = rows[1:] or rows  # cut off at its beginning
    lines = [line.decode("utf-8", "replace") for line in (header, *rows[-count:])]
    try:
        names, *cells = csv.reader(lines)
    except (csv.Error, ValueError):
        return []
    return [_numbers(names, row) for row in cells]


def _numbers(names: list[str], cells: list[str]) -> dict[str, float]:
    found = ((name, _number(cell)) for name, cell in zip(names, cells, strict=False))
    return {name: value for name, value in found if value is not None}


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _require_same(cfg: RunConfig, before: RunConfig, path: Path, option: str) -> None:
    wanted, found = _settings(cfg), _settings(before)
    for name, value in wanted.items():
        if found.get(name) != value:
            raise InputError(
                f"{path} holds a run with {name} {found.get(name)!r} where the grid asks for {value!r}; "
                f"choose another {option}."
            )


def _settings(cfg: RunConfig) -> dict[str, Any]:
    own = {name: value for name, value in cfg.to_dict().items() if name not in WITHOUT_EFFECT}
    return {**own.pop("recipe"), **own}
