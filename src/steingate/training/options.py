"""Command-line options and TOML files for a dataclass: types, help and checks come from its fields."""

import argparse
import json
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from difflib import get_close_matches
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from steingate.errors import InputError

T = TypeVar("T")
_NAMES = {int: "an integer", float: "a number", str: "text", bool: "true or false"}


def add_options(parser: argparse.ArgumentParser, cls: type) -> None:
    """Add one option per field of a dataclass, absent from the namespace unless given.

    A field's help is ``metadata["help"]``. A bool gets ``--name`` and ``--no-name``; a tuple takes values
    separated by commas; a dict takes ``key=value`` as often as needed.
    """
    hints = get_type_hints(cls)
    for field in fields(cls):
        hint = _plain(hints[field.name])
        default = field.default if field.default_factory is MISSING else field.default_factory()
        help_text = f"{field.metadata.get('help', '')} (default: {_shown(default)})".replace("%", "%%")
        settings: dict[str, Any] = {"default": argparse.SUPPRESS, "help": help_text, "dest": field.name}
        option = "--" + field.name.replace("_", "-")
        if hint is bool:
            parser.add_argument(option, action=argparse.BooleanOptionalAction, **settings)
        elif get_origin(hint) is dict:
            parser.add_argument(option, action="append", metavar="KEY=VALUE", **settings)
        else:
            parser.add_argument(option, metavar=_metavar(hint), **settings)


def build(cls: type[T], given: Mapping[str, Any], file: str | Path | None = None) -> T:
    """Return the dataclass from options (as text), over a TOML file, over its defaults.

    Parameters
    ----------
    cls
        A dataclass.
    given
        Values by field name, text as typed on a command line, or already of the right type.
    file
        A TOML file of top-level ``name = value`` lines, read first.
    """
    values = read_toml(cls, file)
    hints = get_type_hints(cls)
    for name, value in given.items():
        _checked_name(cls, name, "option")
        values[name] = _parsed(hints[name], value, name)
    return cls(**values)


def read_toml(cls: type, file: str | Path | None) -> dict[str, Any]:
    """Return values for a dataclass from a TOML file; a name may have dashes for underscores."""
    if file is None:
        return {}
    try:
        content = tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"The file {file} cannot be read: {error.strerror}.") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"The file {file} is not valid TOML: {error}.") from error
    return from_mapping(cls, content, str(file))


def from_mapping(cls: type, content: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Return values for a dataclass from the names and values of a file, each checked against its field."""
    hints = get_type_hints(cls)
    values = {}
    for key, value in content.items():
        name = _checked_name(cls, key.replace("-", "_"), f"setting in {source}", shown=key)
        values[name] = _converted(hints[name], value, f"{key} in {source}")
    return values


def _checked_name(cls: type, name: str, kind: str, shown: str | None = None) -> str:
    known = [field.name for field in fields(cls)]
    if name not in known:
        close = get_close_matches(name, known, n=1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        raise InputError(f"There is no {kind} called {(shown or name)!r}{hint}.")
    return name


def _parsed(hint: Any, value: Any, where: str) -> Any:
    """Return a value from the command line: text is read as the field's type."""
    plain = _plain(hint)
    if get_origin(plain) is dict and isinstance(value, list):
        return dict(_pair(item, where) for item in value)
    if not isinstance(value, str):
        return _converted(hint, value, where)
    if value.casefold() == "none" and plain is not hint:
        return None
    try:
        if get_origin(plain) is tuple:
            inner = get_args(plain)[0]
            return tuple(_number(inner, part) for part in value.split(",") if part.strip())
        if plain in (int, float):
            return _number(plain, value)
    except ValueError as error:
        raise InputError(f"{where} is {value!r}: {_expected(plain)} is expected.") from error
    return _converted(hint, value, where)


def _converted(hint: Any, value: Any, where: str) -> Any:
    """Return a value from a file or from Python: only conversions that lose nothing."""
    plain = _plain(hint)
    if value is None and plain is not hint:
        return None
    origin = get_origin(plain)
    if origin is Literal:
        if value in get_args(plain):
            return value
    elif origin is tuple and isinstance(value, list | tuple):
        return tuple(_converted(get_args(plain)[0], part, where) for part in value)
    elif origin is dict and isinstance(value, Mapping):
        return dict(value)
    elif plain is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    elif plain is int and isinstance(value, float) and value.is_integer():
        return int(value)
    elif isinstance(plain, type) and isinstance(value, plain) and isinstance(value, bool) == (plain is bool):
        return value
    raise InputError(f"{where} is {value!r}: {_expected(plain)} is expected.")


def _number(kind: type, text: str) -> Any:
    text = text.strip().replace("_", "")
    if kind is int and not text.lstrip("+-").isdigit():  # 1e6 is a fine way to write a number of steps
        number = float(text)
        if not number.is_integer():
            raise ValueError(text)
        return int(number)
    return kind(text)


def _pair(item: str, where: str) -> tuple[str, Any]:
    key, equals, text = item.partition("=")
    if not equals or not key:
        raise InputError(f"{where} is {item!r}: KEY=VALUE is expected.")
    try:
        return key, json.loads(text)
    except json.JSONDecodeError:
        return key, text


def _plain(hint: Any) -> Any:
    """Return the type without an optional None."""
    if isinstance(hint, UnionType) and NoneType in get_args(hint):
        (plain,) = [arg for arg in get_args(hint) if arg is not NoneType]
        return plain
    return hint


def _expected(plain: Any) -> str:
    origin = get_origin(plain)
    if origin is Literal:
        return "one of " + ", ".join(map(str, get_args(plain)))
    if origin is tuple:
        return "a list of whole numbers like 64,64"
    if origin is dict:
        return "a table of names and values"
    return _NAMES.get(plain, str(plain))


def _metavar(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return "{" + ",".join(map(str, get_args(hint))) + "}"
    return {int: "N", float: "X", str: "TEXT"}.get(hint, "N,N")


def _shown(default: Any) -> str:
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    if isinstance(default, bool):
        return "yes" if default else "no"
    return "none" if default in (None, {}) else str(default)
