"""Episode costs from arrays and files, checked: what is no list of costs is refused, never certified."""

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import Any, BinaryIO
from warnings import catch_warnings, simplefilter

import numpy as np
import numpy.typing as npt

from steingate.errors import InputError

Costs = npt.NDArray[np.float64]

_NPY_MAGIC = b"\x93NUMPY"
_DEFAULT_COLUMN = "cost"
_MISSING = ("null", "na", "n/a", "nan", "none", "nil", "missing", "inf", "infinity")


def check_costs(costs: npt.ArrayLike) -> Costs:
    """Return the costs as a float64 vector, or raise an ``InputError`` that names what is wrong.

    Parameters
    ----------
    costs
        One undiscounted cost per episode: anything one-dimensional and real that ``np.asarray`` takes.
    """
    if isinstance(costs, np.ma.MaskedArray):
        raise InputError("A masked array hides values from the certificate: pass costs.compressed() instead.")
    try:
        values = np.asarray(costs)
    except ValueError:
        raise InputError("The costs are rows of different lengths; pass one number per episode.") from None
    if values.ndim != 1:
        raise InputError(f"The costs have shape {values.shape}; pass one dimension, one number per episode.")
    if values.size == 0:
        raise InputError("There are no costs; pass at least one finished episode.")
    if values.dtype.kind not in "fiu":
        raise InputError(
            f"The costs have type {values.dtype} (first value {values.tolist()[0]!r}); pass real numbers."
        )
    with np.errstate(over="ignore", invalid="ignore"):  # a longer float may fit into no float of eight bytes
        values = values.astype(np.float64, copy=False)
    # NaN fails both comparisons, so two reductions cover every bad value.
    if not (values.min() >= 0.0 and values.max() < np.inf):
        index = int(np.flatnonzero(~((values >= 0.0) & (values < np.inf)))[0])
        raise InputError(
            f"Cost {float(values[index])} at position {index} is not usable; "
            f"costs are finite and not negative."
        )
    return values


def normalized(costs: Costs, scale: float) -> Costs:
    """Return costs divided by ``scale`` and cut at 1; in this order nothing overflows."""
    return np.minimum(costs, scale) / scale


def read_costs(source: str | Path, column: str | None = None, stdin: BinaryIO | None = None) -> Costs:
    """Return the episode costs stored in a file, or on standard input when ``source`` is ``-``.

    CSV (with or without a header, after any lines that begin with ``#``), JSON lines (numbers or objects;
    one whole array is fine too) and NPY are told apart by their content, so standard input works the same
    way. Nothing in a file is ever executed.

    Parameters
    ----------
    source
        Path of the file, or ``-``.
    column
        Name of the column or key to read, or the number of a CSV column counted from 1. Without it, the only
        column, or the one called ``cost``.
    stdin
        Binary stream used for ``-``; the process's own by default.
    """
    name = "standard input" if str(source) == "-" else str(source)
    data = _read_bytes(source, stdin)
    if data.startswith(_NPY_MAGIC):
        return _from_npy(data, name, column)
    if data.startswith(b"PK"):
        raise InputError(f"{name} is an archive; extract the array of costs and store it as .npy or .csv.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(
            f"{name} is neither UTF-8 text nor NPY; store the costs as CSV, JSON or NPY."
        ) from None
    start = text.lstrip()[:1]
    if not start:
        raise InputError(f"{name} is empty; it should hold one cost per episode.")
    pairs = _from_json(text, name, column) if start in "{[" else _from_csv(text, name, column)
    return _collect(pairs, name)


def _read_bytes(source: str | Path, stdin: BinaryIO | None) -> bytes:
    if str(source) == "-":
        if stdin is None and sys.stdin is None:
            raise InputError("Standard input is closed; name a file, or pipe the costs in.")
        try:
            return (stdin or sys.stdin.buffer).read()
        except (OSError, ValueError) as error:
            raise InputError(f"Standard input cannot be read ({error}).") from None
    path = Path(source)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder; name the file that holds the costs.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}).") from None


def _from_npy(data: bytes, name: str, column: str | None) -> Costs:
    try:
        array = _npy_array(data)
    except _NPY_ERRORS:
        raise InputError(
            f"{name} is damaged or holds Python objects; store a plain array of numbers."
        ) from None
    if column is not None:
        if array.dtype.names is None or column not in array.dtype.names:
            raise InputError(
                f"{name} has no column {_shown(column)}; leave --column out for a plain NPY array."
            )
        array = array[column]
    try:
        return check_costs(array)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


# What numpy raises on damaged headers, which it parses as Python literals.
_NPY_ERRORS = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    RecursionError,
    SyntaxError,
    TokenError,
    TypeError,
    UserWarning,
    ValueError,
)


