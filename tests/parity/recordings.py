"""Recordings of the original tasks (npz files), and the criteria that compare arrays.

Four kinds of files exist. ``nav``: states and steps of navigation episodes. ``vel``: the same of velocity tasks.
``layouts``: layouts after reset by seed. ``stats``: statistics of whole episodes under fixed policies.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

STATISTICS = ("return", "cost", "goals", "distance")


@dataclass(frozen=True)
class Recording:
    """One file.

    ``row_*`` arrays hold the states of all episodes, one more per episode than ``step_*`` arrays hold steps.
    """

    kind: str
    env_ids: list[str]  # layouts: several
    arrays: dict[str, Array]
    meta: dict[str, Any]

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    @cached_property
    def first_rows(self) -> Array:
        """Row of the first state of every episode."""
        return np.cumsum(self["ep_len"].astype(np.int64) + 1) - self["ep_len"] - 1

    @cached_property
    def first_steps(self) -> Array:
        """Index of the first step of every episode."""
        return np.cumsum(self["ep_len"].astype(np.int64)) - self["ep_len"]

    @cached_property
    def episode(self) -> Array:
        """Episode of every step."""
        return np.repeat(np.arange(len(self["ep_len"])), self["ep_len"])

    @cached_property
    def number(self) -> Array:
        """Number of every step in its episode, from 1."""
        return np.arange(len(self.episode)) - self.first_steps[self.episode] + 1

    @cached_property
    def after(self) -> Array:
        """Row of the state after every step; the state before it is one row earlier."""
        return self.first_rows[self.episode] + self.number


def load_recording(path: str | Path) -> Recording:
    """Return the recording in a file; ``stats`` files have the task in their name, ``stats_<id>.npz``."""
    path = Path(path)
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    markers = {"vel": "row_ref_xy", "nav": "row_qpos", "layouts": "seeds", "stats": "uniform/return"}
    kind = next((kind for kind, marker in markers.items() if marker in arrays), None)
    if kind is None:
        raise ValueError(f"{path} is no recording: it has neither states, layouts nor episode statistics.")
    meta = json.loads(str(arrays.pop("meta"))) if "meta" in arrays else {}
    stats_id = path.stem.removeprefix("stats_")
    env_ids = [stats_id] if kind == "stats" else list(meta) if kind == "layouts" else [meta["env_id"]]
    return Recording(kind, env_ids, arrays, meta)


def at_most(criterion: str, errors: npt.ArrayLike, limit: float, fraction: float = 1.0) -> list[str]:
    """Return a failure unless a fraction of the errors is at most the limit."""
    errors = np.asarray(errors, dtype=np.float64).ravel()
    if errors.size == 0:
        return []
    figure = float(np.quantile(np.nan_to_num(errors, nan=np.inf), fraction, method="inverted_cdf"))
    return [] if figure <= limit else [f"{criterion}: {100 * fraction:g} % of {errors.size}: {figure:.2e} > {limit:g}"]


def equal(criterion: str, ours: npt.ArrayLike, theirs: npt.ArrayLike) -> list[str]:
    """Return a failure if any entries differ."""
    differ = np.asarray(ours) != np.asarray(theirs)
    return [f"{criterion}: {differ.sum()} of {differ.size} differ"] if differ.any() else []
