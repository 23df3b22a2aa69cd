"""Episode costs from arrays, files and streams. What is not a list of costs is refused with one sentence.

``read_costs`` reads a whole source, and ``CostParser`` turns lines into costs. ``monitoring.follow`` has files that
grow. Nothing in a file is executed.
"""

import csv
import json
import sys
from array import array
from contextlib import nullcontext
from io import BytesIO, TextIOWrapper
from math import inf
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
import numpy.typing as npt

from steingate.errors import InputError
from steingate.storage.tables import EPISODE_COLUMNS

Costs = npt.NDArray[np.float64]

MAX_BYTES = 1 << 27  # of a source
_MISSING = ("null", "na", "n/a", "nan", "none", "nil", "missing", "inf", "infinity")


class CostData(NamedTuple):
    """One cost per episode, shape (n,); and the label of the cluster of each episode, shape (n,), or ``None``."""

    costs: Costs
    clusters: npt.NDArray[Any] | None = None


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
    """Return the costs in a file, or on standard input if ``source`` is ``-``.

    The format is recognized by the content: CSV with or without a header, JSON lines or one JSON list, and NPY.
    Episodes of training are of many policies, so run folders are refused, and so are ``episodes.csv`` and Monitor files
    of Stable-Baselines3 unless ``column`` is given.

    Parameters
    ----------
    source : path, or ``-``
    column : name of the column or key, or number of a CSV column counted from 1; default: the only column, or ``cost``
    stdin : binary stream for ``-``; default: that of the process
    cluster : column or key of the labels of clusters
    """
    path, name = Path(source), "standard input" if str(source) == "-" else str(source)
    if name == str(source) and path.is_dir():
        if (path / "config.json").exists():
            raise InputError(
                f"{path} is a run, whose episodes are of many policies: steingate evaluate tests its policy."
            )
        raise InputError(f"{path} is a folder; name the file that holds the costs.")
    try:
        with nullcontext(stdin or standard_input()) if str(source) == "-" else open(path, "rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise InputError(f"{name} is larger than {MAX_BYTES >> 20} MiB; certify a part of it.")
        return _read(data, name, column, cluster)
    except FileNotFoundError:
        raise InputError(f"There is no file {source}.") from None
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"{name} cannot be read ({getattr(error, 'strerror', None) or error}).") from None


def _read(data: bytes, name: str, column: str | None, cluster: str | None) -> CostData:
    if data.startswith(b"\x93NUMPY"):
        return _from_npy(data, name, column, cluster)
    if data.startswith(b"PK"):
        raise InputError(f"{name} is an archive; extract the array of costs and store it as .npy or .csv.")
    text = TextIOWrapper(BytesIO(data), encoding="utf-8-sig", errors="replace")
    first, second = text.readline().strip(), text.readline()
    text.seek(0)
    if column is None and first == ",".join(EPISODE_COLUMNS):
        raise InputError(
            f"{name} is of a run, whose episodes are of many policies: steingate evaluate tests its policy."
        )
    if column is None and first.startswith("#{") and second.startswith("r,l,t"):
        raise InputError(
            f"{name} is a Monitor file of Stable-Baselines3: its episodes are of many policies if it was written in "
            "training; if they are of one, give the column of the episode cost, such as --column cost."
        )
    parser, costs = CostParser(("cost",), column, name, cluster), array("d")
    document = _json_list(text.read()) if first.startswith(("{", "[")) else None
    text.seek(0)
    for number, item in enumerate(text if document is None else document, start=1):
        found = parser.line(number, item.strip()) if document is None else parser.value(number, item)
        if found is not None:
            costs.append(found["cost"])
    if not costs:
        raise InputError(f"{name} is empty; it should hold one cost per episode.")
    return CostData(np.frombuffer(costs), None if cluster is None else np.array(parser.labels))


