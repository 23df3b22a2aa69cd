"""Runs that differ in nothing but their seed, with a label that says what sets them apart, and a color."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.report.loading import Run
from steingate.report.record import canonical, look_of, settings
from steingate.report.style import LIMIT, free_colors

Array = npt.NDArray[np.float64]
Settings = dict[str, Any]


@dataclass(frozen=True)
class Group:
    """The seeds of one configuration.

    Attributes
    ----------
    env, algo
        The task and the algorithm.
    method
        Tells the configurations of one task apart; the same on all tasks for those that are shown together.
    label
        The same for readers: the algorithm, with the settings in which its configurations differ on any task.
        No two methods share a label.
    runs
        In order of seed.
    """

    env: str
    algo: str
    method: str
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

    @property
    def order(self) -> float:
        """The method's place in tables and figures; methods that do not say theirs come last."""
        orders = [look_of(run.record).order for run in self.runs]
        return min((order for order in orders if order is not None), default=inf)

    @property
    def color(self) -> str | None:
        """The color that the method asks for."""
        colors = (look_of(run.record).color for run in self.runs)
        return next((color for color in colors if color is not None), None)


def group_runs(runs: Sequence[Run]) -> list[Group]:
    """Return the groups in order of task, method and label."""
    members: dict[str, list[Run]] = {}
    for run in runs:
        members.setdefault(canonical(settings(run.config)), []).append(run)
    by_algo: dict[str, list[Settings]] = {}
    for group in members.values():
        by_algo.setdefault(group[0].algo, []).append(_told_apart(group[0]))
    names = {algo: _differing(configurations) for algo, configurations in by_algo.items()}
    labels = _labels({algo: (by_algo[algo], names[algo]) for algo in by_algo})
    groups = []
    for group in members.values():
        first, ordered = group[0], tuple(sorted(group, key=lambda run: run.seed))
        method = _method(_told_apart(first), names[first.algo])
        groups.append(Group(first.env, first.algo, method, labels[method], ordered))
    return sorted(groups, key=lambda group: (group.env, group.order, group.algo, group.label))


def group_colors(groups: Sequence[Group]) -> dict[str, str]:
    """Return a color for each method: the one it asks for, or the next that is free; no two share one."""
    chosen: dict[str, str] = {}
    for group in groups:
        asked = group.color
        if group.method not in chosen and asked not in (None, LIMIT, *chosen.values()):
            chosen[group.method] = str(asked)
    rest = [method for method in dict.fromkeys(group.method for group in groups) if method not in chosen]
    return chosen | dict(zip(rest, free_colors(len(rest), set(chosen.values())), strict=True))


def mean_and_spread(group: Group, name: str) -> tuple[Array, Array, Array]:
    """Return steps, mean and standard deviation over seeds of a recent number, epoch by epoch.

    ``name`` is one of ``Run.recent``: the return, the cost, the share over the limit or the tail of the cost.

    Where some seeds have gone further than others, a mean is over those that are there. The standard
    deviation is the sample's (divided by n - 1), and NaN for a single seed.
    """
    longest = max(group.runs, key=lambda run: run.epochs)
    mean, spread = over_seeds(group, [run.recent[name] for run in group.runs])
    return longest.progress["TotalEnvSteps"], mean, spread


def mean_hours(group: Group) -> Array:
    """Return the hours that training had taken by the end of each epoch, mean over seeds; NaN if unknown."""
    logged = [run.progress.get("Time/Total", np.full(run.epochs, np.nan)) / 3600.0 for run in group.runs]
    return over_seeds(group, logged)[0]


def over_seeds(group: Group, series: Sequence[Array]) -> tuple[Array, Array]:
    """Return mean and standard deviation over seeds of one series per run, epoch by epoch."""
    longest = max(group.runs, key=lambda run: run.epochs)
    table = np.full((len(group.runs), longest.epochs), np.nan)
    for row, values in zip(table, series, strict=True):
        row[: len(values)] = values
    known = np.isfinite(table)
    count = known.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, table, 0.0).sum(axis=0) / count
        squares = np.where(known, (table - mean) ** 2, 0.0).sum(axis=0)
        spread = np.sqrt(squares / (count - 1))
    return np.where(count > 0, mean, np.nan), spread


def _told_apart(run: Run) -> Settings:
    """Return the settings, and whether the folder is of the form that does not list all of the method's."""
    return {**settings(run.config), "folder": "today's" if "recipe" in run.config else "older"}


def _differing(configurations: Sequence[Settings]) -> list[str]:
    """Return the names of the settings in which configurations of one algorithm differ on the same task."""
    tasks: dict[str, list[Settings]] = {}
    for mine in configurations:
        tasks.setdefault(mine["env"], []).append(mine)
    names: dict[str, None] = {}
    for rivals in tasks.values():
        for name in dict.fromkeys(name for mine in rivals for name in mine):
            holders = [mine for mine in rivals if name in mine]
            # Folders of another form list other names; what they lack is no difference.
            forms = {mine["folder"] for mine in holders}
            lacking = any(name not in mine and mine["folder"] in forms for mine in rivals)
            if lacking or len({canonical(mine[name]) for mine in holders}) > 1:
                names[name] = None
    return list(names)


def _method(mine: Settings, names: Sequence[str]) -> str:
    return canonical([mine["algo"], *(f"{name} {canonical(mine[name])}" for name in names if name in mine)])


def _labels(by_algo: dict[str, tuple[list[Settings], list[str]]]) -> dict[str, str]:
    """Return a label for each method; where short numbers leave two alike, with all their digits."""
    methods = {
        _method(mine, names): (mine, names)
        for configurations, names in by_algo.values()
        for mine in configurations
    }
    short = {method: _label(mine, names, _short) for method, (mine, names) in methods.items()}
    count = Counter(short.values())
    return {
        method: short[method] if count[short[method]] == 1 else _label(mine, names, canonical)
        for method, (mine, names) in methods.items()
    }


def _label(mine: Settings, names: Sequence[str], write: Callable[[Any], str]) -> str:
    last = Counter(name.rsplit(".", 1)[-1] for name in names)
    told = []
    for name in names:
        end = name.rsplit(".", 1)[-1]
        value = write(mine[name]) if name in mine else "default"
        told.append(f"{end if last[end] == 1 else name} {value}")
    return f"{mine['algo']} ({', '.join(told)})" if told else str(mine["algo"])


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
