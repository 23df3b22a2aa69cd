"""Options of configuration dataclasses: conversion from the command line, TOML, JSON and Python.

A configuration is a frozen dataclass. Its fields are options, or groups of options (frozen dataclasses
themselves). An option of a group is named ``group.option``; the options of a group with ``flat=True`` are
named without the group. The same conversion serves every source of values.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Ppo:
...     epochs: int = option(10, "passes over the batch")
>>> @dataclass(frozen=True)
... class Config:
...     seed: int = option(0, "random seed")
...     ppo: Ppo = group(Ppo)
>>> with_options(Config(), {"seed": "1e3", "ppo.epochs": 20.0}, "this run")
Config(seed=1000, ppo=Ppo(epochs=20))
"""

import json
import math
import os
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, is_dataclass, replace
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from steingate.errors import InputError, nearest

Config = TypeVar("Config")

_MAX_TOML_BYTES, _MAX_JSON_BYTES = 1 << 16, 1 << 20


class Option(NamedTuple):
    """One option of a configuration."""

    name: str  # for users
    path: tuple[str, ...]  # field names that lead to it
    type: Any
    value: Any
    help: str


class Range(NamedTuple):
    """The numbers from ``low`` to ``high``, without ``low`` itself if ``above``."""

    low: float = 0.0
    high: float = math.inf
    above: bool = False


UNIT, FRACTION, POSITIVE, NON_NEGATIVE = Range(0.0, 1.0), Range(0.0, 1.0, True), Range(above=True), Range()


def option(default: Any, text: str, within: Range | None = None) -> Any:
    """Return a dataclass field with a default, a help text and a range; a dict is copied for every instance.

    :func:`check_ranges` refuses a value outside its range.
    """
    metadata = {"help": text, "range": within}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def group(make: Callable[[], Any], text: str = "", flat: bool = False) -> Any:
    """Return a dataclass field that holds a group of options, made by its dataclass or a function.

    The options of a ``flat`` group are named without the name of the group.
    """
    return field(default_factory=make, metadata={"help": text, "flat": flat})


def check_ranges(config: object) -> None:
    """Refuse an option, of the configuration or of its groups, outside its range; None is in every range."""
    for item in fields(config):  # type: ignore[arg-type]
        value, limits = getattr(config, item.name), item.metadata.get("range")
        if _is_config(value):
            check_ranges(value)
        elif value is None or limits is None:
            continue
        elif not (limits.low < value if limits.above else limits.low <= value) or value > limits.high:
            least = "positive" if limits.above else f"at least {limits.low:g}"
            most = f" and at most {limits.high:g}" if limits.high < math.inf else ""
            raise InputError(f"{item.name} must be {least}{most}, got {value}.")


def field_types(cls: type) -> dict[str, Any]:
    """Return the type of each field of a dataclass."""
    hints = get_type_hints(cls)
    return {item.name: hints[item.name] for item in fields(cls)}  # type: ignore[arg-type]


def list_options(config: object, prefix: str = "", path: tuple[str, ...] = ()) -> list[Option]:
    """Return all options of a configuration, those of its groups included, in the order of the fields."""
    hints = field_types(type(config))
    found: list[Option] = []
    for item in fields(config):  # type: ignore[arg-type]
        value, name, here = getattr(config, item.name), prefix + item.name, (*path, item.name)
        if _is_config(value):
            found += list_options(value, prefix if item.metadata.get("flat") else f"{name}.", here)
        else:
            found.append(Option(name, here, hints[item.name], value, item.metadata.get("help", "")))
    return found


def option_names(config: object) -> list[str]:
    """Return the names of all options of a configuration."""
    return [item.name for item in list_options(config)]