def _json_list(text: str) -> list[Any] | None:
    """Return the entries of a JSON document, or ``None`` if the text is not one document."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, list) else [document]


def _from_npy(data: bytes, name: str, column: str | None, cluster: str | None) -> CostData:
    if column is not None or cluster is not None:
        raise InputError(f"{name} is an array without columns; leave out --column and --cluster.")
    try:
        with catch_warnings():
            simplefilter("error")
            values = np.load(BytesIO(data), allow_pickle=False)
    except Exception:  # NumPy parses headers as Python literals, and raises many kinds of errors
        raise InputError(f"{name} is damaged or holds Python objects; store a plain array of numbers.") from None
    try:
        return CostData(check_costs(values))
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


class CostParser:
    """Turns lines of numbers, CSV or JSON into costs; the first line may name the columns.

    Parameters
    ----------
    names : names of the costs; one unnamed cost is ``("cost",)``
    column : column or key of a single cost; see :func:`read_costs`
    source : name of the source in error messages
    label : column or key of a label of each cost, which is added to ``labels``
    """

    def __init__(
        self, names: tuple[str, ...], column: str | None = None, source: str = "", label: str | None = None
    ) -> None:
        self.names, self.labels = names, list[str]()
        self._keys = [*names] if column is None or len(names) > 1 else [column]
        self._unnamed = len(names) == 1 and column is None and label is None
        if label is not None:
            self._keys.append(label)
        self._source = f"{source}, line" if source else "Line"
        self._columns: list[int] | None = None  # of the keys
        self._delimiter, self._width, self._is_json = ",", 0, False

    def line(self, number: int, text: str) -> dict[str, float] | None:
        """Return the costs in a line by name, or ``None`` for a header, an empty line or a comment."""
        if not text or (self._columns is None and text.startswith("#")):
            return None
        if not self._is_json and not text.startswith(("{", "[")):
            return self._row(number, text)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            raise self._error(number, f"{text[:60]!r} is not JSON") from None
        self._is_json = True
        return self.value(number, value)

    def value(self, number: int, value: Any) -> dict[str, float]:
        """Return the costs in a JSON value: an object, or the number itself."""
        if self._unnamed and not isinstance(value, dict):
            value = {self._keys[0]: value}
        if not isinstance(value, dict):
            raise self._error(number, f"{_shown(value)} is not an object with the key of --column")
        for key in self._keys:
            if key not in value:
                known = ", ".join(value) or "none"
                raise self._error(number, f"has no key {key[:60]!r} (it has {known[:200]}); use --column")
        values = [value[key] for key in self._keys]
        for cost in values[: len(self.names)]:
            if isinstance(cost, str):
                raise self._error(number, f"{_shown(cost)} is text; write costs as JSON numbers")
        return self._costs(number, values)

    def _row(self, number: int, text: str) -> dict[str, float] | None:
        if self._columns is None:
            self._delimiter = next((mark for mark in (",", "\t", ";") if mark in text), ",")
        try:
            cells = [cell.strip() for cell in next(csv.reader([text], delimiter=self._delimiter))]
        except csv.Error as error:
            raise self._error(number, f"is not CSV ({error})") from None
        if self._columns is None:
            lone = self._unnamed and len(cells) == 1
            # A lone word that is not a name, such as NA, is reported as a bad value below.
            no_name = lone and (not cells[0][:1].isalpha() or cells[0].lower() in _MISSING)
            header = not no_name and all(_number(cell) is None for cell in cells)
            self._columns = [0] if lone else [self._column(number, key, cells, header) for key in self._keys]
            self._width = len(cells)
            if header:
                return None
        if len(cells) != self._width:
            raise self._error(number, f"has {len(cells)} columns, but the first line has {self._width}")
        return self._costs(number, [cells[index] for index in self._columns])

    def _column(self, number: int, key: str, cells: list[str], header: bool) -> int:
        if header and key in cells:
            return cells.index(key)
        if key.isdecimal() and len(key) < 10 and 1 <= int(key) <= len(cells):
            return int(key) - 1
        known = ", ".join(cells) if header else f"{len(cells)} columns without names, numbered from 1"
        raise self._error(number, f"has no column {key[:60]!r} (it has {known[:200]}); use --column")

    def _costs(self, number: int, values: list[Any]) -> dict[str, float]:
        """Return the costs by name; a label follows them."""
        self.labels += map(str, values[len(self.names) :])
        costs = {name: _number(value) for name, value in zip(self.names, values, strict=False)}
        for value, cost in zip(values, costs.values(), strict=False):
            if cost is None or not 0.0 <= cost < inf:
                raise self._error(number, f"{_shown(value)} is not a cost; costs are finite and not negative")
        return costs  # type: ignore[return-value]

    def _error(self, number: int, problem: str) -> InputError:
        return InputError(f"{self._source} {number}: {problem}.")


def standard_input() -> BinaryIO:
    """Return the binary standard input of the process; ``InputError`` if it is closed."""
    if sys.stdin is None:
        raise InputError("Standard input is closed; name a file, or pipe the costs in.")
    return sys.stdin.buffer


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
