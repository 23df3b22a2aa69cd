"""Settings of a run as reports use them, read from the content of ``config.json`` as plain data.

``config["algorithm"]`` holds the settings of the algorithm, with a nested table for each group of options.
"""

import json
import re
from pathlib import Path
from typing import Any

from steingate.errors import RunError
from steingate.runs import WITHOUT_EFFECT
from steingate.settings import too_deep

# Settings that change neither the policy nor a logged number.
NO_EFFECT = ("seed", *WITHOUT_EFFECT)
MAX = 1e300  # of a number in a record
_KINDS = {"algo": str, "env": str, "seed": int, "total_steps": int, "steps_per_epoch": int, "cost_limit": int | float}
_LOWEST = {"cost_limit": 0, "steps_per_epoch": 1}


def check_record(path: Path, record: dict[str, Any]) -> None:
    """Raise a ``RunError`` that names a missing or invalid entry of ``config.json``."""
    file, config = path / "config.json", record.get("config")
    if too_deep(record):
        raise RunError(f"{file} is damaged: its tables are nested too deeply.")
    if not isinstance(config, dict):
        raise RunError(f"{file} is damaged: it has no configuration.")
    for name, kind in _KINDS.items():
        value = config.get(name)
        if isinstance(value, bool) or not isinstance(value, kind):
            raise RunError(f"{file} is damaged: {name} is {value!r}.")
        if isinstance(value, int | float) and not _LOWEST.get(name, -MAX) <= value < MAX:
            raise RunError(f"{file} is damaged: {name} is out of range.")


def algorithm_settings(config: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the algorithm."""
    table = config.get("algorithm")
    return table if isinstance(table, dict) else {}


def settings(config: dict[str, Any]) -> dict[str, Any]:
    """Return all settings that affect the result of a run, except the seed; groups as ``group.name``.

    >>> settings({"algo": "cpo", "seed": 3, "algorithm": {"max_kl": 0.1, "ppo": {"epochs": 40}}})
    {'algo': 'cpo', 'max_kl': 0.1, 'ppo.epochs': 40}
    """
    result = _flatten({key: value for key, value in config.items() if key not in (*NO_EFFECT, "algorithm")})
    if "env" in result:
        result["env"] = str(result["env"]).removeprefix("steingate/")
    return result | _flatten(algorithm_settings(config))


def _flatten(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a table without nested tables, whose names become ``group.name``, as in TOML."""
    result: dict[str, Any] = {}
    for key, value in table.items():
        plain = re.fullmatch(r"[A-Za-z0-9_-]+", key)
        name = prefix + (key if plain else json.dumps(key, ensure_ascii=False))
        result |= _flatten(value, f"{name}.") if isinstance(value, dict) else {name: value}
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
    options = _flatten(run | algorithm_settings(config)).items()
    return "".join(f"{key} = {_toml(value)}\n" for key, value in options if value is not None)


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value if isinstance(value, bool | int) else str(value), ensure_ascii=False)