def with_options(config: Config, given: Mapping[str, Any], owner: str) -> Config:
    """Return a frozen dataclass with the values of some options, by name, converted and changed together.

    A group can be given as a mapping or as an instance of its dataclass. Dashes and underscores are the same. The
    InputError about an unknown name starts with ``owner`` and names the nearest option.
    """
    known = list_options(config)
    by_name = {".".join(item.path): item for item in known} | {item.name: item for item in known}
    groups = {".".join(item.path[:depth]) for item in known for depth in range(1, len(item.path))}
    changes: dict[tuple[str, ...], Any] = {}
    for name, value in _flattened(given, "", groups):
        if name in by_name:
            changes[by_name[name].path] = convert(by_name[name].type, value, name)
        elif name in groups:
            path = tuple(name.split("."))
            if type(value) is not type(attrgetter(name)(config)):
                example = next(item.name for item in known if item.path[: len(path)] == path)
                raise InputError(f"{name} is a group of options, not {value!r}; set {example}, for example.")
            changes[path] = value
        else:
            hint = nearest_option(name, option_names(config))
            raise InputError(f"{owner} has no option {name!r}{hint}.")
    return _replaced(config, changes)


def _flattened(given: Mapping[str, Any], prefix: str, groups: set[str]) -> Iterator[tuple[str, Any]]:
    for key, value in given.items():
        name = prefix + str(key).replace("-", "_")
        if name in groups and isinstance(value, Mapping):
            yield from _flattened(value, f"{name}.", groups)
        else:
            yield name, value


def _replaced(config: Config, changes: Mapping[tuple[str, ...], Any]) -> Config:
    values = {path[0]: value for path, value in changes.items() if len(path) == 1}
    for name in {path[0] for path in changes if len(path) > 1}:
        inner = {path[1:]: value for path, value in changes.items() if path[0] == name and len(path) > 1}
        values[name] = _replaced(values.get(name, getattr(config, name)), inner)
    return replace(config, **values) if values else config  # type: ignore[type-var]


def nearest_option(name: str, known: Sequence[str]) -> str:
    """Return ``" (did you mean X?)"`` or an empty string; an option of a group with that name comes first.

    >>> nearest_option("epochs", ["rate", "ppo.epochs"])
    ' (did you mean ppo.epochs?)'
    """

    def last(text: str) -> str:
        return text.removeprefix("--").replace("-", "_").rpartition(".")[2]

    same = [other for other in known if last(other) == last(name)]
    return f" (did you mean {same[0]}?)" if same else nearest(name, known)


def convert(hint: Any, value: Any, name: str) -> Any:
    """Convert a value to the type of an option; nothing is rounded. Errors start with ``name``.

    Text is parsed: ``1e6`` is an integer where one is expected, ``64,64`` a tuple, ``none`` None. A whole
    float becomes an integer, and an integer a float. Booleans are not numbers.

    >>> convert(int, "1e6", "total_steps"), convert(float, 2, "max_kl"), convert(int | None, "none", "seed")
    (1000000, 2.0, None)
    """
    is_union = isinstance(hint, UnionType) or get_origin(hint) is Union
    # None first, because the text "none" would be a valid str.
    choices = sorted(get_args(hint), key=lambda kind: kind is not NoneType) if is_union else [hint]
    for choice in choices:
        result = _convert_one(choice, value, name)
        if result is not _INVALID:
            return result
    expected = " or ".join(map(_describe, choices))
    literals = [str(item) for choice in choices if get_origin(choice) is Literal for item in get_args(choice)]
    hint_text = nearest(value, literals) if isinstance(value, str) else ""
    raise InputError(f"{name} must be {expected}, got {value!r}{hint_text}.")


_INVALID = object()
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _convert_one(hint: Any, value: Any, name: str) -> Any:
    origin = get_origin(hint)
    text = value.casefold() if isinstance(value, str) else None
    if hint is NoneType:
        return None if value is None or text == "none" else _INVALID
    if hint is Any or hint is object:
        return value
    if origin is Literal:
        return value if value in get_args(hint) else _INVALID
    if hint is bool and text is not None:
        return _BOOLEANS.get(text, _INVALID)
    if hint in (int, float):
        return _convert_number(hint, value)
    if origin is tuple:
        items = [word for word in value.split(",") if word.strip()] if text is not None else value
        if not isinstance(items, list | tuple):
            return _INVALID
        return tuple(convert(get_args(hint)[0], item, name) for item in items)
    if dict in (hint, origin) or origin is Mapping:
        return _convert_table(value, name)
    return value if isinstance(hint, type) and isinstance(value, hint) else _INVALID


