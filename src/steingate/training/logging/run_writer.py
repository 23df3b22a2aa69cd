"""What training writes into a run folder: the record of the configuration, both tables, the checkpoints."""

import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from math import inf, isfinite
from typing import Any

from steingate.envs.names import folder_of
from steingate.errors import RunError
from steingate.gates.account import Account
from steingate.gates.sight import Sight
from steingate.policies.action_distribution import stored_action
from steingate.runs import (
    RunFolder,
    Table,
    certified_checkpoint,
    read_config,
    read_progress,
    write_checkpoint,
    write_config,
    write_tree,
)
from steingate.storage.checkpoint import checkpoint_files, checkpoint_path
from steingate.storage.files import read_regular
from steingate.storage.tables import EPISODE_COLUMNS
from steingate.training.candidates import Candidate, Trial
from steingate.training.config import RunConfig, deciding
from steingate.training.environment import TrainerEnv
from steingate.training.state import TrainState, plain, to_tree

_PACKAGES = ("steingate", "numpy", "scipy", "jax", "jaxlib", "numba", "gymnasium", "mujoco")


def record_config(run: RunFolder, cfg: RunConfig, learner: dict[str, str], notes: Sequence[str] = ()) -> None:
    """Write ``config.json``: every field, resolved, what the run was made with, and what to know about it.

    A run that never finished an epoch makes way for this one.
    """
    if run.config.exists() and _has_results(run):
        raise RunError(
            f"{run.path} already holds a run: go on with `steingate resume {run.path}`, "
            "or choose another --out."
        )
    for path in (*(path for _, path in checkpoint_files(run.checkpoints)), run.certified, run.certification):
        path.unlink(missing_ok=True)
    place = cfg.algo.about.order
    record = {
        "config": cfg.to_dict(),
        "env_folder": folder_of(cfg.env),
        "identity": cfg.identity,
        "look": {"order": place if isfinite(place) else None, "color": cfg.algo.about.color},
        "versions": _versions(),
        "machine": {"platform": platform.platform(), "cores": os.cpu_count(), "byte_order": sys.byteorder},
        "learner": learner,
        "notes": list(notes),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    write_config(run, record)


def _has_results(run: RunFolder) -> bool:
    """Return whether a run has finished an epoch, by its table or by its checkpoints."""
    rows = read_regular(run.progress).count(b"\n") - 1 if run.progress.exists() else 0
    return rows > 0 or any(epoch > 0 for epoch, _ in checkpoint_files(run.checkpoints))


def changed_versions(run: RunFolder) -> list[str]:
    """Return a sentence for each package that is not the one the run was started with."""
    before = read_config(run.path).get("versions")
    now = _versions()
    return [
        f"This run was started with {name} {old} and goes on with {now[name]}: results may differ."
        for name, old in (before.items() if isinstance(before, dict) else ())
        if name in now and now[name] != old
    ]


class RunWriter:
    """The tables of one run and the way to its checkpoints.

    Parameters
    ----------
    run
        The folder.
    envs
        Their action space is what the policy's outputs are mapped to; stored with each checkpoint, so that a
        policy can be used without its environment.
    normalize
        Whether observations are normalized; stored too.
    account
        What the environments add to an observation; stored too.
    """

    def __init__(
        self, run: RunFolder, envs: TrainerEnv, normalize: bool, account: Account | None = None
    ) -> None:
        self.run = run
        self.progress = Table(run.progress, time_prefixes=("Time/",))
        self.episodes = Table(run.episodes, EPISODE_COLUMNS)
        self._account = account
        self._marks: dict[int, dict[str, Any]] = {}  # of both tables, by the epochs that they hold
        record = read_config(run.path)
        sight: Sight | None = getattr(envs, "sight", None)
        self._extras: dict[str, Any] = {
            "action": stored_action(envs.single_action_space),
            "normalize": normalize,
            "sight": None if sight is None else sight.plain(),
            "identity": record.get("identity"),
            "config": deciding(record["config"]),
        }

    def keep(self, state: TrainState, tables: Any = None) -> None:
        """Cut both tables back to what had happened when ``state`` was reached.

        ``tables`` are the marks in its checkpoint; those of earlier versions have none.
        """
        marks = tables if isinstance(tables, dict) else {}
        self.progress.truncate(state.epoch, marks.get("progress"))
        self.episodes.truncate(state.finished, marks.get("episodes"))
        self._mark(state.epoch)

    def add(self, row: dict[str, Any], episodes: list[dict[str, Any]]) -> None:
        """Append one epoch."""
        self.episodes.append(episodes)
        self.progress.append([row])
        self._mark(row["Train/Epoch"] + 1)

    def _mark(self, epoch: int) -> None:
        # By epoch, because checkpoints are written beside the training, when there may be more rows already.
        tables = {"progress": self.progress, "episodes": self.episodes}
        self._marks[epoch] = {name: table.fingerprint() for name, table in tables.items()}

    def save(self, state: TrainState) -> None:
        """Write a checkpoint of the state, unless there is one, after syncing the rows it counts on."""
        if checkpoint_path(self.run.checkpoints, state.epoch).exists():
            return
        tree = to_tree(state)
        self.episodes.sync()
        self.progress.sync()
        more = {**self._around(state.budget), "tables": self._marks[state.epoch]}
        write_checkpoint(self.run.checkpoints, state.epoch, {**tree, **more})
        for epoch in [epoch for epoch in list(self._marks) if epoch < state.epoch]:
            del self._marks[epoch]

    def save_certified(self, best: Candidate, trial: Trial) -> None:
        """Write the certified policy with its test, unless a better one is there."""
        try:
            there = certified_checkpoint(self.run.path)
            if there is not None and float(there.tree["trial"]["ret"]) >= trial.ret:
                return
        except (RunError, KeyError, TypeError, ValueError):
            pass  # what cannot be read makes way
        tree = {
            "policy": plain(best.policy),
            "stats": plain(best.stats._asdict()),
            "budget": best.budget,
            "trial": trial._asdict(),
            **self._around(best.budget),
        }
        write_tree(self.run.certified, best.epoch, tree)

    def _around(self, budget: float) -> dict[str, Any]:
        """Return what a policy needs besides its parameters."""
        extra = None if self._account is None else self._account.seen.extra(budget).plain()
        return {**self._extras, "extra": extra}

    def seconds_before(self) -> float:
        """Return the time spent on the epochs already in ``progress.csv``."""
        if not self.run.progress.exists() or not self.run.progress.stat().st_size:
            return 0.0
        total = read_progress(self.run.path).get("Time/Total")
        seconds = total[-1] if total else None
        if not isinstance(seconds, int | float) or not 0.0 <= seconds < inf:
            raise RunError(
                f"{self.run.progress} is damaged: the last Time/Total is {seconds!r}, not a number of "
                "seconds; restore the file."
            )
        return float(seconds)


def _versions() -> dict[str, str | None]:
    return {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
