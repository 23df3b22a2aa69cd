"""Data of the monitors on a live page: content of their state files as plain JSON types."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from steingate.errors import SteingateError
from steingate.monitoring.monitor import Monitor
from steingate.monitoring.monitors import by_name, restore_monitor
from steingate.monitoring.state import read_state
from steingate.report.monitor_figure import bound_trace

SUFFIX = ".monitor.json"
_SHOWN = 200
_DEPTH = 3


def monitor_files(roots: Sequence[str | Path]) -> list[Path]:
    """Return the ``.monitor.json`` files at most three folders below the roots, without symbolic links."""
    found = {Path(root) for root in roots if str(root).endswith(SUFFIX)}
    for root in map(Path, roots):
        for depth in range(_DEPTH + 1):
            for path in root.glob("*/" * depth + f"*{SUFFIX}"):
                if path.resolve().is_relative_to(root.resolve()):
                    found.add(path)
    return sorted(path for path in found if path.is_file() and not path.is_symlink())


def monitors_data(roots: Sequence[str | Path]) -> list[dict[str, Any]]:
    """Return one entry per monitored cost of every state file in the given folders and files.

    An entry has ``name`` and ``path`` of the file, the numbers of ``Monitor.to_dict``, ``state``
    (``unsafe``, ``drift``, ``certified`` or ``undecided``) and ``trace``, a list of (episodes, violation
    rate, bound). A file that cannot be read has ``problem`` instead.
    """
    return [entry for path in monitor_files(roots) for entry in _file_entries(path)]


def _file_entries(path: Path) -> tuple[dict[str, Any], ...]:
    try:
        status = path.stat()
    except OSError:  # deleted meanwhile
        return ()
    return _read(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=256)
def _read(path: Path, changed: int, size: int) -> tuple[dict[str, Any], ...]:
    """Return the entries of a file. Cached, because a live page reads the files every few seconds."""
    name = path.name.removesuffix(SUFFIX)
    try:
        return tuple(
            {"name": f"{name}: {cost}" if cost else name, "path": str(path), **_entry(monitor)}
            for cost, monitor in by_name(restore_monitor(read_state(path)), "").items()
        )
    except SteingateError as error:
        return ({"name": name, "path": str(path), "problem": str(error)},)


def _entry(monitor: Monitor) -> dict[str, Any]:
    trace = bound_trace(monitor)[-_SHOWN:]
    points = [[n, float(f"{rate:.4g}"), float(f"{bound:.4g}")] for n, rate, bound in trace]
    return {**monitor.to_dict(), "state": monitor.status, "trace": points}
