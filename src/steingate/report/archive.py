"""Archives: all runs of a grid in one compressed file that every report can be made from.

An archive is a text file in JSON Lines format, compressed with xz (suffix ``.jsonl.xz``). The first line is
``{"format": "steingate-archive", "version": 1}``; every further line is one run::

    {"run": "cpo/SafetyPointGoal1-v0/seed-0",   # folder of the run
     "config": {...},                           # content of config.json
     "certification": {...} or null,            # content of certification.json
     "progress": {"TotalEnvSteps": [...], ...}, # columns of progress.csv, null where a cell is empty
     "episodes": {"epoch": [...], ...}}         # columns of episodes.csv

Columns compress better than rows, and any language can read the file, for example
``pandas.DataFrame(json.loads(line)["episodes"])`` for a line of ``lzma.open(path, "rt")``. Archives
have no checkpoints, so their runs cannot be resumed or evaluated.
"""

import json
import lzma
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from steingate.errors import InputError, RunError
from steingate.storage.files import open_regular, replace_file
from steingate.storage.tables import EPISODE_COLUMNS

if TYPE_CHECKING:
    from steingate.report.load import Run

Array = npt.NDArray[np.float64]

SUFFIX = ".jsonl.xz"
_HEADER = {"format": "steingate-archive", "version": 1}
_MAX_RUN = 1 << 25  # bytes of one run as JSON; ten million steps have half a million
_MAX_ARCHIVE = 1 << 28  # bytes of an archive, decompressed
_MAX_DECODER = 1 << 27  # bytes that the xz decoder may allocate
_CHUNK = 1 << 20


class RunData(NamedTuple):
    """Content of one run as it is stored, in a folder or an archive.

    ``path`` is the run folder; for an archived run, the archive followed by the folder. ``record`` and
    ``certification`` are the contents of ``config.json`` and ``certification.json``; ``progress`` and
    ``episodes`` are the columns of the tables, NaN where a cell is empty.
    """

    path: Path
    record: dict[str, Any]
    certification: dict[str, Any] | None
    progress: dict[str, Array]
    episodes: dict[str, Array]


def is_archive(path: str | Path) -> bool:
    """Return whether a path names an archive file."""
    return str(path).endswith(SUFFIX) and Path(path).is_file()


def write_archive(
    runs: Iterable["Run"], roots: Sequence[str | Path], path: str | Path, digits: int | None = None
) -> None:
    """Write runs, in this order, to an archive whose name ends with ``.jsonl.xz``. Equal runs give equal files.

    Runs are stored by their path below ``roots``, the folders or archives that they were found in. With ``digits``,
    numbers that are not whole are rounded to so many significant digits.
    """
    target = Path(path)
    if not target.name.endswith(SUFFIX):
        raise InputError(f"An archive cannot be written to {target}; end the name with {SUFFIX}.")
    if not target.parent.is_dir():
        raise InputError(f"{target} cannot be written: there is no folder {target.parent}.")
    stored: dict[str, Path] = {}
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "pb": 0}]
    compressor = lzma.LZMACompressor(filters=filters)
    chunks = [compressor.compress(_line(_HEADER))]
    for run in runs:
        files = run.path.iterdir() if run.path.is_dir() else ()
        if any(file.suffix in (".json", ".csv") and file.is_symlink() for file in files):
            raise InputError(f"{run.path} cannot be archived: one of its files is a symbolic link.")
        if run.edited:
            raise InputError(f"{run.path} cannot be archived: {', '.join(run.edited)} was edited after training.")
        below = [root for root in roots if run.path != Path(root) and run.path.is_relative_to(root)]
        name = run.path.relative_to(below[0]).as_posix() if below else f"{run.algo}/{run.env}/seed-{run.seed}"
        if name in stored:
            raise InputError(f"{stored[name]} and {run.path} would both be archived as {name}.")
        stored[name] = run.path
        # The folders and the seal of this machine mean nothing to other readers.
        record = {key: value for key, value in run.record.items() if key != "seal"}
        content = {
            "run": name,
            "config": record | {"config": {**run.config, "out": "runs"}, "env_folder": None},
            "certification": run.certification,
            "progress": {key: _numbers(cells, digits) for key, cells in run.progress.items()},
            "episodes": {key: _numbers(run.episodes[key], digits) for key in EPISODE_COLUMNS},
        }
        chunks.append(compressor.compress(_line(content)))
    replace_file(target, b"".join([*chunks, compressor.flush()]))


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _numbers(cells: Array, digits: int | None) -> list[float | None]:
    def number(cell: float) -> float | None:
        if digits is not None and not cell.is_integer():
            cell = float(f"{cell:.{digits}g}")
        return int(cell) if cell.is_integer() else cell

    return [number(cell) if np.isfinite(cell) else None for cell in cells.tolist()]


def read_archive(path: str | Path) -> Iterator[RunData]:
    """Yield the runs of an archive, one at a time; a ``RunError`` names a damaged archive."""
    file = Path(path)
    lines = _lines(file)
    if next(lines, None) != _HEADER:
        raise RunError(f"{file} is not an archive of runs; steingate archive writes them.")
    for entry in lines:
        try:
            progress, episodes = (_columns(entry[table]) for table in ("progress", "episodes"))
            certification = None if entry["certification"] is None else dict(entry["certification"])
            run = RunData(file / entry["run"], dict(entry["config"]), certification, progress, episodes)
            if set(EPISODE_COLUMNS) - set(episodes):
                raise ValueError("its episodes lack a column")
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise RunError(f"{file} is damaged: one of its runs cannot be read ({error}).") from error
        yield run


def _lines(path: Path) -> Iterator[Any]:
    """Yield the JSON values of the lines of a compressed file in bounded memory."""
    decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MAX_DECODER)
    rest, total = bytearray(), 0
    with open_regular(path) as file:
        while not decoder.eof:
            chunk = file.read(_CHUNK) if decoder.needs_input else b""
            if decoder.needs_input and not chunk:
                raise RunError(f"{path} is damaged: it ends too early.")
            try:
                rest += decoder.decompress(chunk, _CHUNK)
            except lzma.LZMAError as error:
                raise RunError(f"{path} is damaged: it cannot be decompressed ({error}).") from error
            *whole, rest = rest.split(b"\n")
            total += sum(map(len, whole))
            if len(rest) > _MAX_RUN or total > _MAX_ARCHIVE:
                raise RunError(f"{path} is damaged: it is larger than any archive.")
            for line in whole:
                try:
                    yield json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise RunError(f"{path} is damaged: a line is not JSON.") from error
    if rest:
        raise RunError(f"{path} is damaged: its last line has no end.")


def _columns(table: dict[str, list[float | None]]) -> dict[str, Array]:
    columns = {name: np.array(cells, np.float64) for name, cells in table.items()}
    if any(cells.ndim != 1 for cells in columns.values()) or len({len(c) for c in columns.values()}) > 1:
        raise ValueError("its columns have different lengths")
    return {name: np.where(np.isfinite(cells), cells, np.nan) for name, cells in columns.items()}
