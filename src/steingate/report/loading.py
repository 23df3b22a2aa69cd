"""Run folders as arrays: what can be read, and by name what cannot.

Reading never writes and never leaves the folders it was given: a file that a symbolic link puts outside of
them is refused. A run that is still being written is read up to its last whole epoch.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.errors import InputError, RunError, SteingateError
from steingate.gates.base import Mode
from steingate.gates.modes import effective_modes
from steingate.report.record import canonical, check_record, find_setting, settings
from steingate.report.stats import window_means, window_tails
from steingate.runs import RunFolder, find_runs, read_config, read_episodes, read_progress, table_file

Array = npt.NDArray[np.float64]

_REQUIRED = ("TotalEnvSteps", "Metrics/EpRet", "Metrics/EpCost", "Gate/Mode")
WINDOW = 100  # episodes in the means that tables and curves show, whatever a run logs


@dataclass(frozen=True)
class Run:
    """One run folder in memory.

    Attributes
    ----------
    path
        The folder.
    record
        All of ``config.json``.
    progress
        Columns of ``progress.csv``, one entry per epoch, NaN where a cell is empty.
    episodes
        Columns of ``episodes.csv``, one entry per episode of those epochs.
    recent
        For each epoch, over the last hundred episodes finished by its end: mean ``return`` and ``cost``, the
        share ``over`` the limit, and ``tail``, the mean cost of the costliest tenth. The log's own running
        means may be over another number of episodes.
    modes
        What each epoch's policy step did, as ``Mode``.
    """

    path: Path
    record: dict[str, Any]
    progress: dict[str, Array]
    episodes: dict[str, Array]
    recent: dict[str, Array]
    modes: npt.NDArray[np.int64]

    @property
    def config(self) -> dict[str, Any]:
        """The configuration alone."""
        config: dict[str, Any] = self.record["config"]
        return config

    @property
    def env(self) -> str:
        """The task, without this package's prefix."""
        return str(self.config["env"]).removeprefix("steingate/")

    @property
    def algo(self) -> str:
        """The algorithm."""
        return str(self.config["algo"])

    @property
    def seed(self) -> int:
        """The seed."""
        return int(self.config["seed"])

    @property
    def limit(self) -> float:
        """The limit on an episode's cost."""
        return float(self.config["cost_limit"])

    @property
    def epochs(self) -> int:
        """Epochs finished so far."""
        return len(self.modes)

    @property
    def planned(self) -> int:
        """Epochs when the run is complete."""
        return int(self.config["total_steps"]) // int(self.config["steps_per_epoch"])

    @property
    def complete(self) -> bool:
        """Whether every planned epoch is there."""
        return self.epochs >= self.planned

    @property
    def steps(self) -> int:
        """Environment steps so far."""
        return int(self.progress["TotalEnvSteps"][-1])


@dataclass(frozen=True)
class Skipped:
    """A run folder that was left out, and why."""

    path: Path
    reason: str


def load_runs(
    roots: Iterable[str | Path], load: Callable[[Path, Path], Run] | None = None
) -> tuple[list[Run], list[Skipped]]:
    """Return the runs at or below the given folders in order of path, and those that had to be left out.

    A folder that is reached twice is read once; so is a configuration with the same seed, because equal
    configurations give equal runs and must not count as two. ``load`` may stand in for ``load_run``.
    """
    runs: list[Run] = []
    skipped: list[Skipped] = []
    seen: dict[str, Path] = {}
    for folder, root in run_folders(roots):
        try:
            run = (load or load_run)(folder, root)
        except SteingateError as error:
            skipped.append(Skipped(folder, str(error)))
            continue
        identity = f"{canonical(settings(run.config))} {run.seed}"
        if identity in seen:
            reason = f"It has the configuration and seed of {seen[identity]} and is counted once."
            skipped.append(Skipped(folder, reason))
            continue
        seen[identity] = folder
        runs.append(run)
    return runs, skipped


def cut(run: Run, steps: int) -> Run:
    """Return a run as if it had been planned with, and had made, only its first ``steps``."""
    epochs = int(np.sum(run.progress["TotalEnvSteps"] <= steps))
    return replace(
        run,
        record=run.record | {"config": {**run.config, "total_steps": steps}},
        progress={name: cells[:epochs] for name, cells in run.progress.items()},
        episodes={name: cells[run.episodes["epoch"] < epochs] for name, cells in run.episodes.items()},
        recent={name: cells[:epochs] for name, cells in run.recent.items()},
        modes=run.modes[:epochs],
    )


