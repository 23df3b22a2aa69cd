"""Lines of a growing file, through log rotation, and of standard input."""

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from steingate.certificates.io import standard_input
from steingate.errors import InputError

POLL = 0.2  # seconds between looks at a file that may have grown
_BLOCK = 1 << 16
_MAX_LINE = 1 << 20  # bytes
_HEAD = 1 << 12  # bytes at the beginning of a file by which it is recognized


class Line(NamedTuple):
    """A complete line: its number from 1, its text, and the offset in bytes of the next one."""

    number: int
    text: str
    end: int


def split_lines(data: bytes, number: int, offset: int, source: str = "") -> tuple[list[Line], bytes, int, int]:
    """Return complete lines, the rest, and the number and offset that they reach."""
    *complete, rest = data.split(b"\n")
    lines = []
    for part in complete:
        number, offset = number + 1, offset + len(part) + 1
        lines.append(make_line(part, number, offset))
    if len(rest) > _MAX_LINE:
        place = f"{source}, line" if source else "Line"
        raise InputError(f"{place} {number + 1} is longer than {_MAX_LINE >> 20} MiB; write one cost per line.")
    return lines, rest, number, offset


def make_line(part: bytes, number: int, end: int) -> Line:
    """Return a line; bytes that are not UTF-8 are replaced, and are no cost."""
    return Line(number, part.decode("utf-8-sig" if number == 1 else "utf-8", errors="replace").strip(), end)


def read_lines(blocks: Iterable[bytes], source: str = "") -> Iterator[list[Line]]:
    """Yield the complete lines of each block, and at the end a last one without a newline."""
    rest, number, offset = b"", 0, 0
    for data in blocks:
        lines, rest, number, offset = split_lines(rest + data, number, offset, source)
        yield lines
    if rest.strip():
        yield [make_line(rest, number + 1, offset + len(rest))]


class FileFollower:
    """Iterates over batches of complete lines of a file; line numbers start again at 1 with a new file.

    While it waits at the end, the file may be truncated, or renamed and created again. The rest of the old file is
    then read, ``warn`` is called, and the new file is read from its beginning.

    Parameters
    ----------
    path : the file; if it ``grows`` it need not exist yet
    position : what :meth:`position` returned in an earlier process, to continue from there
    grows : wait at the end for more, yielding empty batches, instead of stopping there
    torn : include a last line without a newline, if the file does not grow
    new_file : read the file from its beginning although an earlier process has read a file of this name
    warn : called with one sentence when a new file begins
    """

    def __init__(
        self, path: Path, position: Mapping[str, Any] | None = None, *, grows: bool = False, torn: bool = True,
        new_file: bool = False, warn: Callable[[str], None] = print,
    ) -> None:  # fmt: skip
        self.path, self._grows, self._torn, self._warn = path, grows, torn, warn
        self._known = {} if new_file else dict(position or {})
        self._head = b""  # the first bytes that were read
        self._inode = 0

    def position(self, line: Line) -> dict[str, Any]:
        """Return what identifies the file and the place after a line, as JSON types."""
        head = self._head[: line.end]
        return {
            "offset": line.end,
            "lines": line.number,
            "inode": self._inode,
            "head_bytes": len(head),
            "head": hashlib.sha256(head).hexdigest(),
        }

    def __iter__(self) -> Iterator[list[Line]]:
        """Yield batches of lines."""
        if self.path.exists() and not self.path.is_file():
            raise InputError(f"{self.path} is not a file that can be followed; pipe its lines to - instead.")
        try:
            while True:
                while self._grows and not self.path.exists():
                    yield []
                    time.sleep(POLL)
                with open(self.path, "rb", buffering=0) as file:
                    yield from self._read(file)
                if not self._grows:
                    return
        except OSError as error:
            raise InputError(f"{self.path} cannot be read ({error.strerror}).") from None

    def _read(self, file: Any) -> Iterator[list[Line]]:
        """Yield the lines of one open file, until it ends or another one takes its place."""
        self._inode = os.fstat(file.fileno()).st_ino
        offset, number = self._start(file)
        self._known, self._head, rest = {}, b"", b""
        moved = False
        while True:
            file.seek(offset + len(rest))
            data = file.read(_BLOCK)
            if self._grows and self._truncated(file, offset + len(rest)):
                self._warn(f"{self.path} was truncated after line {number}; it is read again from its beginning.")
                return
            if len(self._head) < _HEAD:
                self._head = self._read_head(file, offset + len(rest) + len(data))
            if data:
                lines, rest, number, offset = split_lines(rest + data, number, offset)
                yield lines
            elif not self._grows or moved:
                break
            else:
                moved = self._moved()
                if not moved:
                    yield []
                    time.sleep(POLL)
        if rest.strip() and (self._torn or moved):
            yield [make_line(rest, number + 1, offset + len(rest))]
        if moved:
            self._warn(f"{self.path} was replaced after line {number}; the new file is read from its beginning.")

    def _start(self, file: Any) -> tuple[int, int]:
        """Return the offset and the number of lines at which to start, after a comparison with the known file."""
        known = self._known
        offset, lines = int(known.get("offset", 0)), int(known.get("lines", 0))
        if not offset:
            return 0, 0
        size = os.fstat(file.fileno()).st_size
        head = self._read_head(file, int(known.get("head_bytes", 0)))
        if size < offset:
            change = "is shorter than what was already counted"
        elif hashlib.sha256(head).hexdigest() != known.get("head"):
            change = "does not begin like the file that was already counted"
        elif self._grows and self._inode != known.get("inode"):
            raise InputError(
                f"{self.path} is another file than the one that was counted, with the same beginning: pass --new-file "
                "to read it from its beginning, or, if it is a copy, run once without --follow."
            )
        else:
            return offset, lines
        if not self._grows:
            raise InputError(
                f"{self.path} {change}, so it is another file: pass --new-file to read it from its beginning, or use "
                "another --state."
            )
        self._warn(
            f"{self.path} {change}; it is read from its beginning, and lines of the old file after line {lines} are "
            "not counted."
        )
        return 0, 0

    def _read_head(self, file: Any, end: int) -> bytes:
        file.seek(0)
        return bytes(file.read(min(end, _HEAD)))

    def _truncated(self, file: Any, read: int) -> bool:
        """Return whether the file no longer begins with what was read from it."""
        return os.fstat(file.fileno()).st_size < read or self._read_head(file, len(self._head)) != self._head

    def _moved(self) -> bool:
        """Return whether the name now belongs to another file."""
        try:
            return os.stat(self.path).st_ino != self._inode
        except FileNotFoundError:
            return False  # the new file is not there yet


def pipe(stream: BinaryIO | None = None) -> Iterator[list[Line]]:
    """Yield batches of complete lines of standard input as they arrive."""
    source: Any = stream or standard_input()
    return read_lines(iter(lambda: source.read1(_BLOCK), b""))
