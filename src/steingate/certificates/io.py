"""Episode costs from arrays, files and streams. What is not a list of costs is refused with one sentence.

``read_costs`` reads the lines of a whole source with bounded memory, and ``CostParser`` turns lines into costs.
``monitoring.follow`` has files that grow. Nothing in a file is executed.
"""

import csv
import io
import json
import sys
from array import array
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain, islice
from math import ceil, inf
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
import numpy.typing as npt

from steingate.errors import InputError
from steingate.storage.tables import EPISODE_COLUMNS

Costs = npt.NDArray[np.float64]

LAST = 0.2  # fraction of the training episodes of a run that is taken
MAX_COSTS = 50_000_000
_BLOCK = 1 << 16
_MAX_LINE = 1 << 20  # bytes
_MAX_DOCUMENT = 1 << 27  # bytes of a file that is read as a whole: NPY, or one JSON document
_MISSING = ("null", "na", "n/a", "nan", "none", "nil", "missing", "inf", "infinity")


@dataclass(frozen=True)
class CostData:
    """Costs of a source.

    Attributes
    ----------
    costs
        One cost per episode, shape (n,).
    note
        Where the costs come from, if they are not those of one fixed policy; else empty.
    clusters
        Label of the cluster of each episode, shape (n,), or ``None``.
    """

    costs: Costs
    note: str = ""
    clusters: npt.NDArray[Any] | None = None

    @property
    def one_policy(self) -> bool:
        """Whether the costs may be those of one fixed policy, so that a bound for it can be computed."""
        return not self.note


def check_costs(costs: npt.ArrayLike) -> Costs:
    """Return the costs as a float64 vector after checking that they are finite and nonnegative."""
    if isinstance(costs, np.ma.MaskedArray):
        raise InputError("The costs are a masked array: pass costs.compressed() instead.")
    try:
        values = np.asarray(costs)
    except ValueError:
        raise InputError("The costs are rows of different lengths; pass one number per episode.") from None
    if values.ndim != 1:
        raise InputError(f"The costs have shape {values.shape}; pass one dimension, one number per episode.")
    if values.size == 0:
        raise InputError("There are no costs; pass at least one finished episode.")
    if values.dtype.kind not in "fiu":
        raise InputError(f"The costs have type {values.dtype} (first value {values.tolist()[0]!r}); pass real numbers.")
    with np.errstate(over="ignore", invalid="ignore"):  # a longer float may fit into no float of eight bytes
        values = values.astype(np.float64, copy=False)
    # NaN fails both comparisons, so two reductions cover every bad value.
    if not (values.min() >= 0.0 and values.max() < np.inf):
        index = int(np.flatnonzero(~((values >= 0.0) & (values < np.inf)))[0])
        raise InputError(
            f"Cost {float(values[index])} at position {index} is not usable; costs are finite and not negative."
        )
    return values


def read_costs(
    source: str | Path, column: str | None = None, stdin: BinaryIO | None = None, cluster: str | None = None
) -> CostData:
    """Return the costs in a file, in a run folder, or on standard input if ``source`` is ``-``.

    The format is recognized by the content: CSV with or without a header, JSON lines or one JSON list, NPY, a
    Monitor file of Stable-Baselines3, and ``episodes.csv`` of a run.

    Parameters
    ----------
    source
        Path, or ``-``.
    column
        Name of the column or key, or number of a CSV column counted from 1. Default: the only column, or the
        one called ``cost``.
    stdin
        Binary stream for ``-``; default: that of the process.
    cluster
        Column or key of the labels of clusters.
    """
    path, name = Path(source), "standard input" if str(source) == "-" else str(source)
    if name == str(source) and path.is_dir():
        if not (path / "config.json").is_file():
            raise InputError(f"{path} is a folder but not a run; name the file that holds the costs.")
        path = path / "episodes.csv"
        if not path.is_file():
            raise InputError(f"{path.parent} has no {path.name}: no episode of this run has finished yet.")
        name = str(path)
    try:
        with nullcontext(stdin or standard_input()) if str(source) == "-" else open(path, "rb") as stream:
            return _read(iter(lambda: stream.read(_BLOCK), b""), name, path, column, cluster)
    except FileNotFoundError:
        raise InputError(f"There is no file {source}.") from None
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"{name} cannot be read ({getattr(error, 'strerror', None) or error}).") from None


