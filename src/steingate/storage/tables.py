"""``progress.csv`` and ``episodes.csv``: tables that grow by appended rows and are truncated on resume.

A checkpoint stores a fingerprint of each table: its number of rows and columns and a SHA-256 over them. On
resume, later rows are cut off, and a change of earlier rows is detected.
"""

import csv
import hashlib
import io
import math
import os
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.errors import RunError
from steingate.storage.files import open_no_link, open_regular, replace_file, writing

MAX_BYTES = 1 << 27  # of a table: two to three million episodes
_MAX_PROGRESS_BYTES = 1 << 25  # of progress.csv as lists of Python numbers: tens of thousands of epochs
_MAX_LINE = 1 << 18
EPISODE_COLUMNS = ("epoch", "step", "return", "cost", "length")
Cell = float | int | str | None


class Table:
    """A CSV file that grows by appended rows.

    Parameters
    ----------
    path : the file; created with the first rows
    columns : the header. A later row may add columns: the file is then rewritten once with the longer header.
    time_prefixes : prefixes of the names of columns that hold times. They differ between equal runs, so fingerprints
        omit them.
    """

    def __init__(self, path: Path, columns: Sequence[str] = (), time_prefixes: tuple[str, ...] = ()) -> None:
        self.path = path
        self._initial_columns = list(columns)
        self._time_prefixes = time_prefixes
        self.columns = (_header(path) if path.exists() else None) or list(columns)
        self._rows, self._digest = 0, hashlib.sha256()

    def append(self, rows: Iterable[Mapping[str, Cell]]) -> None:
        """Append rows in one write; missing, None and non-finite values become empty cells."""
        rows = list(rows)
        new = [name for row in rows for name in row if name not in self.columns]
        if new:
            self.columns += list(dict.fromkeys(new))
            if self.path.exists() and self.path.stat().st_size:
                self._rewrite()
        cells = [[_to_text(row.get(name)) for name in self.columns] for row in rows]
        text = "".join(map(_csv_line, cells))
        with writing(self.path, "the last checkpoint is intact"), open_no_link(self.path, "ab") as file:
            if file.tell() == 0:
                text = _csv_line(self.columns) + text
            file.write(text.encode())
        for line in cells:
            self._hash_row(self.columns, line)

    def sync(self) -> None:
        """Flush appended rows to disk; called before writing a checkpoint that counts them."""
        if self.path.exists():
            # Open for writing: some systems sync nothing else.
            with writing(self.path, "the last checkpoint is intact"), open_no_link(self.path, "r+b") as file:
                os.fsync(file.fileno())

    def fingerprint(self) -> dict[str, Any]:
        """Return the number of rows and columns, and a SHA-256 over them.

        It covers the rows that this object appended or found by :meth:`truncate`. A column added later does
        not change it as long as it is empty in these rows.
        """
        names = self._hashed_columns(self.columns)
        digest = self._digest.copy()
        digest.update(_csv_line(names).encode())
        return {"rows": self._rows, "columns": len(names), "sha256": digest.hexdigest()}

    def truncate(self, rows: int, fingerprint: Mapping[str, Any] | None = None) -> None:
        """Cut the file to its first ``rows`` rows, and remove an incomplete last line.

        With a fingerprint, raise RunError if the remaining rows differ from it, and remove columns that were
        added after it.
        """
        exists = self.path.exists()
        lengths = [len(line) for line in _lines(self.path)] if exists else []
        if rows and len(lengths) < rows + 1:
            raise RunError(
                f"{self.path} has {max(len(lengths) - 1, 0)} complete rows, but the checkpoint counts {rows}; "
                "restore the file."
            )
        self._rows, self._digest = 0, hashlib.sha256()
        if rows:
            self._adopt(rows, fingerprint)
        else:
            self.columns = list(self._initial_columns)
        if exists:
            with writing(self.path), open_no_link(self.path, "r+b") as file:
                file.truncate(sum(lengths[: rows + 1]) if rows else 0)
        if rows and len(self.columns) < len(_header(self.path)):
            self._rewrite()

    def check(self, fingerprint: Mapping[str, Any]) -> None:
        """Raise RunError if the first rows of the file are not those that a fingerprint was made of."""
        rows = fingerprint.get("rows") if isinstance(fingerprint, Mapping) else None
        if type(rows) is int and rows > 0:
            self._rows, self._digest = 0, hashlib.sha256()
            self._adopt(rows, fingerprint)

    def _adopt(self, rows: int, fingerprint: Mapping[str, Any] | None) -> None:
        """Set columns and digest from the first rows after comparing them with the fingerprint."""
        lines = _cells(self.path, rows + 1)
        header, widths = next(lines, []), set[int]()
        for line in lines:
            self._hash_row(header, line)
            widths.add(len(line))
        known = fingerprint.get("columns") if isinstance(fingerprint, Mapping) else None
        added = self._hashed_columns(header)[known:] if type(known) is int else []
        self.columns = [name for name in header if name not in added]
        if fingerprint is None:
            return
        # Tables are written without carriage returns; an editor that saves the file may add them.
        intact = widths == {len(header)} and not any(b"\r" in line for line in _lines(self.path, rows + 1))
        if not intact or self.fingerprint() != fingerprint:
            raise RunError(
                f"{self.path} was changed after the checkpoint was written: its first {rows} rows are not "
                "those that training wrote; restore the file, or start a new run."
            )

    def _hashed_columns(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if not name.startswith(self._time_prefixes)]

    def _hash_row(self, names: Sequence[str], cells: Sequence[str]) -> None:
        """Add the name and text of each non-empty cell of a row to the digest."""
        pairs = [(name, cell) for name, cell in zip(names, cells, strict=False) if cell]
        texts = [text for pair in pairs if not pair[0].startswith(self._time_prefixes) for text in pair]
        self._digest.update(_csv_line(texts).encode())
        self._rows += 1

    def _rewrite(self) -> None:
        """Rewrite the file with the current columns."""
        header, *body = _cells(self.path)
        rows = (dict(zip(header, line, strict=False)) for line in body if line)
        lines = ([row.get(name) for name in self.columns] for row in rows)
        text = _csv_line(self.columns) + "".join(map(_csv_line, lines))
        replace_file(self.path, text.encode())


