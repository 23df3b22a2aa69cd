"""Comparison of the policies of two runs: both play the same seeds until one is shown to be safer."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from steingate.algorithms.base import EnvParams
from steingate.certificates.formatting import number, percent
from steingate.errors import InputError, RunError
from steingate.monitoring.compare import ComparisonMonitor
from steingate.policies.load import Which
from steingate.policies.zoo import run_folder
from steingate.runs import RunFolder
from steingate.storage.tables import read_episodes
from steingate.training.certification import ignored_seeds
from steingate.training.environment import make_envs
from steingate.training.play import load_player, play
from steingate.training.seeding import evaluation_seeds


@dataclass(frozen=True, eq=False)
class Comparison:
    """Result of :func:`compare`: names of both policies, the monitor that counted the pairs, and their mean returns."""

    name_a: str
    name_b: str
    monitor: ComparisonMonitor
    mean_return_a: float
    mean_return_b: float

    def __str__(self) -> str:
        found = self.monitor
        over = (
            f"{found.only_a} of {found.pairs:,} pairs are violations of the limit {number(found.limit)} by A "
            f"alone, {found.only_b} by B alone (e-value {found.e_value:.3g})"
        )
        verdict = f"it is undecided which violates less often: an e-value of {1 / found.delta:g} would decide"
        if found.decided:
            safer, other = ("A", "B") if found.a_is_safer else ("B", "A")
            confidence = percent(round(1.0 - found.delta, 15))
            verdict = f"with {confidence} confidence {safer} violates it less often than {other}"
        return f"A is {self.name_a}, B is {self.name_b}: {over}, so {verdict}."

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON types."""
        returns = {"mean_return_a": self.mean_return_a, "mean_return_b": self.mean_return_b}
        return {"a": self.name_a, "b": self.name_b, **self.monitor.to_dict(), **returns, "sentence": str(self)}


def compare(
    path_a: str | PathLike[str], path_b: str | PathLike[str], episodes: int = 2000, *, seed: int = 0,
    limit: float | None = None, confidence: float = 0.95, policy: Which | None = None, env: Any = None,
    trust_code: bool = False, warn: Callable[[str], None] = warnings.warn, stop: Callable[[], bool] = lambda: False,
) -> Comparison:  # fmt: skip
    """Play the same seeds with the policies of two runs until one is shown to violate the limit less often.

    Parameters
    ----------
    path_a, path_b
        Run folders, or names of ``steingate zoo``, with the same environment.
    episodes, seed
        Largest number of pairs, and seed of the episodes, which differ from those of training and of evaluations.
    limit, confidence
        Cost limit of an episode, by default that of the runs; and 1 - error probability of each statement.
    policy, env, trust_code, warn, stop
        As for :func:`steingate.evaluate`.
    """
    if episodes < 1:
        raise InputError(f"episodes must be at least 1, got {episodes}.")
    paths = (run_folder(path_a), run_folder(path_b))
    players = [load_player(path, warn, policy, env, trust_code) for path in paths]
    a, b = (player.cfg for player in players)
    if (a.env, a.env_options) != (b.env, b.env_options):
        raise InputError(f"The runs have different environments, {a.env} and {b.env} (or options): nothing to compare.")
    if limit is None and a.cost_limit != b.cost_limit:
        raise InputError(f"The runs have the limits {a.cost_limit:g} and {b.cost_limit:g}: choose one with limit.")
    limit = a.cost_limit if limit is None else limit
    monitor = ComparisonMonitor(limit, round(1.0 - confidence, 15), _return_range(paths))
    seeds = evaluation_seeds(seed, episodes, 0)
    num_envs = min(a.num_envs, b.num_envs)
    envs = [make_envs(each.cfg, num_envs, EnvParams(each.cost_budget_fraction)) for each in players]
    returns: list[list[float]] = []
    marks: list[list[list[int]]] = [[], []]  # checksums of the episodes of A and of B
    try:
        for first in range(0, episodes, num_envs):
            played = []
            for each, player, own in zip(envs, players, marks, strict=True):
                own.append([])
                played.append(play(each, player, seeds[first : first + num_envs], False, stop, marks=own[-1]))
            costs = [np.maximum(one.cost, 0.0).tolist() for one in played]
            for cost_a, cost_b, *pair in zip(*costs, *(one.ret.tolist() for one in played), strict=True):
                if not monitor.decided:
                    monitor.update(cost_a, cost_b, *(pair if monitor.return_range is not None else ()))
                    returns.append(pair)
            if monitor.decided:
                break
    finally:
        for each in envs:
            each.close()
    failure = ignored_seeds(marks[0]) or ignored_seeds(marks[1])
    if failure:
        raise RunError(f"There is nothing to compare: {failure}.")
    name_a, name_b = (
        f"the {player.which} policy of {path} (step {player.epoch * player.cfg.steps_per_epoch:,})"
        for path, player in zip(paths, players, strict=True)
    )
    return Comparison(name_a, name_b, monitor, *np.mean(returns, axis=0).tolist())


def _return_range(paths: tuple[Path, ...]) -> float | None:
    """Return the range of the returns in training, which is known before the pairs, or None."""
    returns = [read_episodes(path)["return"] for path in paths if RunFolder(path).episodes.exists()]
    values = np.concatenate([*returns, np.zeros(0)])
    return float(np.ptp(values)) or None if len(values) else None