def _read(blocks: Iterator[bytes], name: str, path: Path, column: str | None, cluster: str | None) -> CostData:
    start = next(blocks, b"")
    blocks = chain([start], blocks)
    if start.startswith(b"\x93NUMPY"):
        return _from_npy(_document(blocks, name), name, column, cluster)
    if start.startswith(b"PK"):
        raise InputError(f"{name} is an archive; extract the array of costs and store it as .npy or .csv.")
    parser = CostParser(("cost",), column, name, cluster)
    if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        text = _document(blocks, name).decode("utf-8-sig")
        return _collect(_parse_json(text, parser), parser, name)
    lines = chain.from_iterable(read_lines(blocks, name))
    head = list(islice(lines, 2))
    first, second = [*(line.text for line in head), "", ""][:2]
    lines = chain(head, lines)
    if first == ",".join(EPISODE_COLUMNS) and column in (None, "cost") and cluster is None:
        return _from_run(lines, path)
    note = ""
    if _is_object(first.removeprefix("#")) and second.startswith("r,l,t"):
        column = column or _monitor_column(second.split(",")[3:], name)
        parser = CostParser(("cost",), column, name, cluster)
        note = (
            f"{name} is a Monitor file of Stable-Baselines3. Its column {column} is info[{column!r}] at the "
            "last step of each episode: the episode cost only if the environment adds it up. If the file was "
            "written in training, its episodes are of many policies, and none of them is certified."
        )
    return _collect((parser.line(line.number, line.text) for line in lines), parser, name, note)


def _collect(found: Iterable[dict[str, float] | None], parser: "CostParser", name: str, note: str = "") -> CostData:
    costs = array("d")
    for cost in found:
        if cost is not None:
            costs.append(cost["cost"])
            if len(costs) > MAX_COSTS:
                raise InputError(f"{name} has more than {MAX_COSTS:,} costs; certify a part of them.")
    if not costs:
        raise InputError(f"{name} is empty; it should hold one cost per episode.")
    return CostData(np.frombuffer(costs), note, None if parser.label is None else np.array(parser.labels))


def _document(blocks: Iterable[bytes], name: str) -> bytes:
    """Return all blocks as one, if they are not too large."""
    found = bytearray()
    for block in blocks:
        found += block
        if len(found) > _MAX_DOCUMENT:
            raise InputError(f"{name} is larger than {_MAX_DOCUMENT >> 20} MiB; write one cost per line.")
    return bytes(found)


class CostParser:
    """Turns lines of numbers, CSV or JSON into costs; the first line may name the columns.

    Parameters
    ----------
    names
        Names of the costs; one unnamed cost is ``("cost",)``.
    column
        Column or key of a single cost; see :func:`read_costs`.
    source
        Name of the source in error messages.
    label
        Column or key of a label of each cost, which is added to ``labels``.
    """

    def __init__(
        self, names: tuple[str, ...], column: str | None = None, source: str = "", label: str | None = None
    ) -> None:
        single = len(names) == 1
        self.keys = {name: column if single and column is not None else name for name in names}
        self.unnamed = single and column is None and label is None
        self.label, self.labels = label, list[str]()
        self.source = f"{source}, line" if source else "Line"
        self._indices: list[int] | None = None
        self._delimiter = ","
        self._width = self._label_index = 0
        self._is_json = False

    def line(self, number: int, text: str) -> dict[str, float] | None:
        """Return the costs in a line by name, or ``None`` for a header, an empty line or a comment."""
        if not text or (self._indices is None and text.startswith("#")):
            return None
        if not text.startswith(("{", "[")):
            if self._is_json:
                raise self._error(number, f"{text[:60]!r} is not JSON")
            return self._row(number, text)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            raise self._error(number, f"{text[:60]!r} is not JSON") from None
        self._is_json = True
        return self.value(number, value)

    def value(self, number: int, value: Any) -> dict[str, float]:
        """Return the costs in a JSON value: an object, or the number itself."""
        if isinstance(value, dict):
            for key in (*self.keys.values(), *([] if self.label is None else [self.label])):
                if key not in value:
                    known = ", ".join(value) or "none"
                    raise self._error(number, f"has no key {key[:60]!r} (it has {known[:200]}); use --column")
            found = {name: value[key] for name, key in self.keys.items()}
            if self.label is not None:
                self.labels.append(str(value[self.label]))
        elif self.unnamed:
            found = dict.fromkeys(self.keys, value)
        else:
            raise self._error(number, f"{_shown(value)} is not an object with the key of --column")
        for item in found.values():
            if isinstance(item, str):
                raise self._error(number, f"{_shown(item)} is text; write costs as JSON numbers")
        return {name: self._cost(number, item) for name, item in found.items()}

    def _row(self, number: int, text: str) -> dict[str, float] | None:
        if self._indices is None:
            self._delimiter = next((mark for mark in (",", "\t", ";") if mark in text), ",")
        try:
            cells = [cell.strip() for cell in next(csv.reader([text], delimiter=self._delimiter))]
        except csv.Error as error:
            raise self._error(number, f"is not CSV ({error})") from None
        if self._indices is None:
            lone = self.unnamed and len(cells) == 1
            # A lone word that is not a name, such as NA, is reported as a bad value below.
            no_name = lone and (not cells[0][:1].isalpha() or cells[0].lower() in _MISSING)
            header = not no_name and all(_number(cell) is None for cell in cells)
            self._indices = [0 if lone else self._index(number, key, cells, header) for key in self.keys.values()]
            self._width = len(cells)
            if self.label is not None:
                self._label_index = self._index(number, self.label, cells, header)
            if header:
                return None
        if len(cells) != self._width:
            raise self._error(number, f"has {len(cells)} columns, but the first line has {self._width}")
        if self.label is not None:
            self.labels.append(cells[self._label_index])
        found = zip(self.keys, self._indices, strict=True)
        return {name: self._cost(number, cells[index]) for name, index in found}

    def _index(self, number: int, key: str, cells: list[str], header: bool) -> int:
        if header and key in cells:
            return cells.index(key)
        if key.isdecimal() and len(key) < 10 and 1 <= int(key) <= len(cells):
            return int(key) - 1
        known = ", ".join(cells) if header else f"{len(cells)} columns without names, numbered from 1"
        raise self._error(number, f"has no column {key[:60]!r} (it has {known[:200]}); use --column")

    def _cost(self, number: int, value: Any) -> float:
        cost = _number(value)
        if cost is None or not 0.0 <= cost < inf:
            raise self._error(number, f"{_shown(value)} is not a cost; costs are finite and not negative")
        return cost

    def _error(self, number: int, problem: str) -> InputError:
        return InputError(f"{self.source} {number}: {problem}.")


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


