"""RunWriter: the tables and checkpoints of a run folder."""

from math import inf
from typing import Any

from steingate.algorithms.base import Algorithm, EnvParams
from steingate.errors import RunError
from steingate.policies.action_space import action_arrays
from steingate.runs import (
    RunFolder,
    Table,
    deciding,
    read_config,
    read_progress,
    write_checkpoint,
    write_tree,
)
from steingate.storage.checkpoint import checkpoint_path
from steingate.storage.tables import EPISODE_COLUMNS
from steingate.training.certification import CertificationTest, saved_test
from steingate.training.config import RunConfig
from steingate.training.environment import TrainerEnv
from steingate.training.selection import Candidate
from steingate.training.state import TrainState, plain, to_tree


class RunWriter:
    """Appends to ``progress.csv`` and ``episodes.csv``, and writes checkpoints.

    Parameters
    ----------
    run
        The folder.
    envs
        Their action space is stored with each checkpoint, so that a policy can be used without environment.
    cfg, algorithm
        The run and its algorithm; what they do with observations is stored too.
    """

    def __init__(self, run: RunFolder, envs: TrainerEnv, cfg: RunConfig, algorithm: Algorithm) -> None:
        self.run, self._cfg, self._algorithm = run, cfg, algorithm
        self.progress = Table(run.progress, time_prefixes=("Time/",))
        self.episodes = Table(run.episodes, EPISODE_COLUMNS)
        self._marks: dict[int, dict[str, Any]] = {}  # fingerprints of both tables after each epoch
        record = read_config(run.path)
        features = getattr(envs, "lidar_features", None)
        self._shared: dict[str, Any] = {
            "action": action_arrays(envs.single_action_space),
            "normalize": algorithm.networks.normalize_obs,
            "lidar_features": None if features is None else features.to_dict(),
            "identity": record.get("identity"),
            "config": deciding(record["config"]),
        }

    def truncate(self, state: TrainState, marks: dict[str, Any]) -> None:
        """Remove the rows written after ``state``; ``marks`` are the fingerprints in its checkpoint."""
        self.progress.truncate(state.epoch, marks.get("progress"))
        self.episodes.truncate(state.finished, marks.get("episodes"))
        self._mark(state.epoch)

    def add(self, row: dict[str, Any], episodes: list[dict[str, Any]]) -> None:
        """Append the rows of one epoch."""
        self.episodes.append(episodes)
        self.progress.append([row])
        self._mark(row["Train/Epoch"] + 1)

    def _mark(self, epoch: int) -> None:
        # By epoch, because a checkpoint may be written after further rows have been added.
        tables = {"progress": self.progress, "episodes": self.episodes}
        self._marks[epoch] = {name: table.fingerprint() for name, table in tables.items()}

    def save(self, state: TrainState) -> None:
        """Write a checkpoint of the state, unless it exists, after syncing the rows that belong to it."""
        if checkpoint_path(self.run.checkpoints, state.epoch).exists():
            return
        tree = to_tree(state)
        self.episodes.sync()
        self.progress.sync()
        params = self._algorithm.env_params(self._cfg.context, state.algorithm)
        context = self._policy_context(params.cost_budget_fraction)
        tree |= {**context, "tables": self._marks[state.epoch]}
        write_checkpoint(self.run.checkpoints, state.epoch, tree)
        for epoch in [epoch for epoch in list(self._marks) if epoch < state.epoch]:
            del self._marks[epoch]

    def save_certified(self, best: Candidate, test: CertificationTest) -> None:
        """Write the certified policy with its test, unless the file holds one with a higher return."""
        saved = saved_test(self.run)
        if saved is not None and saved.mean_return >= test.mean_return:
            return
        tree = {
            "policy": plain(best.policy),
            "stats": plain(best.stats._asdict()),
            "test": test._asdict(),
            **self._policy_context(best.cost_budget_fraction),
        }
        write_tree(self.run.certified, best.epoch, tree)

    def _policy_context(self, fraction: float) -> dict[str, Any]:
        """Return what is needed to use a policy besides its parameters.

        Published codes evaluate with the full cost budget, whatever fraction training used last.
        """
        params = EnvParams(1.0 if self._cfg.algo.is_published else fraction)
        state = self._algorithm.safety_state(self._cfg.context, params)
        stored = None if state is None else state.to_list()
        return {**self._shared, "safety_state": stored, "cost_budget_fraction": fraction}

    def seconds_before(self) -> float:
        """Return the time spent on the epochs that are already in ``progress.csv``."""
        if not self.run.progress.exists() or not self.run.progress.stat().st_size:
            return 0.0
        seconds = (read_progress(self.run.path).get("Time/Total") or [None])[-1]
        if not isinstance(seconds, int | float) or not 0.0 <= seconds < inf:
            raise RunError(
                f"{self.run.progress} is damaged: the last Time/Total is {seconds!r}, not a number of "
                "seconds; restore the file."
            )
        return float(seconds)
