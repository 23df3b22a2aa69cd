"""Lines of a growing file, through log rotation, and of standard input."""

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
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


class _Splitter:
    """Splits blocks of bytes into lines, after ``number`` lines and ``offset`` bytes of a file."""

    def __init__(self, number: int = 0, offset: int = 0) -> None:
        self.number, self.offset, self._rest = number, offset, b""

    @property
    def read(self) -> int:
        """Offset of the next block."""
        return self.offset + len(self._rest)

    def split(self, data: bytes) -> list[Line]:
        """Return the lines that a block completes."""
        *complete, self._rest = (self._rest + data).split(b"\n")
        lines = [self._line(part, newline=1) for part in complete]
        if len(self._rest) > _MAX_LINE:
            raise InputError(f"Line {self.number + 1} is longer than {_MAX_LINE >> 20} MiB; write one cost per line.")
        return lines

    def last(self) -> list[Line]:
        """Return a last line without a newline, if there is one."""
        return [self._line(self._rest, newline=0)] if self._rest.strip() else []

    def _line(self, part: bytes, newline: int) -> Line:
        """Return the next line; bytes that are not UTF-8 are replaced, and are no cost."""
        self.number, self.offset = self.number + 1, self.offset + len(part) + newline
        text = part.decode("utf-8-sig" if self.number == 1 else "utf-8", errors="replace")
        return Line(self.number, text.strip(), self.offset)


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
        lines = self._start(file)
        self._known, self._head = {}, b""
        moved = False
        while True:
            file.seek(lines.read)
            data = file.read(_BLOCK)
            if self._grows and self._truncated(file, lines.read):
                self._warn(f"{self.path} was truncated after line {lines.number}; it is read again from its beginning.")
                return
            if len(self._head) < _HEAD:
                self._head = self._read_head(file, lines.read + len(data))
            if data:
                yield lines.split(data)
            elif not self._grows or moved:
                break
            else:
                moved = self._moved()
                if not moved:
                    yield []
                    time.sleep(POLL)
        if self._torn or moved:
            yield lines.last()
        if moved:
            self._warn(f"{self.path} was replaced after line {lines.number}; the new file is read from its beginning.")

    def _start(self, file: Any) -> _Splitter:
        """Return the place at which to start, after a comparison with the known file."""
        known = self._known
        offset, number = int(known.get("offset", 0)), int(known.get("lines", 0))
        if not offset:
            return _Splitter()
        head = self._read_head(file, int(known.get("head_bytes", 0)))
        if os.fstat(file.fileno()).st_size < offset:
            change = "is shorter than what was already counted"
        elif hashlib.sha256(head).hexdigest() != known.get("head"):
            change = "does not begin like the file that was already counted"
        elif self._grows and self._inode != known.get("inode"):
            raise InputError(
                f"{self.path} is another file than the one that was counted, with the same beginning: pass --new-file "
                "to read it from its beginning, or, if it is a copy, run once without --follow."
            )
        else:
            return _Splitter(number, offset)
        if not self._grows:
            raise InputError(
                f"{self.path} {change}, so it is another file: pass --new-file to read it from its beginning, or use "
                "another --state."
            )
        self._warn(
            f"{self.path} {change}; it is read from its beginning, and lines of the old file after line {number} are "
            "not counted."
        )
        return _Splitter()

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
    lines = _Splitter()
    for data in iter(lambda: source.read1(_BLOCK), b""):
        yield lines.split(data)
    yield lines.last()
