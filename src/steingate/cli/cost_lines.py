"""Episode costs line by line: from a file that grows or a pipe, as numbers, CSV or JSON."""

import csv
import io
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from steingate.errors import InputError

POLL = 0.2  # seconds between looks at a file that may have grown
_BLOCK = 1 << 16
_LONGEST = 1 << 20  # bytes of a line


class Line(NamedTuple):
    """One whole line: its number from 1, its text, and where the next one begins."""

    number: int
    text: str
    end: int


def follow(
    path: Path, offset: int = 0, number: int = 0, grows: bool = False, torn: bool = True
) -> Iterator[list[Line]]:
    """Yield batches of whole lines of a file from ``offset`` on, and empty ones while there is nothing new.

    Parameters
    ----------
    path
        The file; when it ``grows`` it need not exist yet.
    offset, number
        Bytes and lines that were read before.
    grows
        Go on waiting at the end instead of stopping there.
    torn
        Take a last line without an end, when the file does not grow.
    """
    while grows and not path.exists():
        yield []
        time.sleep(POLL)
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is no file that can be followed; pipe its lines to - instead.")
    try:
        with open(path, "rb") as file:
            if file.seek(0, io.SEEK_END) < offset:
                raise InputError(
                    f"{path} is shorter than what was already counted, so it is another file: "
                    "use another --state."
                )
            file.seek(offset)
            rest = b""
            while True:
                data = file.read(_BLOCK)
                lines, rest, number, offset = _split(rest + data, number, offset)
                if data:
                    yield lines
                elif grows:
                    yield []
                    time.sleep(POLL)
                    if path.exists() and path.stat().st_size < offset:
                        raise InputError(f"{path} has become shorter; start again with another --state.")
                else:
                    break
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}).") from None
    if rest.strip() and torn:
        yield [Line(number + 1, _text(rest, number + 1), offset + len(rest))]


def pipe(stream: BinaryIO | None = None) -> Iterator[list[Line]]:
    """Yield batches of whole lines of standard input as they arrive."""
    if stream is None and sys.stdin is None:
        raise InputError("Standard input is closed; name a file, or pipe the costs in.")
    source = stream or sys.stdin.buffer
    rest, number, offset = b"", 0, 0
    while data := source.read1(_BLOCK):  # type: ignore[union-attr]
        lines, rest, number, offset = _split(rest + data, number, offset)
        yield lines
    if rest.strip():
        yield [Line(number + 1, _text(rest, number + 1), offset + len(rest))]


def _split(data: bytes, number: int, offset: int) -> tuple[list[Line], bytes, int, int]:
    """Return whole lines, the rest, and how far they reach."""
    *whole, rest = data.split(b"\n")
    lines = []
    for part in whole:
        number, offset = number + 1, offset + len(part) + 1
        lines.append(Line(number, _text(part, number), offset))
    if len(rest) > _LONGEST:
        raise InputError(f"Line {number + 1} is longer than {_LONGEST >> 20} MiB; write one cost per line.")
    return lines, rest, number, offset


def _text(part: bytes, number: int) -> str:
    try:
        return part.decode("utf-8-sig" if number == 1 else "utf-8").strip()
    except UnicodeDecodeError:
        raise InputError(f"Line {number} is not UTF-8 text; write one cost per line.") from None


class Reader:
    """Turns lines into costs; the first line may name the columns.

    Parameters
    ----------
    names
        Names of the costs that are watched; one unnamed cost is ``("cost",)``.
    column
        Column or key of a single cost.
    """

    def __init__(self, names: tuple[str, ...], column: str | None = None) -> None:
        self.names, self.column = names, column
        self._places: list[int] | None = None

    def costs(self, line: Line) -> dict[str, float] | None:
        """Return the costs in a line by name, or ``None`` for a heading, an empty line or a comment."""
        if not line.text or (self._places is None and line.text.startswith("#")):
            return None
        if line.text.startswith(("{", "[", '"')):
            return self._from_json(line)
        try:
            row = next(csv.reader([line.text], delimiter=_delimiter(line.text)))
        except csv.Error as error:
            raise InputError(f"Line {line.number} is not CSV ({error}).") from None
        cells = [cell.strip() for cell in row]
        if self._places is None:
            heading = not any(_number(cell) is not None for cell in cells)
            self._places = [self._place(name, cells, heading, line) for name in self.names]
            if heading:
                return None
        try:
            found = {name: cells[place] for name, place in zip(self.names, self._places, strict=True)}
        except IndexError:
            raise InputError(f"Line {line.number} has {len(cells)} columns, fewer than before.") from None
        return {name: self._cost(_number(cell), cell, line) for name, cell in found.items()}

    def _from_json(self, line: Line) -> dict[str, float]:
        try:
            value = json.loads(line.text)
        except (ValueError, RecursionError):
            raise InputError(f"Line {line.number}: {line.text[:60]!r} is not JSON.") from None
        if not isinstance(value, dict):
            raise InputError(f"Line {line.number}: {line.text[:60]!r} is neither a number nor an object.")
        found = {}
        for name in self.names:
            key = self._key(name)
            if key not in value:
                keys = ", ".join(map(str, value)) or "none"
                raise InputError(
                    f"Line {line.number} has no key {key[:60]!r} (it has {keys[:200]}); use --column."
                )
            cost = value[key]
            real = isinstance(cost, int | float) and not isinstance(cost, bool)
            found[name] = self._cost(_number(str(cost)) if real else None, cost, line)
        return found

    def _key(self, name: str) -> str:
        return self.column if self.column is not None and len(self.names) == 1 else name

    def _place(self, name: str, cells: list[str], heading: bool, line: Line) -> int:
        key = self._key(name)
        if heading and key in cells:
            return cells.index(key)
        if key.isdecimal() and len(key) < 10 and 1 <= int(key) <= len(cells):
            return int(key) - 1
        plain = len(cells) == 1 and len(self.names) == 1 and self.column is None
        if plain and (not heading or (cells[0][:1].isalpha() and cells[0].lower() not in _MISSING)):
            return 0
        if plain:
            self._cost(None, cells[0], line)
        known = ", ".join(cells) if heading else f"{len(cells)} columns without names, numbered from 1"
        raise InputError(f"Line {line.number} has no column {key[:60]!r} (it has {known}); use --column.")

    def _cost(self, value: float | None, shown: object, line: Line) -> float:
        if value is None or not 0.0 <= value < float("inf"):
            raise InputError(
                f"Line {line.number}: {str(shown)[:60]!r} is not a cost; costs are finite and not negative."
            )
        return value


_MISSING = ("null", "na", "n/a", "nan", "none", "nil", "missing", "inf", "infinity")


def _delimiter(text: str) -> str:
    return next((mark for mark in (",", "\t", ";") if mark in text), ",")


def _number(text: str) -> float | None:
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None
