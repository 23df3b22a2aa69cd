"""RunWriter: the tables and checkpoints of a run folder."""

from math import inf
from typing import Any

import numpy as np

from steingate import runs
from steingate.algorithms.base import Algorithm, EnvParams
from steingate.errors import RunError, is_real
from steingate.monitoring.state import as_count
from steingate.policies.action_space import action_arrays
from steingate.policies.load import policy_arrays
from steingate.policies.policy import Policy
from steingate.storage.checkpoint import Checkpoint, checkpoint_path, put_aside, write_checkpoint, write_tree
from steingate.storage.tables import EPISODE_COLUMNS, Table, read_progress
from steingate.training.certification import CertificationTest
from steingate.training.config import RunConfig
from steingate.training.environment import TrainerEnv, source_digest
from steingate.training.selection import Candidate, SelectionState
from steingate.training.state import TrainState, plain, to_tree


class RunWriter:
    """Appends to ``progress.csv`` and ``episodes.csv``, and writes checkpoints and ``certification.json``.

    Each checkpoint also holds what is needed to use its policy without the environment.
    """

    def __init__(self, run: runs.RunFolder, envs: TrainerEnv, cfg: RunConfig, algorithm: Algorithm) -> None:
        self.run, self._cfg, self._algorithm = run, cfg, algorithm
        self.progress = Table(run.progress, time_prefixes=("Time/",))
        self.episodes = Table(run.episodes, EPISODE_COLUMNS)
        self._marks: dict[int, dict[str, Any]] = {}  # fingerprints of both tables after each epoch
        record = runs.read_config(run.path)
        features = getattr(envs, "lidar_features", None)
        self._shared: dict[str, Any] = {
            "action": action_arrays(envs.single_action_space),
            "normalize": algorithm.networks.normalize_obs,
            "lidar_features": None if features is None else features._asdict(),
            "layout": getattr(envs, "observation_layout", None),
            "identity": record.get("identity"),
            "config": {**runs.deciding(record["config"]), "certify": record["config"]["certify"]},
            "env_source": source_digest(cfg.env),
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
        self._marks[epoch] = {"progress": self.progress.fingerprint(), "episodes": self.episodes.fingerprint()}

    def save(self, state: TrainState, replace: bool = False) -> None:
        """Write a checkpoint of the state, after syncing the rows that belong to it; ``replace`` one of the epoch."""
        if not replace and checkpoint_path(self.run.checkpoints, state.epoch).exists():
            return
        tree = to_tree(state)
        self.episodes.sync()
        self.progress.sync()
        params = self._algorithm.env_params(self._cfg.context, state.algorithm)
        tree |= {**self._policy_context(params.cost_budget_fraction), "tables": self._marks[state.epoch]}
        self._check_policy(state.epoch, tree)
        write_checkpoint(self.run.checkpoints, state.epoch, tree)
        for epoch in [epoch for epoch in list(self._marks) if epoch < state.epoch]:
            del self._marks[epoch]  # the other thread may be adding one

    def _check_policy(self, epoch: int, tree: dict[str, Any]) -> None:
        """Raise RunError unless the policy can be loaded and its actions are finite."""
        path = checkpoint_path(self.run.checkpoints, epoch)
        policy = Policy(policy_arrays(Checkpoint(path, epoch, tree)))
        with np.errstate(all="ignore"):
            action = policy._outputs(np.zeros(policy.obs_dim + policy.has_safety_state))
        if not np.isfinite(action).all():
            raise RunError(f"The policy after epoch {epoch} of {self.run.path} gives actions that are not finite.")

    def save_certified(self, best: Candidate, test: CertificationTest) -> None:
        """Write the certified policy with its test, unless the file holds one with a higher return."""
        saved = self.saved_test()
        if saved is None or saved.mean_return < test.mean_return:
            write_tree(self.run.certified, best.epoch, {**self._policy_tree(best), "test": test._asdict()})

    def saved_test(self) -> CertificationTest | None:
        """Return the test in ``certified.safetensors``; None unless it is of its policy and for the run's settings."""
        try:
            found = runs.certified_checkpoint(self.run.path)
            if found is None:
                return None
            test = CertificationTest(**found.tree["test"])
            same = test.sha256 == Policy(policy_arrays(found)).sha256
            same = same and found.tree["env_source"] == self._shared["env_source"]
            return test if same and test.holds_for(self._cfg) else None
        except (RunError, KeyError, TypeError, ValueError):
            return None

    def policy_sha256(self, candidate: Candidate) -> str:
        """Return the digest that names the policy of a candidate."""
        found = Checkpoint(self.run.certified, candidate.epoch, self._policy_tree(candidate))
        return Policy(policy_arrays(found)).sha256

    def _policy_tree(self, candidate: Candidate) -> dict[str, Any]:
        tree = {"policy": plain(candidate.policy), "stats": plain(candidate.stats._asdict())}
        return {**tree, **self._policy_context(candidate.cost_budget_fraction)}

    def write_certification(self, report: dict[str, Any] | None) -> None:
        """Write ``certification.json``; without a report, remove the file."""
        if report is None:
            self.run.certification.unlink(missing_ok=True)
        else:
            runs.write_certification(self.run, report)

    def restore_certification(
        self, selection: SelectionState, saved: dict[str, Any]
    ) -> tuple[SelectionState, list[str]]:
        """Return the selection of a resumed run and messages; write ``certification.json`` if it does not fit.

        Certificates for another environment are put aside; their tests stay counted. A file that a killed run wrote
        after its checkpoint ``saved`` stays: the same tests follow again. Tests that only the file counts are counted.
        """
        if saved and saved["env_source"] != self._shared["env_source"]:
            if self.run.certified.exists():
                put_aside(self.run.certified, "old-environment")
            self.write_certification(None)
            counted = {name: getattr(selection, name) for name in ("tests", "steps", "final_tests")}
            return SelectionState(**counted), [
                f"The source file of {self._cfg.env} has changed since the last checkpoint: the run continues in "
                "another environment, and earlier certificates do not count."
            ]
        messages = []
        try:
            stored = runs.load_certification(self.run.path)
            if stored is not None and stored.get("identity") == self._cfg.identity:
                spent, epoch = as_count(stored["ledger"]["final_tests"]), as_count(stored["epoch"])
                selection = selection._replace(final_tests=max(selection.final_tests, spent))
                if selection.report is None or epoch > selection.report["epoch"]:
                    return selection, []
        except (RunError, KeyError, TypeError, ValueError) as error:
            problem = (
                str(error).partition(";")[0] if isinstance(error, RunError) else f"{self.run.certification} is damaged"
            )
            messages = [f"{problem}: it is written again from the checkpoint."]
        self.write_certification(selection.report)
        return selection, messages

    def _policy_context(self, fraction: float) -> dict[str, Any]:
        """Return what is needed to use a policy besides its parameters.

        Published codes evaluate with the full cost budget, whatever fraction training used last.
        """
        params = EnvParams(1.0 if self._cfg.algo.is_published else fraction)
        state = self._algorithm.safety_state(self._cfg.context, params)
        stored = None if state is None else list(state[:4])
        return {**self._shared, "safety_state": stored, "cost_budget_fraction": fraction}

    def seconds_before(self) -> float:
        """Return the time spent on the epochs that are already in ``progress.csv``."""
        if not self.run.progress.exists() or not self.run.progress.stat().st_size:
            return 0.0
        seconds = (read_progress(self.run.path).get("Time/Total") or [0.0])[-1]
        return float(seconds) if is_real(seconds) and 0.0 <= seconds < inf else 0.0
