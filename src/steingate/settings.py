"""Text, files and Python values to settings and back: the one converter, led by types of fields.

A record is a frozen dataclass; its fields may be parts, which are records too. ``"part.field"`` names a field
of a part. The same rules hold for words of the command line, TOML files, ``config.json`` and Python values.

>>> from dataclasses import dataclass, field
>>> @dataclass(frozen=True)
... class Sizes:
...     passes: int = 10
>>> @dataclass(frozen=True)
... class Method:
...     rate: float = 0.5
...     sizes: Sizes = Sizes()
>>> with_settings(Method(), {"rate": "1", "sizes.passes": 20.0}, "this method")
Method(rate=1.0, sizes=Sizes(passes=20))
"""

import json
import math
import os
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, fields, is_dataclass, replace
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from steingate.errors import InputError, nearest

Record = TypeVar("Record")
_NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")


def setting(default: Any, text: str) -> Any:
    """Return a dataclass field with a default and a sentence for ``--help``."""
    return field(default=default, metadata={"help": text})


def part(make: Callable[[], Any], text: str = "") -> Any:
    """Return a dataclass field that is made anew for each record: a part, or a table."""
    return field(default_factory=make, metadata={"help": text})


def field_types(cls: type) -> dict[str, Any]:
    """Return the type of each field of a dataclass."""
    hints = get_type_hints(cls)
    return {item.name: hints[item.name] for item in fields(cls)}  # type: ignore[arg-type]


def setting_names(record: object) -> list[str]:
    """Return the names of all settings of a record, with dots for those of its parts."""
    names: list[str] = []
    for item in fields(record):  # type: ignore[arg-type]
        part = getattr(record, item.name)
        names += [f"{item.name}.{name}" for name in setting_names(part)] if _is_record(part) else [item.name]
    return names


def with_settings(record: Record, given: Mapping[str, Any], owner: str) -> Record:
    """Return the record with settings changed; one that it does not have is refused with the nearest.

    Parameters
    ----------
    record
        A frozen dataclass.
    given
        Values by name; ``"part.field"``, or a mapping for a whole part. Dashes may stand for underscores. All
        fields of a record are changed at once, so that values which need each other can be given together.
    owner
        How messages call the record.
    """
    return _changed(record, given, owner, "", record)


def _changed(record: Record, given: Mapping[str, Any], owner: str, prefix: str, whole: object) -> Record:
    hints = field_types(type(record))
    values: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    for key, value in given.items():
        first, _, rest = str(key).replace("-", "_").partition(".")
        if first not in hints or (rest and not _is_record(getattr(record, first))):
            raise InputError(_unknown(f"{prefix}{key}", owner, whole))
        inner = getattr(record, first)
        if rest:
            parts.setdefault(first, {})[rest] = value
        elif _is_record(inner) and isinstance(value, Mapping):
            parts.setdefault(first, {}).update(value)
        elif _is_record(inner) and type(value) is type(inner):
            values[first] = value
        elif _is_record(inner):
            example = f"{prefix}{first}.{setting_names(inner)[0]}"
            raise InputError(f"{prefix}{key} is {value!r}: set its fields, such as {example}.")
        else:
            values[first] = convert(hints[first], value, f"{prefix}{key}")
    for name, changes in parts.items():
        part = values.get(name, getattr(record, name))
        values[name] = _changed(part, changes, owner, f"{prefix}{name}.", whole)
    return replace(record, **values) if values else record  # type: ignore[type-var]


def _unknown(key: str, owner: str, record: object) -> str:
    hint = nearest_setting(key.replace("-", "_"), setting_names(record))
    return f"{owner} has no setting {key!r}{hint}."


def nearest_setting(name: str, known: Sequence[str]) -> str:
    """Return the hint ``nearest`` gives, but first of all a part's setting that is called the same.

    >>> nearest_setting("passes", ["rate", "sizes.passes"])
    ' (did you mean sizes.passes?)'
    """
    last = name.removeprefix("--").rpartition(".")[2]
    same = [other for other in known if other.rpartition(".")[2] == last]
    return f" (did you mean {same[0]}?)" if same else nearest(name, known)


def convert(hint: Any, value: Any, where: str) -> Any:
    """Return a value as the type ``hint`` asks, or refuse it; nothing is ever rounded.

    Text is read as the type says (``1e6`` is a fine whole number, ``64,64`` a tuple, ``none`` None); a whole
    float is an integer where one is expected, and an integer a float. True and false are not numbers.

    >>> convert(int, "1e6", "total_steps"), convert(float, 2, "lam"), convert(int | None, "none", "threads")
    (1000000, 2.0, None)
    """
    choices = _alternatives(hint)
    for choice in choices:
        found = _converted(choice, value, where)
        if found is not _REFUSED:
            return found
    expected = " or ".join(_expected(choice) for choice in choices)
    hint_text = ""
    if isinstance(value, str):
        hint_text = nearest(value, [str(item) for choice in choices for item in _literals(choice)])
    raise InputError(f"{where} is {value!r}: {expected} is expected{hint_text}.")


