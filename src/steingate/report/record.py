"""``config.json`` as reports read it: settings, the method's place and color, and a file to repeat the run.

There are two forms. Today the settings of the method stand in a table of their own, ``config["recipe"]``,
with a nested table for each of its parts. Older folders have them flat in ``config``, with further ones in
``config["algo_options"]``. Names are the same in both, and the functions below take either.
"""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from steingate.errors import RunError

# They change neither the policy nor a number of the log.
NO_EFFECT = ("seed", "out", "threads", "workers", "overlap", "checkpoint_every", "wandb", "certify")

_OF_METHOD = ("recipe", "algo_options")
_RENAMED = {"discount": "budget_discount"}  # of algo_options, to its name in recipes
_OLDER_NOTE = "# From an earlier version: leave out what training says the method does not have.\n"
_MOST = 1e300
_KINDS: dict[str, tuple[type, ...]] = {
    "algo": (str,),
    "env": (str,),
    "seed": (int,),
    "cost_limit": (int, float),
    "total_steps": (int,),
    "steps_per_epoch": (int,),
}


class Look(NamedTuple):
    """A method's place among others and its color; ``None`` where a folder does not say."""

    order: float | None
    color: str | None


def check_record(path: Path, record: dict[str, Any]) -> None:
    """Raise a ``RunError`` that names what a report needs and the record does not have."""
    config = record.get("config")
    if not isinstance(config, dict):
        raise RunError(f"{path} is damaged: it has no configuration.")
    for name, kinds in _KINDS.items():
        value = config.get(name)
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise RunError(f"{path} is damaged: {name} is {value!r}.")
    numbers = [config[name] for name in ("seed", "cost_limit", "total_steps", "steps_per_epoch")]
    if not all(-_MOST < number < _MOST for number in numbers):
        raise RunError(f"{path} is damaged: a number is out of any range.")
    if config["cost_limit"] <= 0 or config["steps_per_epoch"] < 1:
        raise RunError(f"{path} is damaged: cost_limit and steps_per_epoch must be positive.")


def look_of(record: dict[str, Any]) -> Look:
    """Return the method's place and color; what is not a number or no color counts as not said."""
    look = record.get("look")
    if not isinstance(look, dict):
        return Look(None, None)
    order, color = look.get("order"), look.get("color")
    if isinstance(order, bool) or not isinstance(order, int | float) or order != order:
        order = None
    if not isinstance(color, str) or not re.fullmatch("#[0-9a-fA-F]{6}", color):
        color = None
    return Look(None if order is None else float(order), None if color is None else color.lower())


def find_setting(config: dict[str, Any], name: str, default: Any = None) -> Any:
    """Return a setting by its name, ``"variant"`` or ``"certificate.budget"``, from the recipe or the run.

    Examples
    --------
    >>> find_setting({"recipe": {"certificate": {"budget": 0.2}}}, "certificate.budget")
    0.2
    >>> find_setting({"variant": "published", "algo_options": {"clipped.passes": 40}}, "clipped.passes")
    40
    """
    for table in (config.get("recipe"), config, config.get("algo_options")):
        found, value = _look_up(table, name)
        if found:
            return value
    return default


def settings(config: dict[str, Any]) -> dict[str, Any]:
    """Return all that decides a run's results but its seed, by name, parts of a method as ``part.name``.

    Examples
    --------
    >>> settings({"algo": "cpo", "seed": 3, "recipe": {"max_kl": 0.1, "clipped": {"passes": 40}}})
    {'algo': 'cpo', 'first_std': 1.0, 'places': False, 'inward': 0.0, 'max_kl': 0.1, 'clipped.passes': 40}
    """
    result = _flat({key: value for key, value in config.items() if key not in (*NO_EFFECT, *_OF_METHOD)})
    if "env" in result:
        result["env"] = str(result["env"]).removeprefix("steingate/")
    return result | method_settings(config)


def method_settings(config: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that the configuration gives as the method's own, by name."""
    recipe, options = config.get("recipe"), config.get("algo_options")
    older = _flat(options) if isinstance(options, dict) else {}
    newer = _flat(recipe) if isinstance(recipe, dict) else {}
    return {_RENAMED.get(name, name): value for name, value in older.items()} | newer


def canonical(value: Any) -> str:
    """Return the same text for equal values, 2 and 2.0 among them, and other text for any other."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(canonical, value))}]"
    if isinstance(value, dict):
        items = sorted((json.dumps(str(key)), canonical(item)) for key, item in value.items())
        return f"{{{', '.join(f'{key}: {item}' for key, item in items)}}}"
    return json.dumps(value, default=repr)


def to_toml(config: dict[str, Any]) -> str:
    """Return a configuration as a TOML file for ``steingate train --config``.

    Older folders name settings of other methods too, which training refuses by name; the file says so.
    """
    tables = dict(config)
    recipe, options = tables.pop("recipe", None), tables.pop("algo_options", None)
    for name, value in (options if isinstance(options, dict) else {}).items():
        *parts, last = str(_RENAMED.get(name, name)).split(".")
        table = tables
        for part in parts:
            table = table.setdefault(part, {})
        table[last] = value
    note = "" if recipe is not None else _OLDER_NOTE
    own = recipe if isinstance(recipe, dict) else {}
    return note + "\n".join(_toml_lines(tables | own, "")).strip() + "\n"


def _look_up(table: Any, name: str) -> tuple[bool, Any]:
    """Return whether a table has a name, and its value; tables may be nested, or have dots in their names."""
    if not isinstance(table, dict):
        return False, None
    if name in table:
        return True, table[name]
    first, _, rest = name.partition(".")
    return _look_up(table.get(first), rest) if rest else (False, None)


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            result |= _flat(value, f"{prefix}{key}.")
        else:
            result[f"{prefix}{key}"] = value
    return result


def _toml_lines(table: dict[str, Any], name: str) -> list[str]:
    lines = [
        f"{_key(key)} = {_value(value)}"
        for key, value in table.items()
        if value is not None and not isinstance(value, dict)
    ]
    if name and lines:
        lines = ["", f"[{name}]", *lines]
    for key, value in table.items():
        if isinstance(value, dict):
            lines += _toml_lines(value, f"{name}.{_key(key)}" if name else _key(key))
    return lines


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + " }"
    return json.dumps(str(value), ensure_ascii=True)
