"""Recordings of the original tasks: npz files read and checked.

Four kinds exist. ``nav``: states and steps of navigation episodes. ``vel``: the same of velocity tasks.
``layouts``: layouts after reset by seed. ``stats``: results of whole episodes under fixed policies.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from steingate.errors import InputError

Kind = Literal["nav", "vel", "layouts", "stats"]
Arrays = dict[str, npt.NDArray[Any]]

_ROWS = ("row_time", "row_qpos", "row_qvel", "row_obs", "row_ncon")
_STEPS = ("step_action", "step_reward", "step_cost", "step_terminated", "step_truncated")
_NEEDED: Final[dict[str, tuple[str, ...]]] = {
    "nav": (
        *("seed", "policy", "ep_len", "agent_xy0", "agent_rot0", "obj_pos0", "meta"),
        *_ROWS,
        *(*_STEPS, "step_goal_met", "step_n_agent_contacts"),
    ),
    "vel": ("seed", "policy", "ep_len", "meta", *_ROWS, "row_ref_xy", *_STEPS),
    "layouts": ("seeds", "meta"),
    "stats": ("seed",),
}
STATISTICS: Final = ("return", "cost", "goals", "distance")


@dataclass(frozen=True)
class Recording:
    """One file.

    Attributes
    ----------
    name : file name without folder and suffix
    kind : which of the four schemas it has
    env_id : the task; empty for layouts, which hold several
    arrays : everything in the file but ``meta``
    meta : the decoded ``meta`` entry, if there is one
    """

    name: str
    kind: Kind
    env_id: str
    arrays: Arrays
    meta: dict[str, Any]

    def __getitem__(self, key: str) -> npt.NDArray[Any]:
        """Return an array by name."""
        return self.arrays[key]


def read_recording(path: str | Path) -> Recording:
    """Return the recording in a file.

    Parameters
    ----------
    path : str or Path
        An npz file; ``stats`` files carry their task's identifier in the name, ``stats_<id>.npz``.

    Raises
    ------
    InputError
        If the file cannot be read or lacks an array of its schema.
    """
    path = Path(path)
    try:
        with path.open("rb") as handle:
            loaded = np.load(handle, allow_pickle=False)
            arrays = dict(loaded) if isinstance(loaded, np.lib.npyio.NpzFile) else {}
    except FileNotFoundError:
        raise InputError(f"There is no file {path}: give the npz file of a recording.") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} is not a readable npz file ({error}).") from None
    kind = _kind(path, arrays)
    missing = [name for name in _NEEDED[kind] if name not in arrays]
    if missing:
        raise InputError(f"{path} is no complete {kind} recording: the array {missing[0]!r} is missing.")
    try:
        meta = json.loads(str(arrays.pop("meta"))) if "meta" in arrays else {}
    except json.JSONDecodeError as error:
        raise InputError(f"{path} holds a meta entry that is not JSON ({error}).") from None
    env_id = path.stem.removeprefix("stats_") if kind == "stats" else str(meta.get("env_id", ""))
    if kind in ("nav", "vel"):
        _check_lengths(path, arrays)
    return Recording(path.stem, kind, env_id, arrays, meta)


def _kind(path: Path, arrays: Arrays) -> Kind:
    """Return the schema a file follows, told by the arrays only that schema has."""
    if "row_ref_xy" in arrays:
        return "vel"
    if "row_qpos" in arrays:
        return "nav"
    if "seeds" in arrays:
        return "layouts"
    if any(name.endswith("/return") for name in arrays):
        return "stats"
    raise InputError(f"{path} is no recording: it has neither rows, layouts nor episode statistics.")


def _check_lengths(path: Path, arrays: Arrays) -> None:
    """Refuse files whose rows or steps do not add up to their episodes."""
    lengths = arrays["ep_len"]
    steps = int(lengths.sum())
    for name, array in arrays.items():
        expected = steps + len(lengths) if name.startswith("row_") else steps
        if name.startswith(("row_", "step_")) and len(array) != expected:
            raise InputError(f"{path}: {name!r} has {len(array)} entries, its episodes need {expected}.")


@dataclass(frozen=True)
class Index:
    """Where things are in a nav or vel recording, one entry per step.

    Attributes
    ----------
    episode : episode of the step
    number : number of the step in its episode, from 1
    before, after : rows of the states before and after it
    starts : row of the first state of every episode
    """

    episode: npt.NDArray[np.int64]
    number: npt.NDArray[np.int64]
    before: npt.NDArray[np.int64]
    after: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]


def step_index(recording: Recording) -> Index:
    """Return the index of a nav or vel recording.

    Parameters
    ----------
    recording : Recording
        The file.
    """
    lengths = recording["ep_len"].astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths + 1)[:-1]]).astype(np.int64)
    episode = np.repeat(np.arange(len(lengths)), lengths)
    number = np.concatenate([np.arange(1, length + 1) for length in lengths])
    after = starts[episode] + number
    return Index(episode, number, after - 1, after, starts)
