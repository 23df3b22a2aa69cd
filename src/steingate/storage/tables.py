"""``progress.csv`` and ``episodes.csv``: rows only ever appended, and cut back when a run is resumed.

A checkpoint carries a mark of each table: how many rows and columns it counts on, and a SHA-256 over them,
kept up to date row by row. Rows that came later are cut; rows before that were changed are noticed.
"""

import csv
import hashlib
import io
import lzma
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.errors import RunError
from steingate.storage.files import MAX_BYTES, read_regular, replace_file, writing

EPISODE_COLUMNS = ("epoch", "step", "return", "cost", "length")
PACKED = ".xz"
Cell = float | int | str | None


class Table:
    """A CSV file that grows by whole blocks of rows.

    Parameters
    ----------
    path
        The file; made with the first rows.
    columns
        The header. A later row may bring new columns: the file is then rewritten once with the longer header.
    clocks
        How names of columns begin that hold times; they differ from run to run, and marks leave them out.
    """

    def __init__(self, path: Path, columns: Sequence[str] = (), clocks: tuple[str, ...] = ()) -> None:
        self.path = path
        self._first_columns = list(columns)
        self._clocks = clocks
        self.columns = list(columns)
        if path.exists():
            self.columns = _header(path) or self.columns
        self._rows, self._digest = 0, hashlib.sha256()

    def append(self, rows: Iterable[Mapping[str, Cell]]) -> None:
        """Append rows in one write; a value that is missing, None or not finite becomes an empty cell."""
        rows = list(rows)
        new = [name for row in rows for name in row if name not in self.columns]
        if new:
            self.columns += list(dict.fromkeys(new))
            if self.path.exists() and self.path.stat().st_size:
                self._rewrite_with_new_header()
        cells = [[_text(row.get(name)) for name in self.columns] for row in rows]
        text = "".join(map(_line, cells))
        with writing(self.path, "the last checkpoint is intact"), open(self.path, "ab") as file:
            if file.tell() == 0:
                text = _line(self.columns) + text
            file.write(text.encode())
        for line in cells:
            self._count(self.columns, line)

    def sync(self) -> None:
        """Force what was appended to disk: called before a checkpoint that counts on it."""
        if self.path.exists():
            # Open for writing: some systems sync nothing else.
            with writing(self.path, "the last checkpoint is intact"), open(self.path, "r+b") as file:
                os.fsync(file.fileno())

    def mark(self) -> dict[str, Any]:
        """Return what later tells whether these rows are still the same.

        It covers the rows that this object appended, or found when it cut the file back. Columns without a
        value in any of them do not change it when they come later.
        """
        told = self._told(self.columns)
        digest = self._digest.copy()
        digest.update(_line(told).encode())
        return {"rows": self._rows, "columns": len(told), "sha256": digest.hexdigest()}

    def keep(self, rows: int, mark: Mapping[str, Any] | None = None) -> None:
        """Cut the file back to its first ``rows`` rows; a half-written last line goes too.

        With a ``mark``, those rows must be the ones that it was made of, and columns that came later go.
        """
        self._rows, self._digest = 0, hashlib.sha256()
        if not self.path.exists():
            if rows:
                raise RunError(
                    f"{self.path} is gone, but the checkpoint counts {rows} rows in it; restore the file."
                )
            return
        lines = read_regular(self.path).split(b"\n")[:-1]
        if len(lines) < rows + 1 and rows:
            raise RunError(
                f"{self.path} has {max(len(lines) - 1, 0)} whole rows, but the checkpoint counts {rows}; "
                "restore the file."
            )
        kept = b"".join(line + b"\n" for line in lines[: rows + 1]) if rows else b""
        if rows:
            self._take(kept, rows, mark)
        else:
            self.columns = list(self._first_columns)
        with writing(self.path):
            os.truncate(self.path, len(kept))
        if rows and len(self.columns) < len(_header(self.path)):
            self._rewrite_with_new_header()

    def _take(self, content: bytes, rows: int, mark: Mapping[str, Any] | None) -> None:
        """Make the rows in ``content`` those of this table, if they are the ones the mark was made of."""
        header, *body = _parsed(self.path, content)
        told = self._told(header)
        later = told[mark["columns"] :] if mark is not None else []
        for line in body:
            self._count(header, line)
        self.columns = [name for name in header if name not in later]
        # Nothing here writes a carriage return, and a table that was opened and saved elsewhere has them.
        same = len(body) == rows and all(len(line) == len(header) for line in body) and b"\r" not in content
        if mark is not None and not (same and self.mark() == dict(mark)):
            raise RunError(
                f"{self.path} was changed after the checkpoint was written: its first {rows} rows are not "
                "those that training wrote; restore the file, or train anew."
            )

    def _told(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if not name.startswith(self._clocks)]

    def _count(self, names: Sequence[str], cells: Sequence[str]) -> None:
        """Add one row to the digest: each cell that is not empty, with its name."""
        pairs = zip(names, cells, strict=False)
        named = [text for pair in pairs if pair[1] and not pair[0].startswith(self._clocks) for text in pair]
        self._digest.update(_line(named).encode())
        self._rows += 1

    def _rewrite_with_new_header(self) -> None:
        rows = _read_rows(self.path)
        text = _line(self.columns) + "".join(_line([row.get(name) for name in self.columns]) for row in rows)
        replace_file(self.path, text.encode())


