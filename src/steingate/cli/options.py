"""Command-line options for the settings of a record: names, help and checks come from its fields."""

import argparse
from collections.abc import Collection
from dataclasses import fields, is_dataclass
from typing import Any, Literal, get_args, get_origin

from steingate.settings import field_types


def add_options(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup,
    record: object,
    prefix: str = "",
    only: Collection[str] | None = None,
) -> None:
    """Add one option per setting of a record, absent from the namespace unless given, as text.

    A field's help is ``metadata["help"]``. A bool gets ``--name`` and ``--no-name``; a table takes
    ``key=value`` as often as needed; the fields of a part are ``--part.field``. ``only`` names
    the fields that are wanted, all of them by default.
    """
    hints = field_types(type(record))
    for item in fields(record):  # type: ignore[arg-type]
        if only is not None and item.name not in only:
            continue
        value = getattr(record, item.name)
        if is_dataclass(value) and not isinstance(value, type):
            add_options(parser, value, f"{prefix}{item.name}.")
            continue
        hint, name = _plain(hints[item.name]), prefix + item.name
        text = f"{item.metadata.get('help', '')} (default: {_shown(value)})".strip().replace("%", "%%")
        settings: dict[str, Any] = {"default": argparse.SUPPRESS, "help": text, "dest": name}
        option = "--" + name.replace("_", "-")
        if hint is bool:
            parser.add_argument(option, action=argparse.BooleanOptionalAction, **settings)
        elif isinstance(value, dict) or get_origin(hint) is dict:
            parser.add_argument(option, action="append", metavar="KEY=VALUE", **settings)
        else:
            parser.add_argument(option, metavar=_metavar(hint), **settings)


def _plain(hint: Any) -> Any:
    """Return the type without an optional None."""
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    return kinds[0] if get_origin(hint) is not Literal and type(None) in get_args(hint) else hint


def _metavar(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return "{" + ",".join(map(str, get_args(hint))) + "}"
    return {int: "N", float: "X", str: "TEXT"}.get(hint, "N,N")


def _shown(default: Any) -> str:
    if isinstance(default, tuple):
        return ",".join(map(str, default)) or "nothing"
    if isinstance(default, bool):
        return "yes" if default else "no"
    return "none" if default in (None, {}) else str(default)