_REFUSED = object()


def _converted(hint: Any, value: Any, where: str) -> Any:
    origin = get_origin(hint)
    if hint in (None, NoneType):
        empty = value is None or (isinstance(value, str) and value.casefold() == "none")
        return None if empty else _REFUSED
    if hint is Any or hint is object:
        return value
    if origin is Literal:
        return value if value in get_args(hint) else _REFUSED
    if hint is bool:
        return _truth(value)
    if hint in (int, float):
        return _number(hint, value)
    if hint is str:
        return value if isinstance(value, str) else _REFUSED
    if origin is tuple:
        items = [word for word in value.split(",") if word.strip()] if isinstance(value, str) else value
        if not isinstance(items, list | tuple):
            return _REFUSED
        return tuple(convert(get_args(hint)[0], item, where) for item in items)
    if origin is dict or origin is Mapping or hint is dict or getattr(origin, "__name__", "") == "Mapping":
        return _table(value, where)
    if isinstance(hint, type) and isinstance(value, hint):
        return value
    return _REFUSED


def _truth(value: Any) -> Any:
    if isinstance(value, str):
        word = value.casefold()
        return True if word in _TRUE else False if word in _FALSE else _REFUSED
    return value if isinstance(value, bool) else _REFUSED


def _number(kind: type, value: Any) -> Any:
    if isinstance(value, bool) or (isinstance(value, str) and not value.strip()):
        return _REFUSED
    if isinstance(value, str):
        text = value.strip().replace("_", "")
        try:
            value = int(text) if text.lstrip("+-").isdigit() else float(text)
        except ValueError:
            return _REFUSED
    try:
        number = kind(value)
        return number if number == value or (kind is float and math.isnan(number)) else _REFUSED
    except (TypeError, ValueError, OverflowError):
        return _REFUSED


def _table(value: Any, where: str) -> Any:
    """Return a table of names and values from a mapping, or from words such as ``budget=0.2``."""
    if isinstance(value, Mapping):
        return dict(value)
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        return _REFUSED
    table = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key:
            raise InputError(f"{where} is {word!r}: KEY=VALUE is expected.")
        try:
            table[key] = json.loads(text)
        except json.JSONDecodeError:
            table[key] = text
    return table


def _alternatives(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union, None first, so that the word none is not taken for text."""
    if isinstance(hint, UnionType) or get_origin(hint) is Union:
        return tuple(sorted(get_args(hint), key=lambda kind: kind is not NoneType))
    return (hint,)


def _literals(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) is Literal else ()


def _expected(hint: Any) -> str:
    origin = get_origin(hint)
    if origin is Literal:
        return "one of " + ", ".join(map(str, get_args(hint)))
    if origin is tuple:
        return "a list of whole numbers like 64,64"
    if hint is NoneType:
        return "none"
    if origin is not None or hint is dict:
        return "a table of names and values"
    return _NAMES.get(hint, getattr(hint, "__name__", str(hint)))


def to_plain(value: Any) -> Any:
    """Return a record, with its parts, as JSON types; infinities become text, which is read back."""
    if _is_record(value):
        return {item.name: to_plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def read_toml(file: str | Path) -> dict[str, Any]:
    """Return the names and values of a TOML file."""
    try:
        return tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"The file {file} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:  # of text, of TOML, or of integers with too many digits
        raise InputError(f"The file {file} is not valid TOML: {error}.") from error


def import_named(text: str, what: str, others: Iterable[str] = ()) -> Any:
    """Return the object that ``module:name`` names, importing the module.

    Parameters
    ----------
    text
        Such as ``mypackage.safety:risk``.
    what
        How messages call what is looked for, such as "the risk".
    others
        Names that may have been meant instead of the module.
    """
    module_name, _, name = text.partition(":")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # as `python -m` does: a module beside the user is found
    try:
        found: Any = import_module(module_name)
    except ImportError as error:
        raise InputError(
            f"{what} {text!r} cannot be imported: {error}{nearest(module_name, others)}; "
            "the module must be on the import path."
        ) from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise InputError(
                f"{what} {text!r} is not there: {module_name} has no {part!r}{nearest(part, dir(found))}."
            )
        found = getattr(found, part)
    return found


def named(value: Any) -> str:
    """Return ``module:name`` of a class or function, which ``import_named`` takes back."""
    kind: Callable[..., Any] | type = value if hasattr(value, "__qualname__") else type(value)
    return f"{kind.__module__}:{kind.__qualname__}"


def _is_record(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type)
