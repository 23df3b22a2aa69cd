"""The state of a monitor as JSON types, and as a file with a checksum that is replaced atomically."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from steingate.certificates.risk import Exceedance, Hinge, Power, Sigmoid
from steingate.errors import InputError, RunError
from steingate.monitoring.bets import BOLDNESS
from steingate.monitoring.drift import STRETCH
from steingate.monitoring.monitor import Monitor
from steingate.monitoring.wealth import Evidence
from steingate.storage.files import read_regular, replace_file

FORMAT = "steingate-monitor-1"
MAX_BYTES = 16 << 20
_RISKS = {risk.__name__: risk for risk in (Exceedance, Hinge, Power, Sigmoid)}
_SETTINGS = ("limit", "budget", "delta", "baseline", "run_length", "cap")


def to_dict(monitor: Monitor) -> dict[str, Any]:
    """Return the state of a monitor as JSON types."""
    name = type(monitor.risk).__name__
    if _RISKS.get(name) is not type(monitor.risk):
        raise InputError(
            f"A monitor with the risk {monitor.risk!r} cannot be stored: use one of {', '.join(_RISKS)}."
        )
    detector = monitor.detector
    return {
        "format": FORMAT,
        "settings": {
            **{name: getattr(monitor, name) for name in _SETTINGS},
            "risk": {"name": name, **asdict(monitor.risk)},  # type: ignore[call-overload]
        },
        "episodes": monitor.episodes,
        "over": monitor.over,
        "last_over": monitor._last_over,
        "worst": monitor.worst,
        "cells": [[index, count] for index, count in enumerate(monitor.cells) if count],
        "trace": [list(point) for point in monitor.trace],
        "safe": _evidence(monitor.safe_evidence),
        "unsafe": _evidence(monitor.unsafe_evidence),
        "drift": {
            "alarm": detector.alarm,
            "alarms": list(detector.alarms),
            "sums": [value if isfinite(value) else None for value in detector.sums.tolist()],
            "over": detector.over,
            "under": detector.under,
            "pending": detector.pending,
        },
    }


def from_dict(state: Mapping[str, Any]) -> Monitor:
    """Return the monitor with this state; what cannot be one is refused with one sentence."""
    if not isinstance(state, Mapping) or state.get("format") != FORMAT:
        raise InputError("This is not the state of a monitor, or that of another version of this package.")
    try:
        settings = dict(state["settings"])
        risk = dict(settings.pop("risk"))
        if set(settings) != set(_SETTINGS):
            raise ValueError("settings")
        monitor = Monitor(**settings, risk=_RISKS[risk.pop("name")](**risk))
        _fill(monitor, state)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise InputError(f"This state of a monitor is damaged ({error}): start a new one.") from None
    return monitor


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return {"best": evidence.best, "first": evidence.first}


def _fill(monitor: Monitor, state: Mapping[str, Any]) -> None:
    """Set what episodes have left behind, after checking that it fits together."""
    monitor.episodes, monitor.over = _count(state["episodes"]), _count(state["over"])
    last = state["last_over"]
    for index, count in state["cells"]:
        monitor.cells[_count(index)] = _count(count)
    trace = [(_count(episodes), _count(over)) for episodes, over in state["trace"]]
    for episodes, over in trace:
        if episodes != monitor._traced_at:
            raise ValueError("trace")
        monitor._trace(episodes, over)
    _require(sum(monitor.cells) == monitor.episodes, "cells")
    _require(sum(monitor.cells[monitor.grid.within :]) == monitor.over, "over")
    _require((last is None) == (monitor.episodes == 0) and last in (None, True, False), "last_over")
    _require(monitor._traced_at > monitor.episodes, "trace")
    monitor._last_over = last
    monitor.worst = _number(state["worst"])
    for evidence, name in ((monitor.safe_evidence, "safe"), (monitor.unsafe_evidence, "unsafe")):
        evidence.best = _number(state[name]["best"])
        first = state[name]["first"]
        evidence.first = None if first is None else _count(first)
        _require(first is None or 1 <= first <= monitor.episodes, name)
    drift, detector = state["drift"], monitor.detector
    _require(drift["alarm"] in (True, False) and len(drift["sums"]) == len(BOLDNESS), "drift")
    detector.alarm = drift["alarm"]
    detector.alarms = [_count(number) for number in drift["alarms"]]
    detector.sums = np.array([-inf if value is None else _real(value) for value in drift["sums"]])
    detector.over, detector.under = _count(drift["over"]), _count(drift["under"])
    detector.pending = _count(drift["pending"])
    _require(detector.pending < STRETCH, "drift")


def _require(holds: bool, name: str) -> None:
    if not holds:
        raise ValueError(name)


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value


def _real(value: Any) -> float:
    if type(value) not in (int, float) or not isfinite(value):
        raise ValueError(f"{value!r} is no number")
    return float(value)


def _number(value: Any) -> float:
    if _real(value) < 0.0:
        raise ValueError(f"{value!r} is negative")
    return float(value)


def write_state(path: str | Path, state: Mapping[str, Any]) -> None:
    """Write a state (JSON types) with a checksum; a crash leaves the old file or the new one."""
    body = json.dumps(state, allow_nan=False, sort_keys=True)
    content = json.dumps({"sha256": _digest(body), "state": json.loads(body)}, sort_keys=True, indent=None)
    replace_file(Path(path), content.encode() + b"\n")


def read_state(path: str | Path) -> dict[str, Any]:
    """Return the state in a file, checked against its checksum."""
    source = Path(path)
    try:
        content = json.loads(read_regular(source, MAX_BYTES))
        state, digest = content["state"], content["sha256"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise RunError(f"{source} is not the state of a monitor, or it is damaged.") from None
    if not isinstance(state, dict) or _digest(json.dumps(state, sort_keys=True)) != digest:
        raise RunError(f"{source} is damaged: its checksum does not match; delete it to start anew.")
    return state


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
