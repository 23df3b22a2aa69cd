"""Small copies of run folders, from which every table, curve and page can be made again.

A kept run has ``config.json`` (without the folders of the machine that made it), its verdict, and both tables
packed: ``episodes.csv.xz`` with every episode and ``progress.csv.xz`` with the columns that reports show. It
is a run folder like any other to whoever reads it, of a twentieth of the size; without checkpoints it cannot
be resumed, evaluated or rendered.
"""

import csv
import io
import lzma
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from steingate.errors import InputError
from steingate.report.loading import Run
from steingate.runs import RunFolder, run_path, write_config
from steingate.storage.files import read_regular, replace_file
from steingate.storage.tables import COMPRESSED, EPISODE_COLUMNS

Array = npt.NDArray[np.float64]

_SHOWN = (
    "TotalEnvSteps",
    "Metrics/",
    "Train/Epoch",
    "Train/",
    "Gate/",
    "Step/Case",
    "Time/Total",
    "Time/FPS",
)
_DIGITS = 4  # of numbers in packed tables; counts and costs are whole in all of them


def keep_run(run: Run, target: str | Path) -> Path:
    """Write the small copy of a run to ``target`` and return that folder.

    Examples
    --------
    >>> keep_run(load_run("runs/cpo/SafetyPointGoal1-v0/seed-0"), "kept/cpo")  # doctest: +SKIP
    PosixPath('kept/cpo')
    """
    folder, source = RunFolder(Path(target)), RunFolder(run.path)
    if folder.path.resolve() == run.path.resolve():
        raise InputError(f"{run.path} cannot be kept in itself; name another folder.")
    folder.path.mkdir(parents=True, exist_ok=True)
    shown = {name: cells for name, cells in run.progress.items() if name.startswith(_SHOWN)}
    episodes = {name: run.episodes[name] for name in EPISODE_COLUMNS}
    replace_file(_packed(folder.progress), pack(shown))
    replace_file(_packed(folder.episodes), pack(episodes))
    if source.certification.exists():
        replace_file(folder.certification, read_regular(source.certification))
    here = {"config": {**run.config, "out": "runs"}, "env_folder": None}
    write_config(folder, run.record | here)  # last: it makes the folder a run
    return folder.path


def keep_runs(runs: Iterable[Run], roots: Sequence[str | Path], out: str | Path) -> list[Path]:
    """Keep runs below ``out``, each at the place that it has below one of the roots."""
    places = [(run, Path(out) / _place(run, roots)) for run in runs]
    taken: dict[Path, Run] = {}
    for run, place in places:
        if place in taken:
            raise InputError(f"{taken[place].path} and {run.path} would both be kept as {place}.")
        taken[place] = run
    return [keep_run(run, place) for run, place in places]


def pack(columns: dict[str, Array]) -> bytes:
    """Return a table as packed CSV, with an empty cell where a number is not known."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(map(_cell, cells) for cells in columns.values()), strict=True))
    # No time and no name in it: equal numbers give equal files.
    return lzma.compress(text.getvalue().encode(), preset=9 | lzma.PRESET_EXTREME)


def _cell(value: float) -> str:
    if not np.isfinite(value):
        return ""
    short = value if value == int(value) else float(f"{value:.{_DIGITS}g}")
    return str(int(short)) if short == int(short) else str(short)  # so that a copy of a copy is the copy


def _packed(path: Path) -> Path:
    return path.with_name(path.name + COMPRESSED)


def _place(run: Run, roots: Sequence[str | Path]) -> Path:
    for root in roots:
        if run.path != Path(root) and run.path.is_relative_to(root):
            return run.path.relative_to(root)
    return run_path("", run.algo, run.env, run.seed)
