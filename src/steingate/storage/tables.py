"""``progress.csv`` and ``episodes.csv``: rows only ever appended, and cut back when a run is resumed."""

import csv
import io
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from steingate.errors import RunError
from steingate.storage.files import replace_file, writing

EPISODE_COLUMNS = ("epoch", "step", "return", "cost", "length")
Cell = float | int | str | None


class Table:
    """A CSV file that grows by whole blocks of rows.

    Parameters
    ----------
    path
        The file; made with the first rows.
    columns
        The header. A later row may bring new columns: the file is then rewritten once with the longer header.
    """

    def __init__(self, path: Path, columns: Sequence[str] = ()) -> None:
        self.path = path
        self._first_columns = list(columns)
        self.columns = list(columns)
        if path.exists():
            self.columns = _header(path) or self.columns

    def append(self, rows: Iterable[Mapping[str, Cell]]) -> None:
        """Append rows in one write; a value that is missing, None or not finite becomes an empty cell."""
        rows = list(rows)
        new = [name for row in rows for name in row if name not in self.columns]
        if new:
            self.columns += list(dict.fromkeys(new))
            if self.path.exists() and self.path.stat().st_size:
                self._rewrite_with_new_header()
        text = "".join(_line([row.get(name) for name in self.columns]) for row in rows)
        with writing(self.path, "the last checkpoint is intact"), open(self.path, "ab") as file:
            if file.tell() == 0:
                text = _line(self.columns) + text
            file.write(text.encode())

    def sync(self) -> None:
        """Force what was appended to disk: called before a checkpoint that counts on it."""
        if self.path.exists():
            with writing(self.path, "the last checkpoint is intact"), open(self.path, "rb") as file:
                os.fsync(file.fileno())

    def keep(self, rows: int) -> None:
        """Cut the file back to its first ``rows`` rows; a half-written last line goes too."""
        if not self.path.exists():
            if rows:
                raise RunError(
                    f"{self.path} is gone, but the checkpoint counts {rows} rows in it; restore the file."
                )
            return
        lines = self.path.read_bytes().splitlines(keepends=True)
        whole = [line for line in lines if line.endswith(b"\n")]
        if len(whole) < rows + 1 and rows:
            raise RunError(
                f"{self.path} has {max(len(whole) - 1, 0)} whole rows, but the checkpoint counts {rows}; "
                "restore the file."
            )
        size = sum(len(line) for line in whole[: rows + 1]) if rows else 0
        if not rows:
            self.columns = list(self._first_columns)
        with writing(self.path):
            os.truncate(self.path, size)

    def _rewrite_with_new_header(self) -> None:
        rows = _read_rows(self.path)
        text = _line(self.columns) + "".join(_line([row.get(name) for name in self.columns]) for row in rows)
        replace_file(self.path, text.encode())


def read_progress(run: Path) -> dict[str, list[Cell]]:
    """Columns of ``progress.csv`` as lists: numbers where the text is one, None for an empty cell."""
    path = Path(run) / "progress.csv"
    if not path.exists():
        raise RunError(f"{run} has no progress.csv; it holds no finished epoch yet.")
    rows = _read_rows(path)
    return {name: [_cell(row.get(name)) for row in rows] for name in (_header(path) or [])}


def read_episodes(run: Path) -> dict[str, npt.NDArray[np.float64]]:
    """Columns of ``episodes.csv`` (epoch, step, return, cost, length), one entry per finished episode."""
    path = Path(run) / "episodes.csv"
    rows = _read_rows(path) if path.exists() else []
    try:
        return {name: np.array([float(row[name]) for row in rows]) for name in EPISODE_COLUMNS}
    except (KeyError, ValueError, TypeError) as error:
        raise RunError(
            f"{path} is damaged: every row needs numbers for {', '.join(EPISODE_COLUMNS)}."
        ) from error


def _line(cells: Iterable[Cell]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow([_text(cell) for cell in cells])
    return out.getvalue()


def _text(cell: Cell) -> str:
    if cell is None or (isinstance(cell, float) and not math.isfinite(cell)):
        return ""
    if isinstance(cell, float):
        return repr(float(cell))
    return str(cell)


def _cell(text: str | None) -> Cell:
    if not text:
        return None
    try:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        return text


def _header(path: Path) -> list[str]:
    with open(path, newline="", encoding="utf-8", errors="replace") as file:
        line = file.readline()
    return next(csv.reader([line])) if line.endswith("\n") else []


def _read_rows(path: Path) -> list[dict[str, str]]:
    """Whole rows only: a line still being written, or torn by a crash, is left out."""
    text = path.read_bytes().decode("utf-8", errors="replace")
    whole = text[: text.rfind("\n") + 1]
    return list(csv.DictReader(io.StringIO(whole)))