def _convert_number(kind: type, value: Any) -> Any:
    if isinstance(value, bool) or value == "":
        return _INVALID
    try:
        if isinstance(value, str):
            text = value.strip().replace("_", "")
            value = int(text) if text.lstrip("+-").isdigit() else float(text)
        number = kind(value)
        return number if number == value or (kind is float and math.isnan(number)) else _INVALID
    except (TypeError, ValueError, OverflowError):
        return _INVALID


def _convert_table(value: Any, name: str) -> Any:
    """Return a dict from a mapping, or from ``KEY=VALUE`` words whose values are JSON or text."""
    if isinstance(value, Mapping):
        return dict(value)
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        return _INVALID
    table = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key:
            raise InputError(f"{name} must be KEY=VALUE, got {word!r}.")
        try:
            table[key] = json.loads(text)
        except json.JSONDecodeError:
            table[key] = text
    return table


def _describe(hint: Any) -> str:
    origin = get_origin(hint)
    if origin is Literal:
        return "one of " + ", ".join(map(str, get_args(hint)))
    if origin is tuple:
        return "a list of integers such as 64,64" if int in get_args(hint) else "a list of numbers such as 4,12"
    if origin is not None or hint is dict:
        return "a table of names and values"
    names = {int: "an integer", float: "a number", str: "text", bool: "true or false", NoneType: "none"}
    return names.get(hint, getattr(hint, "__name__", str(hint)))


def to_json(value: Any) -> Any:
    """Return a configuration or value as JSON types: flat groups are merged, infinite floats become text."""
    if _is_config(value):
        table: dict[str, Any] = {}
        for item in fields(value):
            inner = to_json(getattr(value, item.name))
            table |= inner if item.metadata.get("flat") else {item.name: inner}
        return table
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def load_file(file: str | Path) -> dict[str, Any]:
    """Return the content of a TOML file, or of the ``config.json`` of a run; the file may be a pipe."""
    is_json = Path(file).suffix == ".json"
    limit = _MAX_JSON_BYTES if is_json else _MAX_TOML_BYTES
    try:
        with open(file, "rb") as stream:
            content = stream.read(limit + 1)
        if len(content) > limit:
            raise ValueError(f"it has more than {limit >> 10} KiB")
        text = content.decode("utf-8-sig")
        found: dict[str, Any] = json.loads(text) if is_json else tomllib.loads(text)
        if is_json and (too_deep(found) or not isinstance(found["config"], dict)):
            raise ValueError
        return found
    except OSError as error:
        raise InputError(f"Cannot read {file}: {error.strerror}.") from error
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        kind = "the config.json of a run" if is_json else f"valid TOML: {error}"
        raise InputError(f"{file} is not {kind}.") from error


def too_deep(value: Any, limit: int = 20) -> bool:
    """Return whether tables and lists are nested deeper than any that this package writes."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return limit < 0 or any(too_deep(item, limit - 1) for item in items)


def import_object(text: str, what: str, others: Iterable[str] = ()) -> Any:
    """Import the object ``module:name``. ``what`` is the subject of errors, ``others`` are valid names."""
    module_name, _, name = text.partition(":")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # last, so that no file there takes the place of an installed module
    try:
        found: Any = import_module(module_name)
    except ImportError as error:
        hint = nearest(module_name, others)
        raise InputError(
            f"{what} {text!r} cannot be imported: {error}{hint}; the module must be on the import path."
        ) from error
    for part in name.split("."):
        if not hasattr(found, part):
            hint = nearest(part, dir(found))
            raise InputError(f"{what} {text!r} does not exist: {module_name} has no {part!r}{hint}.")
        found = getattr(found, part)
    return found


def object_name(value: Any) -> str:
    """Return ``module:name`` of a class, a function, or the class of an instance."""
    kind: Any = value if hasattr(value, "__qualname__") else type(value)
    return f"{kind.__module__}:{kind.__qualname__}"


def _is_config(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type)
