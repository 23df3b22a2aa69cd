"""Settings of a run as reports use them, read from the content of ``config.json`` as plain data.

``config["algorithm"]`` holds the settings of the algorithm, with a nested table for each group of options.
"""

import json
import re
from math import inf
from pathlib import Path
from typing import Any

from steingate.errors import RunError
from steingate.runs import WITHOUT_EFFECT
from steingate.settings import too_deep

# Settings that change neither the policy nor a logged number.
NO_EFFECT = ("seed", *WITHOUT_EFFECT)

_TEXTS = ("algo", "env")
_INTEGERS = ("seed", "total_steps", "steps_per_epoch")
_MAX = 1e300
_MISSING = object()


def check_record(path: Path, record: dict[str, Any]) -> None:
    """Raise a ``RunError`` that names a missing or invalid entry of ``config.json``."""
    file = path / "config.json"
    if too_deep(record):
        raise RunError(f"{file} is damaged: its tables are nested too deeply.")
    config = record.get("config")
    if not isinstance(config, dict):
        raise RunError(f"{file} is damaged: it has no configuration.")
    for name in (*_TEXTS, *_INTEGERS, "cost_limit"):
        value = config.get(name)
        kind = str if name in _TEXTS else int if name in _INTEGERS else int | float
        if isinstance(value, bool) or not isinstance(value, kind):
            raise RunError(f"{file} is damaged: {name} is {value!r}.")
        if isinstance(value, int | float) and not -_MAX < value < _MAX:
            raise RunError(f"{file} is damaged: {name} is out of range.")
    if config["cost_limit"] < 0 or config["steps_per_epoch"] < 1:
        raise RunError(f"{file} is damaged: cost_limit or steps_per_epoch is out of range.")


def plot_style(record: dict[str, Any]) -> tuple[float, str | None]:
    """Return the position of the algorithm in tables (infinite if unknown) and its color, if it has one."""
    style = record.get("plot_style")
    style = style if isinstance(style, dict) else {}
    order, color = style.get("order"), style.get("color")
    if isinstance(order, bool) or not isinstance(order, int | float) or not -_MAX < order < _MAX:
        order = inf
    if not isinstance(color, str) or not re.fullmatch("#[0-9a-fA-F]{6}", color):
        color = None
    return float(order), color and color.lower()


def find_setting(config: dict[str, Any], name: str, default: Any = None) -> Any:
    """Return a setting of the algorithm or of the run by name.

    Examples
    --------
    >>> find_setting({"seed": 3, "algorithm": {"certificate": {"budget": 0.2}}}, "certificate.budget")
    0.2
    """
    for table in (_table(config), config):
        value = table
        for key in name.split("."):
            value = value.get(key, _MISSING) if isinstance(value, dict) else _MISSING
        if value is not _MISSING:
            return value
    return default


def settings(config: dict[str, Any]) -> dict[str, Any]:
    """Return all settings that affect the result of a run, except the seed; groups as ``group.name``.

    Examples
    --------
    >>> settings({"algo": "cpo", "seed": 3, "algorithm": {"max_kl": 0.1, "ppo": {"epochs": 40}}})
    {'algo': 'cpo', 'max_kl': 0.1, 'ppo.epochs': 40}
    """
    result = flatten({key: value for key, value in config.items() if key not in (*NO_EFFECT, "algorithm")})
    if "env" in result:
        result["env"] = str(result["env"]).removeprefix("steingate/")
    return result | flatten(_table(config))


def flatten(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a table without nested tables, whose names become ``group.name``, as in TOML."""
    result: dict[str, Any] = {}
    for key, value in table.items():
        plain = re.fullmatch(r"[A-Za-z0-9_-]+", key)
        name = prefix + (key if plain else json.dumps(key, ensure_ascii=False))
        result |= flatten(value, f"{name}.") if isinstance(value, dict) else {name: value}
    return result


def canonical(value: Any) -> str:
    """Return a text that is the same for equal values (2 and 2.0 are equal) and differs otherwise."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(canonical, value))}]"
    if isinstance(value, dict):
        items = sorted((json.dumps(str(key)), canonical(item)) for key, item in value.items())
        return f"{{{', '.join(f'{key}: {item}' for key, item in items)}}}"
    return json.dumps(value, default=repr)


def to_toml(config: dict[str, Any]) -> str:
    """Return a configuration as a TOML file for ``steingate train --config``."""
    run = {key: value for key, value in config.items() if key != "algorithm"}
    options = flatten(run | _table(config)).items()
    return "".join(f"{key} = {_toml(value)}\n" for key, value in options if value is not None)


def _table(config: dict[str, Any]) -> dict[str, Any]:
    table = config.get("algorithm")
    return table if isinstance(table, dict) else {}


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value if isinstance(value, bool | int) else str(value), ensure_ascii=False)
