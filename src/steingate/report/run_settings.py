"""Settings of a run as reports use them, read from the content of ``config.json``.

``config["recipe"]`` holds the settings of the algorithm, with a nested table for each group of options.
"""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from steingate.errors import RunError

# Settings that change neither the policy nor a logged number.
NO_EFFECT = ("seed", "out", "threads", "workers", "overlap", "checkpoint_every", "wandb", "certify")

_MAX = 1e300
_TYPES: dict[str, tuple[type, ...]] = {
    "algo": (str,),
    "env": (str,),
    "seed": (int,),
    "cost_limit": (int, float),
    "total_steps": (int,),
    "steps_per_epoch": (int,),
}


class PlotStyle(NamedTuple):
    """Position of an algorithm in tables and its color; None where ``config.json`` has none."""

    order: float | None
    color: str | None


def check_record(path: Path, record: dict[str, Any]) -> None:
    """Raise a ``RunError`` that names a missing or invalid entry of ``config.json``."""
    file = path / "config.json"
    config = record.get("config")
    if not isinstance(config, dict):
        raise RunError(f"{file} is damaged: it has no configuration.")
    for name, types in _TYPES.items():
        value = config.get(name)
        if isinstance(value, bool) or not isinstance(value, types):
            raise RunError(f"{file} is damaged: {name} is {value!r}.")
    numbers = [config[name] for name in ("seed", "cost_limit", "total_steps", "steps_per_epoch")]
    if not all(-_MAX < number < _MAX for number in numbers):
        raise RunError(f"{file} is damaged: a number is out of any range.")
    if config["cost_limit"] <= 0 or config["steps_per_epoch"] < 1:
        raise RunError(f"{file} is damaged: cost_limit and steps_per_epoch must be positive.")


def plot_style(record: dict[str, Any]) -> PlotStyle:
    """Return the position and color of the algorithm; invalid values count as missing."""
    style = record.get("plot_style")
    if not isinstance(style, dict):
        return PlotStyle(None, None)
    order, color = style.get("order"), style.get("color")
    if isinstance(order, bool) or not isinstance(order, int | float) or order != order:
        order = None
    if not isinstance(color, str) or not re.fullmatch("#[0-9a-fA-F]{6}", color):
        color = None
    return PlotStyle(None if order is None else float(order), None if color is None else color.lower())


def find_setting(config: dict[str, Any], name: str, default: Any = None) -> Any:
    """Return a setting of the algorithm or of the run by name.

    Examples
    --------
    >>> find_setting({"seed": 3, "recipe": {"certificate": {"budget": 0.2}}}, "certificate.budget")
    0.2
    """
    for table in (config.get("recipe"), config):
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
    >>> settings({"algo": "cpo", "seed": 3, "recipe": {"max_kl": 0.1, "ppo": {"epochs": 40}}})
    {'algo': 'cpo', 'max_kl': 0.1, 'ppo.epochs': 40}
    """
    result = _flat({key: value for key, value in config.items() if key not in (*NO_EFFECT, "recipe")})
    if "env" in result:
        result["env"] = str(result["env"]).removeprefix("steingate/")
    return result | algorithm_settings(config)


def algorithm_settings(config: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the algorithm; groups as ``group.name``."""
    table = config.get("recipe")
    return _flat(table) if isinstance(table, dict) else {}


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
    tables = {key: value for key, value in config.items() if key != "recipe"}
    table = config.get("recipe")
    return "\n".join(_toml_lines(tables | (table if isinstance(table, dict) else {}), "")).strip() + "\n"


_MISSING = object()


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
        f"{_toml_key(key)} = {_toml_value(value)}"
        for key, value in table.items()
        if value is not None and not isinstance(value, dict)
    ]
    if name and lines:
        lines = ["", f"[{name}]", *lines]
    for key, value in table.items():
        if isinstance(value, dict):
            lines += _toml_lines(value, f"{name}.{_toml_key(key)}" if name else _toml_key(key))
    return lines


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    return json.dumps(str(value), ensure_ascii=True)