def table_file(path: Path) -> Path:
    """Return the table's file: itself, or packed with ``.xz`` behind its name, as in a kept run."""
    packed = path.with_name(path.name + PACKED)
    return packed if packed.exists() and not path.exists() else path


def table_content(path: Path) -> bytes:
    """Return the bytes of a table, unpacked."""
    content = read_regular(path)
    if path.suffix != PACKED:
        return content
    reader = lzma.LZMADecompressor(memlimit=MAX_BYTES)
    try:
        plain = reader.decompress(content, MAX_BYTES)
    except lzma.LZMAError as error:
        raise RunError(f"{path} is damaged: it cannot be unpacked ({error}).") from error
    if not reader.eof:
        raise RunError(f"{path} is damaged: it ends too early, or holds more than {MAX_BYTES >> 20} MiB.")
    return plain


def read_progress(run: Path) -> dict[str, list[Cell]]:
    """Columns of ``progress.csv`` as lists: numbers where the text is one, None for an empty cell."""
    path = table_file(Path(run) / "progress.csv")
    if not path.exists():
        raise RunError(f"{run} has no progress.csv; it holds no finished epoch yet.")
    rows = _read_rows(path)
    return {name: [_cell(row.get(name)) for row in rows] for name in (_header(path) or [])}


def read_episodes(run: Path) -> dict[str, npt.NDArray[np.float64]]:
    """Columns of ``episodes.csv`` (epoch, step, return, cost, length), one entry per finished episode."""
    path = table_file(Path(run) / "episodes.csv")
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
        # More digits than a counter can have would be an integer that no float can hold.
        return int(text) if text.lstrip("-").isdecimal() and len(text) < 20 else float(text)
    except ValueError:
        return text


def _header(path: Path) -> list[str]:
    content = table_content(path)
    end = content.find(b"\n") + 1
    return _parsed(path, content[:end])[0] if end else []


def _read_rows(path: Path) -> list[dict[str, str]]:
    """Whole rows only: a line still being written, or torn by a crash, is left out."""
    content = table_content(path)
    header, *body = _parsed(path, content[: content.rfind(b"\n") + 1]) or [[]]
    return [dict(zip(header, line, strict=False)) for line in body if line]


def _parsed(path: Path, content: bytes) -> list[list[str]]:
    """Return the lines of a CSV file as cells."""
    text = content.decode("utf-8", errors="replace")
    try:
        return list(csv.reader(io.StringIO(text)))
    except csv.Error as error:
        raise RunError(f"{path} is damaged: it is not a table ({error}).") from error