def standard_input() -> BinaryIO:
    """Return the binary standard input of the process; ``InputError`` if it is closed."""
    if sys.stdin is None:
        raise InputError("Standard input is closed; name a file, or pipe the costs in.")
    return sys.stdin.buffer


def _from_npy(data: bytes, name: str, column: str | None, cluster: str | None) -> CostData:
    try:
        with catch_warnings():
            simplefilter("error")
            table = np.load(io.BytesIO(data), allow_pickle=False)
    except Exception:  # NumPy parses headers as Python literals, and raises many kinds of errors
        raise InputError(f"{name} is damaged or holds Python objects; store a plain array of numbers.") from None

    def field(key: str) -> Any:
        if table.dtype.names is None or key not in table.dtype.names:
            raise InputError(f"{name} has no column {_shown(key)}; leave --column out for a plain NPY array.")
        return table[key]

    try:
        costs = check_costs(table if column is None and cluster is None else field(column or "cost"))
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    return CostData(costs, clusters=None if cluster is None else field(cluster))


def _from_run(lines: Iterable[Line], path: Path) -> CostData:
    """Return the costs of the last training episodes in ``episodes.csv``, in whole epochs."""
    columns = [EPISODE_COLUMNS.index(name) for name in ("epoch", "cost")]
    rows, torn = array("d"), ""
    for line in islice(lines, 1, None):
        cells = line.text.split(",")
        try:
            if torn:  # only the last line may be incomplete: it is still being written
                raise ValueError(f"line {line.number - 1} is {_shown(torn)}")
            if len(cells) == len(EPISODE_COLUMNS):
                rows.extend([float(cells[index]) for index in columns])
            else:
                torn = line.text or " "
        except ValueError as error:
            raise InputError(f"{path} is damaged: {error}.") from None
    if not rows:
        raise InputError(f"{path} is empty: no episode of this run has finished yet.")
    epochs, costs = np.frombuffer(rows).reshape(-1, 2).T
    values = check_costs(np.maximum(costs, 0.0))  # as training counts them
    first = epochs[len(epochs) - ceil(LAST * len(epochs))]
    taken = epochs >= first
    policies = len(set(epochs[taken].tolist()))
    span = f"epoch {int(first) + 1}" if policies == 1 else f"epochs {int(first) + 1} to {int(epochs[-1]) + 1}"
    note = (
        f"{path} holds the {len(epochs):,} training episodes of a run. The last {int(taken.sum()):,} are "
        f"taken, {span}: {'one policy' if policies == 1 else f'{policies} policies'} with exploration noise, "
        f"so they do not certify the policy of the run. To test it: steingate evaluate {path.parent}."
    )
    if (costs < 0.0).any():
        note += " Costs below 0 are taken as 0."
    return CostData(values[taken], note)


def _monitor_column(extra: list[str], name: str) -> str:
    """Return the only column of a Monitor file that looks like a cost."""
    costly = ["cost"] if "cost" in extra else [key for key in extra if "cost" in key.lower()]
    if len(costly) != 1:
        found = f"the columns {', '.join(extra)}" if extra else "returns and lengths only"
        raise InputError(
            f"{name} is a Monitor file of Stable-Baselines3 with {found}; choose one with --column, or "
            "record the cost with Monitor(env, FILE, info_keywords=('cost',))."
        )
    return costly[0]


def _parse_json(text: str, parser: CostParser) -> Iterator[dict[str, float] | None]:
    """Yield the costs of one JSON document or, if the text is none, of each line."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        yield from (parser.line(number, line.strip()) for number, line in enumerate(text.splitlines(), start=1))
    else:
        entries = whole if isinstance(whole, list) else [whole]
        yield from (parser.value(number, value) for number, value in enumerate(entries, start=1))


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return None if "_" in str(value) else float(value)  # float() would read 1_000
    except (ValueError, OverflowError):
        return None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
