"""How to get a run again: its configuration as a TOML file that ``steingate train`` reads."""

import json
import re
from typing import Any

from steingate.report.loading import Run


def run_toml(run: Run) -> str:
    """Return the configuration as a TOML file for ``steingate train --config``."""
    plain = {key: value for key, value in run.config.items() if not isinstance(value, dict)}
    tables = {key: value for key, value in run.config.items() if isinstance(value, dict) and value}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in plain.items() if value is not None]
    for name, table in tables.items():
        lines += ["", f"[{_key(name)}]"]
        lines += [f"{_key(key)} = {_value(value)}" for key, value in table.items() if value is not None]
    return "\n".join(lines) + "\n"


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
