"""Load run folders and archives as arrays, and their settings as plain data.

Reading never writes. A run that is still being trained is read up to its last complete epoch. A run that
cannot be read is listed as skipped, with the reason.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf, isfinite
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.algorithms.modes import Mode, effective_modes
from steingate.errors import InputError, RunError, SteingateError, is_real
from steingate.escaping import printable
from steingate.report.archive import SUFFIX, RunData, is_archive, read_archive
from steingate.report.statistics import window_cvar, window_means
from steingate.runs import (
    WITHOUT_EFFECT,
    RunFolder,
    certification_problem,
    find_edits,
    find_runs,
    is_edited,
    load_certification,
    read_config,
)
from steingate.settings import too_deep
from steingate.storage.tables import read_episodes, read_progress

Array = npt.NDArray[np.float64]
Signature = tuple[tuple[int, int], ...]

WINDOW = 100  # episodes in the running means that tables and curves show
_MAX_NAME = 120
_REQUIRED = ("TotalEnvSteps", "Metrics/EpRet", "Metrics/EpCost", "Gate/Mode")

# Settings that change neither the policy nor a logged number.
NO_EFFECT = ("seed", *WITHOUT_EFFECT)
_MAX = 1e300  # of a number in a record
_KINDS = {"algo": str, "env": str, "seed": int, "total_steps": int, "steps_per_epoch": int, "cost_limit": int | float}
_LOWEST = {"cost_limit": 0, "steps_per_epoch": 1}


@dataclass(frozen=True)
class Run:
    """One training run."""

    path: Path  # run folder; for an archived run, the archive followed by the folder
    record: dict[str, Any]  # content of config.json
    certification: dict[str, Any] | None  # content of certification.json
    progress: dict[str, Array]  # columns of progress.csv, one entry per epoch, NaN where a cell is empty
    episodes: dict[str, Array]  # columns of episodes.csv, one entry per episode of these epochs
    # For each epoch, statistics of the last 100 episodes that finished by its end: mean "return" and "cost",
    # "violation_rate", and "cvar", the CVaR of the cost at level 0.9.
    recent: dict[str, Array]
    modes: npt.NDArray[np.int64]  # Mode of the policy step of each epoch
    env: str  # name of the task, without this package's prefix
    algo: str  # name of the algorithm
    order: float  # position of the algorithm in tables and figures, infinite if unknown
    color: str | None  # preferred color of the algorithm
    seed: int
    window: int  # episodes in the running means of progress.csv
    trained_limit: float  # limit on the cost of an episode in training
    limit: float  # limit for all statistics
    edited: tuple[str, ...]  # files that differ from what training wrote, as far as digests show

    @property
    def config(self) -> dict[str, Any]:
        """Settings of the run."""
        config: dict[str, Any] = self.record["config"]
        return config

    @property
    def n_epochs(self) -> int:
        """Number of finished epochs."""
        return len(self.modes)

    @property
    def planned_epochs(self) -> int:
        """Number of epochs of the complete run."""
        return int(self.config["total_steps"]) // int(self.config["steps_per_epoch"])

    @property
    def complete(self) -> bool:
        """Whether all planned epochs are finished."""
        return self.n_epochs >= self.planned_epochs

    @property
    def steps(self) -> int:
        """Environment steps so far."""
        return int(self.progress["TotalEnvSteps"][-1])

    def setting(self, name: str, default: Any = None) -> Any:
        """Return a setting of the algorithm or of the run by name, such as ``"variant"``."""
        return {**self.config, **algorithm_settings(self.config)}.get(name, default)


@dataclass(frozen=True)
class Skipped:
    """A run that was left out, and why."""

    path: Path
    reason: str


def load_runs(roots: Iterable[str | Path], limit: float | None = None) -> tuple[list[Run], list[Skipped]]:
    """Load all runs in run folders, archives, and folders that contain them at any depth, in order of path.

    Runs with the same settings and seed are loaded once, because they have the same result and must not count as two
    seeds. Runs that cannot be read or are loaded already are returned as skipped. ``limit`` is the limit on the cost of
    an episode for all statistics (default: that of each run's training).
    """
    runs: dict[str, Run] = {}
    skipped: list[Skipped] = []
    for found in (found for path in run_files(roots) for found in _load(path, signature(path))):
        if isinstance(found, Skipped):
            skipped.append(found)
            continue
        first = runs.setdefault(f"{canonical(settings(found.config))} {found.seed} {bool(found.edited)}", found)
        if first is not found:
            reason = f"It has the configuration and seed of {first.path} and is counted once."
            skipped.append(Skipped(found.path, reason))
    return [run if limit is None else judge(run, limit) for run in runs.values()], skipped


def load_run(path: str | Path) -> Run:
    """Load one run folder; a ``RunError`` names what is damaged or missing."""
    path = Path(path)
    record, edited = read_config(path), tuple(find_edits(path))
    # Progress first: episodes are written before it, so all episodes of the epochs read here exist.
    progress = {name: _numbers(cells) for name, cells in read_progress(path).items()}
    episodes = read_episodes(path)
    certification = None if "certification.json" in edited else load_certification(path)
    return _make_run(RunData(path, record, certification, progress, episodes), edited)


def judge(run: Run, limit: float) -> Run:
    """Return a run whose statistics have another limit on the cost of an episode."""
    over = (run.episodes["cost"] > limit).astype(np.float64)
    rate = window_means(over, run.episodes["epoch"], run.n_epochs, WINDOW)
    return replace(run, recent=run.recent | {"violation_rate": rate}, limit=limit)


def run_files(roots: Iterable[str | Path]) -> list[Path]:
    """Return all run folders and archives at or below the given paths, each once, in order of path."""
    found: dict[Path, Path] = {}
    for root in map(Path, roots):
        archives = [root] if is_archive(root) else root.rglob(f"*{SUFFIX}") if root.is_dir() else []
        for path in [*find_runs(root), *archives]:
            found.setdefault(path.resolve(), path)
    return sorted(found.values())


def require_runs(roots: Sequence[str | Path]) -> None:
    """Raise an ``InputError`` if a given path is neither a folder nor an archive."""
    for root in roots:
        if not Path(root).is_dir() and not is_archive(root):
            raise InputError(f"There is no folder or archive {root}; name run folders or a folder of runs.")


def signature(path: Path) -> Signature:
    """Return modification times and sizes of the files of a run folder or archive."""
    run = RunFolder(path)
    files = (run.config, run.progress, run.episodes, run.certification) if path.is_dir() else (path,)
    stats = [file.stat() for file in files if file.exists()]
    return tuple((stat.st_mtime_ns, stat.st_size) for stat in stats)


@lru_cache(maxsize=4096)  # a live page loads the same files again and again, and few of them have changed
def _load(path: Path, _: Signature) -> tuple[Run | Skipped, ...]:
    """Return the run in a folder, or the runs of an archive."""
    try:
        return (load_run(path),) if path.is_dir() else tuple(map(_archived_run, read_archive(path)))
    except (SteingateError, OSError) as error:
        return (Skipped(path, str(error)),)
    except Exception as error:  # whatever a foreign folder contains, it must not end the report of the others
        return (Skipped(path, f"It cannot be read ({type(error).__name__}: {shorten(str(error), 200)})."),)


def _archived_run(data: RunData) -> Run | Skipped:
    record, certification = data.record, data.certification
    edited: list[str] = []
    if "identity" in record:  # otherwise there are no digests
        edited += ["config.json"] if is_edited(record) else []
        if certification is not None and certification_problem(certification, record["identity"]):
            edited.append("certification.json")
    try:
        return _make_run(data, tuple(edited))
    except RunError as error:
        return Skipped(data.path, str(error))


def _make_run(data: RunData, edited: tuple[str, ...]) -> Run:
    _check_record(data.path, data.record)
    _check_tables(data)
    modes = effective_modes(data.progress["Gate/Mode"], data.progress.get("Loss/Case"))
    known = data.episodes["epoch"] < len(modes)
    episodes = {name: cells[known] for name, cells in data.episodes.items()}
    epoch, cost = episodes["epoch"], episodes["cost"]
    recent = {name: window_means(episodes[name], epoch, len(modes), WINDOW) for name in ("return", "cost")}
    recent["cvar"] = window_cvar(cost, epoch, len(modes), WINDOW)
    config, style = data.record["config"], data.record.get("plot_style")
    style = style if isinstance(style, dict) else {}
    name, order, color, window = style.get("name"), style.get("order"), style.get("color"), config.get("window")
    limit = float(config["cost_limit"])
    run = Run(
        *data._replace(episodes=episodes),
        recent=recent,
        modes=modes,
        env=printable(config["env"], _MAX_NAME).removeprefix("steingate/"),
        algo=printable(name if isinstance(name, str) and name else config["algo"], _MAX_NAME),
        order=float(order) if is_real(order) and -_MAX < order < _MAX else inf,
        color=color.lower() if isinstance(color, str) and re.fullmatch("#[0-9a-fA-F]{6}", color) else None,
        seed=config["seed"],
        window=window if type(window) is int else WINDOW,
        trained_limit=limit,
        limit=limit,
        edited=edited,
    )
    return judge(run, limit)


def _check_record(path: Path, record: dict[str, Any]) -> None:
    """Raise a ``RunError`` that names a missing or invalid entry of ``config.json``."""
    file, config = path / "config.json", record.get("config")
    if too_deep(record):
        raise RunError(f"{file} is damaged: its tables are nested too deeply.")
    if not isinstance(config, dict):
        raise RunError(f"{file} is damaged: it has no configuration.")
    for name, kind in _KINDS.items():
        value = config.get(name)
        if isinstance(value, bool) or not isinstance(value, kind):
            raise RunError(f"{file} is damaged: {name} is {value!r}.")
        if isinstance(value, int | float) and not _LOWEST.get(name, -_MAX) <= value < _MAX:
            raise RunError(f"{file} is damaged: {name} is out of range.")


def _check_tables(data: RunData) -> None:
    progress, episodes = data.progress, data.episodes
    if not progress or not len(next(iter(progress.values()))):
        raise RunError(f"{data.path} holds no finished epoch yet.")
    for name in _REQUIRED:
        if name not in progress:
            raise RunError(f"{data.path / 'progress.csv'} is damaged: it has no column {name}.")
    steps = progress["TotalEnvSteps"]
    bad = ~np.isfinite(steps) | ~np.isin(progress["Gate/Mode"], list(Mode)) | (np.diff(steps, prepend=0.0) <= 0.0)
    if bad.any():
        raise RunError(f"{data.path / 'progress.csv'} is damaged in the row of epoch {int(np.argmax(bad))}.")
    finite = np.isfinite(np.stack(list(episodes.values()))).all(axis=0)
    damaged = ~finite | (np.diff(episodes["epoch"], prepend=0.0) < 0.0)
    if damaged.any():
        raise RunError(f"{data.path / 'episodes.csv'} is damaged in the row of episode {int(np.argmax(damaged))}.")


def _numbers(cells: list[Any]) -> Array:
    good = [isinstance(cell, int | float) and isfinite(cell) for cell in cells]
    return np.array([float(cell) if ok else np.nan for cell, ok in zip(cells, good, strict=True)], np.float64)


# Settings. ``config["algorithm"]`` has those of the algorithm, with a nested table for each group of options.


def algorithm_settings(config: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the algorithm."""
    table = config.get("algorithm")
    return table if isinstance(table, dict) else {}


def settings(config: dict[str, Any]) -> dict[str, Any]:
    """Return all settings that affect the result of a run, except the seed; groups as ``group.name``.

    >>> settings({"algo": "cpo", "seed": 3, "algorithm": {"max_kl": 0.1, "ppo": {"epochs": 40}}})
    {'algo': 'cpo', 'max_kl': 0.1, 'ppo.epochs': 40}
    """
    result = _flatten({key: value for key, value in config.items() if key not in (*NO_EFFECT, "algorithm")})
    if "env" in result:
        result["env"] = str(result["env"]).removeprefix("steingate/")
    return result | _flatten(algorithm_settings(config))


def _flatten(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a table without nested tables, whose names become ``group.name``, as in TOML."""
    result: dict[str, Any] = {}
    for key, value in table.items():
        plain = re.fullmatch(r"[A-Za-z0-9_-]+", key)
        name = prefix + (key if plain else json.dumps(key, ensure_ascii=False))
        result |= _flatten(value, f"{name}.") if isinstance(value, dict) else {name: value}
    return result


def canonical(value: Any) -> str:
    """Return a text that is the same for equal values (2 and 2.0 are equal) and differs otherwise."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(canonical, value))}]"
    if isinstance(value, dict):
        items = sorted((json.dumps(str(key)), canonical(item)) for key, item in value.items())
        return f"{{{', '.join(f'{key}: {item}' for key, item in items)}}}"
    return json.dumps(value, default=repr)


def to_toml(config: dict[str, Any]) -> str:
    """Return a configuration as a TOML file for ``steingate train --config``."""
    run = {key: value for key, value in config.items() if key != "algorithm"}
    options = _flatten(run | algorithm_settings(config)).items()
    return "".join(f"{key} = {_toml(value)}\n" for key, value in options if value is not None)


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value if isinstance(value, bool | int) else str(value), ensure_ascii=False)
