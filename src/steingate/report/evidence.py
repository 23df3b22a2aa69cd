"""All that reports show, worked out once: runs, groups, their numbers, comparisons and colors."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from steingate.report.aggregates import Overall, overall
from steingate.report.groups import Group, group_colors, group_runs
from steingate.report.loading import Run, Skipped, load_runs
from steingate.report.seeds import Estimate, probability_of_improvement
from steingate.report.summary import TAIL, Summary, summarize, tail_scores

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Comparison:
    """How probable it is that a seed of one method does better than one of another, over shared tasks."""

    better: Group  # on the first of the shared tasks
    than: Group
    tasks: int
    safety: Estimate  # in the share of episodes within the limit
    ret: Estimate


@dataclass(frozen=True)
class Evidence:
    """What tables, figures, the page and the dashboard are made from.

    Attributes
    ----------
    runs, skipped
        What could be read, and what could not and why.
    groups, summaries
        Runs that differ in their seed alone, in the order of tables, and the numbers of each.
    comparisons
        Of each two methods that share a task.
    overall
        The methods that ran on all tasks, over all of them.
    colors
        Of each method (``Group.method``); no two are the same.
    """

    runs: Sequence[Run]
    skipped: Sequence[Skipped]
    groups: Sequence[Group]
    summaries: Sequence[Summary]
    comparisons: Sequence[Comparison]
    overall: Overall
    colors: Mapping[str, str]

    def color(self, group: Group) -> str:
        """Return the color of a group's method."""
        return self.colors[group.method]

    def by_task(self) -> dict[str, list[tuple[Group, Summary]]]:
        """Return the groups of each task with their numbers."""
        tasks: dict[str, list[tuple[Group, Summary]]] = {}
        for group, summary in zip(self.groups, self.summaries, strict=True):
            tasks.setdefault(group.env, []).append((group, summary))
        return tasks


def gather(roots: Iterable[str | Path], load: Callable[[Path, Path], Run] | None = None) -> Evidence:
    """Return the evidence in the runs at or below some folders; ``load`` may stand in for ``load_run``."""
    runs, skipped = load_runs(roots, load)
    return weigh(runs, skipped)


def weigh(runs: Sequence[Run], skipped: Sequence[Skipped] = ()) -> Evidence:
    """Return the evidence in some runs."""
    groups = group_runs(runs)
    summaries = [summarize(group) for group in groups]
    colors = group_colors(groups)
    return Evidence(runs, skipped, groups, summaries, compare(groups), overall(groups), colors)


def compare(groups: Sequence[Group], tail: float = TAIL) -> list[Comparison]:
    """Return a comparison of each pair of methods, in episodes within the limit and in return of the tail."""
    methods: dict[str, dict[str, tuple[Group, Array]]] = {}
    for group in groups:
        methods.setdefault(group.method, {})[group.env] = (group, tail_scores(group, tail))
    result = []
    for i, than in enumerate(methods.values()):
        for better in list(methods.values())[i + 1 :]:
            shared = [env for env in than if env in better and len(than[env][1]) and len(better[env][1])]
            if not shared:
                continue
            safety, ret = (
                probability_of_improvement(
                    [better[env][1][:, k] for env in shared], [than[env][1][:, k] for env in shared]
                )
                for k in (0, 1)
            )
            first = shared[0]
            result.append(Comparison(better[first][0], than[first][0], len(shared), safety, ret))
    return result
