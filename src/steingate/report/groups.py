"""Runs that differ in nothing but their seed, with a label that says what sets them apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.report.loading import Run, flat

Array = npt.NDArray[np.float64]

# The order of the paper's table, then of its figures.
_ORDER = (
    "cpo", "pcpo", "rcpo", "evo", "trpo", "ppo", "trpo-lag", "ppo-lag", "trpo-saute", "ppo-saute",
    "trpo-simmer", "ppo-simmer", "cvar-cpo", "crpo", "steingate-ppo", "steingate",
)  # fmt: skip


@dataclass(frozen=True)
class Group:
    """The seeds of one configuration.

    ``label`` is the algorithm, with the options in which this group differs from others of the same task and
    algorithm.
    """

    env: str
    algo: str
    label: str
    runs: tuple[Run, ...]

    @property
    def limit(self) -> float:
        """The limit on an episode's cost."""
        return self.runs[0].limit

    @property
    def seeds(self) -> list[int]:
        """The seeds in order."""
        return [run.seed for run in self.runs]


def group_runs(runs: Sequence[Run]) -> list[Group]:
    """Return the groups in order of task, algorithm and label."""
    members: dict[str, list[Run]] = {}
    for run in runs:
        members.setdefault(str(sorted(flat(run.config).items(), key=str)), []).append(run)
    options = [flat(group[0].config) for group in members.values()]
    groups = []
    for group, mine in zip(members.values(), options, strict=True):
        rivals = [other for other in options if (other["env"], other["algo"]) == (mine["env"], mine["algo"])]
        label = _label(mine, rivals)
        first = group[0]
        ordered = tuple(sorted(group, key=lambda run: run.seed))
        groups.append(Group(first.env, first.algo, label, ordered))
    return sorted(groups, key=lambda group: (group.env, _place(group.algo), group.label))


def mean_and_spread(group: Group, column: str) -> tuple[Array, Array, Array]:
    """Return steps, mean and standard deviation over seeds of a column of progress, epoch by epoch.

    Where some seeds have gone further than others, a mean is over those that are there. The standard
    deviation is the sample's (divided by n - 1), and NaN for a single seed.
    """
    longest = max(group.runs, key=lambda run: run.epochs)
    table = np.full((len(group.runs), longest.epochs), np.nan)
    for row, run in zip(table, group.runs, strict=True):
        row[: run.epochs] = run.progress[column]
    known = np.isfinite(table)
    count = known.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, table, 0.0).sum(axis=0) / count
        squares = np.where(known, (table - mean) ** 2, 0.0).sum(axis=0)
        spread = np.sqrt(squares / (count - 1))
    return longest.progress["TotalEnvSteps"], np.where(count > 0, mean, np.nan), spread


def _label(mine: dict[str, Any], rivals: list[dict[str, Any]]) -> str:
    names = [name for name in mine if any(other.get(name) != mine[name] for other in rivals)]
    names += [name for name in {key: 0 for other in rivals for key in other} if name not in mine]
    told = [f"{name.rsplit('.', 1)[-1]} {_short(mine.get(name, 'default'))}" for name in names]
    return f"{mine['algo']} ({', '.join(told)})" if told else str(mine["algo"])


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _place(algo: str) -> tuple[int, str]:
    return (_ORDER.index(algo), algo) if algo in _ORDER else (len(_ORDER), algo)