def run_folders(roots: Iterable[str | Path]) -> list[tuple[Path, Path]]:
    """Return each run folder once, in order of path, with the given folder in which it was found."""
    found: dict[Path, tuple[Path, Path]] = {}
    for root in roots:
        for folder in find_runs(root):
            found.setdefault(folder.resolve(), (folder, Path(root)))
    return sorted(found.values())


def load_run(path: str | Path, root: str | Path | None = None) -> Run:
    """Return one run; a ``RunError`` names what is damaged, missing or outside of ``root``."""
    folder = RunFolder(Path(path))
    for file in (folder.config, table_file(folder.progress), table_file(folder.episodes)):
        if not inside(file, Path(path) if root is None else Path(root)):
            raise RunError(f"{file} leads out of the run folders; it is not read.")
    try:
        record = read_config(path)
        check_record(folder.config, record)
        # Progress first: episodes are written before it, so those of each epoch read here are complete.
        progress = {name: _numbers(cells) for name, cells in read_progress(folder.path).items()}
        _check_progress(folder, progress)
        episodes = read_episodes(folder.path)
    except OSError as error:
        raise RunError(f"{path} cannot be read ({error}).") from error
    modes = effective_modes(progress["Gate/Mode"], progress.get("Step/Case"))
    _check_episodes(folder.episodes, episodes)
    known = episodes["epoch"] < len(modes)
    episodes = {key: cells[known] for key, cells in episodes.items()}
    limit = float(record["config"]["cost_limit"])
    watched = {
        "return": episodes["return"],
        "cost": episodes["cost"],
        "over": (episodes["cost"] > limit).astype(np.float64),
    }
    recent = {
        name: window_means(values, episodes["epoch"], len(modes), WINDOW) for name, values in watched.items()
    }
    recent["tail"] = window_tails(episodes["cost"], episodes["epoch"], len(modes), WINDOW)
    return Run(folder.path, record, progress, episodes, recent, modes)


def setting(run: Run, name: str, default: Any = None) -> Any:
    """Return a setting of a run by its name, such as ``"variant"`` or ``"certificate.budget"``."""
    return find_setting(run.config, name, default)


def inside(path: Path, root: Path) -> bool:
    """Return whether ``path``, with its symbolic links followed, lies in ``root``."""
    try:
        return path.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):  # a loop of links
        return False


def run_id(path: Path) -> str:
    """Return a short name for a run folder that says nothing of its path."""
    return hashlib.sha256(str(path).encode()).hexdigest()[:16]


def require_runs(roots: Sequence[str | Path]) -> None:
    """Raise an ``InputError`` that names a given path which is not a folder."""
    for root in roots:
        if not Path(root).is_dir():
            raise InputError(f"There is no folder {root}; name run folders or a folder that holds some.")


def _check_progress(folder: RunFolder, progress: dict[str, Array]) -> None:
    if not progress or not len(next(iter(progress.values()))):
        raise RunError(f"{folder.path} holds no finished epoch yet.")
    for name in _REQUIRED:
        if name not in progress:
            raise RunError(f"{folder.progress} is damaged: it has no column {name}.")
    steps, modes = progress["TotalEnvSteps"], progress["Gate/Mode"]
    bad = ~np.isfinite(steps) | ~np.isin(modes, list(Mode)) | (np.diff(steps, prepend=0.0) <= 0.0)
    if bad.any():
        raise RunError(f"{folder.progress} is damaged in the row of epoch {int(np.argmax(bad))}.")


def _check_episodes(path: Path, episodes: dict[str, Array]) -> None:
    bad = ~np.isfinite(np.stack(list(episodes.values()))).all(axis=0)
    bad |= np.diff(episodes["epoch"], prepend=0.0) < 0.0
    if bad.any():
        raise RunError(f"{path} is damaged in the row of episode {int(np.argmax(bad))}.")


def _numbers(cells: list[Any]) -> Array:
    good = [isinstance(cell, int | float) and isfinite(cell) for cell in cells]
    return np.array([float(cell) if ok else np.nan for cell, ok in zip(cells, good, strict=True)], np.float64)