def _npy_array(data: bytes) -> npt.NDArray[Any]:
    """Return the array of an NPY file, without room for more values than its header promises truly."""
    stream = io.BytesIO(data)
    with catch_warnings():
        simplefilter("error")
        version = np.lib.format.read_magic(stream)
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, fortran, dtype = read(stream)
    count = prod(shape)
    if dtype.hasobject or min(shape, default=0) < 0 or count * dtype.itemsize > len(data) - stream.tell():
        raise ValueError("objects, or fewer bytes than the header promises")
    values: npt.NDArray[Any] = np.frombuffer(data, dtype, count, stream.tell())
    return values.reshape(shape, order="F" if fortran else "C")


def _from_json(text: str, name: str, column: str | None) -> Iterator[tuple[int, object]]:
    try:
        whole = json.loads(text)
    except RecursionError:
        raise _nested(name) from None
    except ValueError:
        entries: Iterable[tuple[int, object]] = _json_lines(text, name)
    else:
        entries = enumerate(whole if isinstance(whole, list) else [whole], start=1)
    key = column or _DEFAULT_COLUMN
    for line, value in entries:
        if isinstance(value, dict):
            if key not in value:
                raise InputError(
                    f"{name}, entry {line}, has no key {_shown(key)} (it has {_listed(value)}); "
                    f"name one with --column."
                )
            value = value[key]
        elif column is not None:
            raise InputError(
                f"{name}, entry {line}, is {_shown(value)}, not an object, so --column {column[:60]} "
                "cannot apply."
            )
        if isinstance(value, str):
            raise InputError(f"{name}, entry {line}: {_shown(value)} is text; write costs as JSON numbers.")
        yield line, value


def _json_lines(text: str, name: str) -> Iterator[tuple[int, object]]:
    for line, row in enumerate(text.splitlines(), start=1):
        if not row.strip():
            continue
        try:
            yield line, json.loads(row)
        except RecursionError:
            raise _nested(name) from None
        except ValueError:
            raise InputError(f"{name}, line {line}: {row.strip()[:60]!r} is not JSON.") from None


def _nested(name: str) -> InputError:
    return InputError(f"{name} nests brackets too deeply; write one number or flat object per episode.")


def _from_csv(text: str, name: str, column: str | None) -> Iterator[tuple[int, object]]:
    skipped, text = _without_comments(text)
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = next((mark for mark in (",", "\t", ";") if mark in first), ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    index: int | None = None
    width = 0
    try:
        for row in reader:
            if not any(cell.strip() for cell in row):
                continue
            if index is None:
                width = len(row)
                index, has_header = _csv_column([cell.strip() for cell in row], name, column)
                if has_header:
                    continue
            if len(row) != width:
                line = skipped + reader.line_num
                raise InputError(f"{name}, line {line}, has {len(row)} columns where the first has {width}.")
            yield skipped + reader.line_num, row[index]
    except csv.Error as error:
        raise InputError(f"{name}, line {skipped + reader.line_num}, is not CSV ({error}).") from None


def _without_comments(text: str) -> tuple[int, str]:
    """Return how many lines at the top are empty or begin with ``#``, and the rest."""
    lines = text.split("\n")
    skipped = next((i for i, line in enumerate(lines) if line.strip()[:1] not in ("", "#")), len(lines))
    return skipped, "\n".join(lines[skipped:])


def _csv_column(first: list[str], name: str, column: str | None) -> tuple[int, bool]:
    """Return which column holds the costs, and whether the first row is a header."""
    has_header = not any(_is_number(cell) for cell in first)
    wanted = column if column is not None else _DEFAULT_COLUMN
    if has_header and wanted in first:
        return first.index(wanted), True
    # A missing value is no name of a column: as a first row it is reported like any other bad value.
    has_header = has_header and not any(cell.lower() in _MISSING for cell in first)
    if column is not None:
        if column.isdecimal() and len(column) < 10 and 1 <= int(column) <= len(first):
            return int(column) - 1, has_header
        known = _listed(first) if has_header else f"{len(first)} unnamed columns, numbered from 1"
        raise InputError(f"{name} has no column {_shown(column)}; it has {known}.")
    if len(first) == 1:
        # A lone word is a header; anything else that is not a number is reported as a bad value.
        return 0, has_header and first[0][:1].isalpha()
    known = _listed(first) if has_header else f"{len(first)} unnamed ones, numbered from 1"
    raise InputError(f"{name} has several columns ({known}); choose one with --column.")


def _collect(pairs: Iterator[tuple[int, object]], name: str) -> Costs:
    values: list[float] = []
    for line, value in pairs:
        cost = _number(value)
        if cost is None:
            raise InputError(
                f"{name}, line {line}: {_shown(value)} is not a cost; costs are finite and not negative."
            )
        values.append(cost)
    if not values:
        raise InputError(f"{name} holds no costs; it should hold one per episode.")
    return np.array(values)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and "_" in value:  # float() would read 1_000
        return None
    try:
        cost = float(value)
    except (ValueError, OverflowError):
        return None
    return cost if 0.0 <= cost < float("inf") else None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