def read_progress(run: Path) -> dict[str, list[Cell]]:
    """Return the columns of ``progress.csv``: numbers where the text is one, None for an empty cell."""
    path = Path(run) / "progress.csv"
    if not path.exists():
        raise RunError(f"{run} has no progress.csv; it holds no finished epoch yet.")
    lines = _cells(path, max_bytes=_MAX_PROGRESS_BYTES)
    header = next(lines, [])
    columns: dict[str, list[Cell]] = {name: [] for name in header}
    for line in filter(None, lines):
        row = dict(zip(header, line, strict=False))
        for name, cells in columns.items():
            cells.append(_from_text(row.get(name)))
    return columns


def read_episodes(run: Path) -> dict[str, npt.NDArray[np.float64]]:
    """Return the columns of ``episodes.csv`` (epoch, step, return, cost, length), one row per episode."""
    path = Path(run) / "episodes.csv"
    columns = {name: array("d") for name in EPISODE_COLUMNS}
    lines = _cells(path) if path.exists() else iter(())
    header = next(lines, [])
    try:
        for line in filter(None, lines):
            for name, cells in columns.items():
                cells.append(float(line[header.index(name)]))
    except (LookupError, ValueError) as error:
        raise RunError(f"{path} is damaged: every row needs numbers for {', '.join(EPISODE_COLUMNS)}.") from error
    return {name: np.array(cells, np.float64) for name, cells in columns.items()}


def _csv_line(cells: Iterable[Cell]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow([_to_text(cell) for cell in cells])
    return out.getvalue()


def _to_text(cell: Cell) -> str:
    if cell is None or (isinstance(cell, float) and not math.isfinite(cell)):
        return ""
    return repr(float(cell)) if isinstance(cell, float) else str(cell)


def _from_text(text: str | None) -> Cell:
    if not text:
        return None
    try:
        # An integer with 20 or more digits may not fit into a float.
        return int(text) if text.lstrip("-").isdecimal() and len(text) < 20 else float(text)
    except ValueError:
        return text


def _header(path: Path) -> list[str]:
    return next(_cells(path, 1), [])


def _cells(path: Path, count: int | None = None, max_bytes: int = MAX_BYTES) -> Iterator[list[str]]:
    """Yield the cells of each complete row of a CSV file, the header first; at most the first ``count`` lines."""
    lines = (line.decode("utf-8", errors="replace") for line in _lines(path, count, max_bytes))
    try:
        yield from csv.reader(lines)
    except csv.Error as error:
        raise RunError(f"{path} is damaged: it is not a table ({error}).") from error


def _lines(path: Path, count: int | None = None, max_bytes: int = MAX_BYTES) -> Iterator[bytes]:
    """Yield the complete lines of a file one by one, without a last line that is still being written."""
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > max_bytes:
            raise RunError(f"{path} is larger than {max_bytes >> 20} MiB and will not be read.")
        for line in islice(iter(lambda: file.readline(_MAX_LINE), b""), count):
            if len(line) >= _MAX_LINE:
                raise RunError(f"{path} is damaged: it has a line of more than {_MAX_LINE >> 10} KiB.")
            if line.endswith(b"\n"):
                yield line
