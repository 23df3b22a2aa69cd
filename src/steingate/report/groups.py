"""Group runs that differ only in their seed; labels, order and colors of the groups."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import numpy.typing as npt

from steingate.escaping import printable
from steingate.report.load import Run, canonical, settings
from steingate.report.plot_style import LIMIT, free_colors

Array = npt.NDArray[np.float64]
Settings = dict[str, Any]


@dataclass(frozen=True)
class Group:
    """All seeds of one configuration."""

    env: str
    algo: str
    # Name of the method: the algorithm, with the settings in which its configurations differ on some task.
    # Groups of different tasks with the same label are compared as one method.
    label: str
    runs: tuple[Run, ...]  # in order of seed

    @property
    def limit(self) -> float:
        """Limit on the cost of an episode."""
        return self.runs[0].limit

    def mean_and_std(self, name: str) -> tuple[Array, Array, Array]:
        """Return steps, mean and standard deviation over seeds of a number in ``Run.recent``, per epoch.

        Seeds that have not reached an epoch are left out of its mean. The standard deviation is that of the
        sample (divided by n - 1), and NaN for a single seed.
        """
        longest = max(self.runs, key=lambda run: run.n_epochs)
        return longest.progress["TotalEnvSteps"], *_over_seeds([run.recent[name] for run in self.runs])

    def mean_hours(self) -> Array:
        """Return the hours of training by the end of each epoch, mean over seeds; NaN if unknown."""
        times = [run.progress.get("Time/Total", np.full(run.n_epochs, np.nan)) for run in self.runs]
        return _over_seeds(times)[0] / 3600.0


def group_runs(runs: Sequence[Run]) -> list[Group]:
    """Return the groups in order of task, algorithm and label."""
    members: dict[str, list[Run]] = {}
    for run in runs:
        members.setdefault(f"{canonical(settings(run.config))} {bool(run.edited)}", []).append(run)
    by_algo: dict[str, list[Settings]] = {}
    for first, *_ in members.values():
        by_algo.setdefault(first.algo, []).append(settings(first.config))
    names = {algo: _differing(configurations) for algo, configurations in by_algo.items()}
    groups = [
        Group(seeds[0].env, seeds[0].algo, _label(seeds[0], names[seeds[0].algo]), tuple(seeds))
        for seeds in (sorted(group, key=lambda run: run.seed) for group in members.values())
    ]
    return sorted(groups, key=lambda group: (group.env, min(r.order for r in group.runs), group.algo, group.label))


def group_colors(groups: Sequence[Group]) -> dict[str, str]:
    """Return a color for each method: its preferred one if it is free, or the next free one."""
    chosen: dict[str, str] = {}
    for group in groups:
        color = next((run.color for run in group.runs if run.color), None)
        if color and group.label not in chosen and color not in (LIMIT, *chosen.values()):
            chosen[group.label] = color
    rest = [method for method in dict.fromkeys(group.label for group in groups) if method not in chosen]
    return chosen | dict(zip(rest, free_colors(len(rest), set(chosen.values())), strict=True))


def _over_seeds(series: Sequence[Array]) -> tuple[Array, Array]:
    """Return mean and standard deviation of series of different lengths, entry by entry."""
    table = np.full((len(series), max(map(len, series))), np.nan)
    for row, values in zip(table, series, strict=True):
        row[: len(values)] = values
    with catch_warnings():
        simplefilter("ignore", RuntimeWarning)  # entries that no seed or only one has
        return np.nanmean(table, axis=0), np.nanstd(table, axis=0, ddof=1)


def _differing(configurations: Sequence[Settings]) -> list[str]:
    """Return the names of the settings in which configurations of one algorithm differ on the same task."""
    tasks: dict[str, list[Settings]] = {}
    for mine in configurations:
        tasks.setdefault(mine["env"], []).append(mine)
    names: dict[str, None] = {}
    for rivals in tasks.values():
        for name in dict.fromkeys(name for mine in rivals for name in mine):
            if len({canonical(mine[name]) if name in mine else None for mine in rivals}) > 1:
                names[name] = None
    return list(names)


def _label(run: Run, names: Sequence[str]) -> str:
    """Return the algorithm and the given settings; a group of options is named where two share a name."""
    mine, words = settings(run.config), []
    last = Counter(name.rsplit(".", 1)[-1] for name in names)
    if run.limit != run.trained_limit:
        words.append(f"judged at {run.limit:g}, trained for {run.trained_limit:g}")
        names = [name for name in names if name != "cost_limit"]
    for name in names:
        end = name.rsplit(".", 1)[-1]
        value = canonical(mine[name]).strip('"') if name in mine else "default"
        words.append(f"{end if last[end] == 1 else name} {printable(value, 60)}")
    words += ["edited"] if run.edited else []
    return printable(f"{run.algo} ({', '.join(words)})" if words else run.algo)
