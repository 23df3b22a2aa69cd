"""``progress.csv`` and ``episodes.csv``: tables that grow by appended rows and are truncated on resume.

A checkpoint stores a fingerprint of each table: its number of rows and columns and a SHA-256 over them. On
resume, later rows are cut off, and a change of earlier rows is detected.
"""

import csv
import hashlib
import io
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.errors import RunError
from steingate.storage.files import read_regular, replace_file, writing

EPISODE_COLUMNS = ("epoch", "step", "return", "cost", "length")
Cell = float | int | str | None


class Table:
    """A CSV file that grows by appended rows.

    Parameters
    ----------
    path
        The file; created with the first rows.
    columns
        The header. A later row may add columns: the file is then rewritten once with the longer header.
    time_prefixes
        Prefixes of the names of columns that hold times. They differ between equal runs, so fingerprints omit
        them.
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
        with writing(self.path, "the last checkpoint is intact"), open(self.path, "ab") as file:
            if file.tell() == 0:
                text = _csv_line(self.columns) + text
            file.write(text.encode())
        for line in cells:
            self._hash_row(self.columns, line)

    def sync(self) -> None:
        """Flush appended rows to disk; called before writing a checkpoint that counts them."""
        if self.path.exists():
            # Open for writing: some systems sync nothing else.
            with writing(self.path, "the last checkpoint is intact"), open(self.path, "r+b") as file:
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
        self._rows, self._digest = 0, hashlib.sha256()
        if not self.path.exists():
            if rows:
                raise RunError(
                    f"{self.path} is missing, but the checkpoint counts {rows} rows in it; restore the file."
                )
            return
        lines = read_regular(self.path).split(b"\n")[:-1]
        if rows and len(lines) < rows + 1:
            raise RunError(
                f"{self.path} has {max(len(lines) - 1, 0)} complete rows, but the checkpoint counts {rows}; "
                "restore the file."
            )
        content = b"".join(line + b"\n" for line in lines[: rows + 1]) if rows else b""
        if rows:
            self._adopt(content, rows, fingerprint)
        else:
            self.columns = list(self._initial_columns)
        with writing(self.path):
            os.truncate(self.path, len(content))
        if rows and len(self.columns) < len(_header(self.path)):
            self._rewrite()

    def _adopt(self, content: bytes, rows: int, fingerprint: Mapping[str, Any] | None) -> None:
        """Set columns and digest from the rows in ``content`` after comparing them with the fingerprint."""
        header, *body = _parse(self.path, content)
        added = self._hashed_columns(header)[fingerprint["columns"] :] if fingerprint is not None else []
        for line in body:
            self._hash_row(header, line)
        self.columns = [name for name in header if name not in added]
        # Tables are written without carriage returns; an editor that saves the file may add them.
        intact = len(body) == rows and all(len(line) == len(header) for line in body) and b"\r" not in content
        if fingerprint is not None and not (intact and self.fingerprint() == dict(fingerprint)):
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
        lines = ([row.get(name) for name in self.columns] for row in _read_rows(self.path))
        text = _csv_line(self.columns) + "".join(map(_csv_line, lines))
        replace_file(self.path, text.encode())


def read_progress(run: Path) -> dict[str, list[Cell]]:
    """Return the columns of ``progress.csv``: numbers where the text is one, None for an empty cell."""
    path = Path(run) / "progress.csv"
    if not path.exists():
        raise RunError(f"{run} has no progress.csv; it holds no finished epoch yet.")
    rows = _read_rows(path)
    return {name: [_from_text(row.get(name)) for row in rows] for name in _header(path)}


def read_episodes(run: Path) -> dict[str, npt.NDArray[np.float64]]:
    """Return the columns of ``episodes.csv`` (epoch, step, return, cost, length), one row per episode."""
    path = Path(run) / "episodes.csv"
    rows = _read_rows(path) if path.exists() else []
    try:
        return {name: np.array([float(row[name]) for row in rows]) for name in EPISODE_COLUMNS}
    except (KeyError, ValueError, TypeError) as error:
        raise RunError(f"{path} is damaged: every row needs numbers for {', '.join(EPISODE_COLUMNS)}.") from error


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
    content = read_regular(path)
    end = content.find(b"\n") + 1
    return _parse(path, content[:end])[0] if end else []


def _read_rows(path: Path) -> list[dict[str, str]]:
    """Return all complete rows, without a last line that is still being written."""
    content = read_regular(path)
    header, *body = _parse(path, content[: content.rfind(b"\n") + 1]) or [[]]
    return [dict(zip(header, line, strict=False)) for line in body if line]


def _parse(path: Path, content: bytes) -> list[list[str]]:
    """Return the cells of each line of a CSV file."""
    text = content.decode("utf-8", errors="replace")
    try:
        return list(csv.reader(io.StringIO(text)))
    except csv.Error as error:
        raise RunError(f"{path} is damaged: it is not a table ({error}).") from error
