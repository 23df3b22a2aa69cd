"""What pages need of ``results/kept``: rows of runs, numbers over seeds with intervals, tables."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt
from pathlib import Path

import numpy as np
from scipy.stats import beta, t

from steingate.algorithms import METHODS as RECIPES
from steingate.report.published import Published, published_numbers
from steingate.report.style import free_colors

KEPT = Path(__file__).parents[1] / "results" / "kept"
TASKS = ("SafetyPointGoal1-v0", "SafetyPointCircle1-v0", "SafetyCarGoal1-v0", "SafetyCarCircle1-v0")
METHODS = ("cpo", "evo", "trpo-saute", "trpo-simmer", "steingate", "allowance")
PAPER_SEEDS = 6
WINDOW = 100  # episodes in the mean by which an epoch is judged
Row = dict[str, str]


@dataclass(frozen=True)
class Value:
    """A number with its 95 % interval, which is NaN where one seed says nothing of it."""

    value: float
    low: float = nan
    high: float = nan

    def text(self, digits: int) -> str:
        """Return the number, with its interval if there is one; a dash where it is not known."""
        if isnan(self.value):
            return "–"
        if isnan(self.low):
            return f"{self.value:.{digits}f}"
        return f"{self.value:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"

    def apart(self, other: "Value") -> bool:
        """Return whether the two intervals have no number in common."""
        return self.low > other.high or self.high < other.low


def rows(name: str = "summary.csv", **wanted: str) -> list[Row]:
    """Return the rows of a kept table that have the given cells."""
    with open(KEPT / name, newline="") as file:
        found = list(csv.DictReader(file))
    return [row for row in found if all(row[key] == value for key, value in wanted.items())]


def numbers(group: Sequence[Row], name: str) -> np.ndarray:
    """Return a number of each run in which it is known."""
    return np.array([float(row[name]) for row in group if row[name]])


def over_seeds(values: np.ndarray, seeds: int | None = None) -> Value:
    """Return the mean with Student's interval; ``seeds`` as if so many had the same deviation."""
    if not len(values):
        return Value(nan)
    mean = float(values.mean())
    if len(values) == 1:
        return Value(mean)
    half = half_width(values, seeds or len(values))
    return Value(mean, mean - half, mean + half)


def pooled(group: Sequence[Row], by: str) -> Value:
    """Return the mean return of all feasible points of all seeds, with the interval of the seeds' own means.

    ``by`` is ``epoch`` or ``episode``; all seeds have as many of them.
    """
    some = [row for row in group if row[f"return_by_{by}"]]
    means, shares = (numbers(some, f"{name}_by_{by}") for name in ("return", "feasible"))
    found = over_seeds(means)
    if not len(some):
        return found
    mean = float(np.average(means, weights=shares))
    return Value(mean, mean + found.low - found.value, mean + found.high - found.value)


def half_width(values: np.ndarray, seeds: int) -> float:
    """Return half of Student's 95 % interval for the mean of ``seeds`` runs that vary as these do."""
    return float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / sqrt(seeds))


def share(values: np.ndarray, points: float, seeds: int | None = None, mean: float | None = None) -> Value:
    """Return a share with the wider of two intervals: over seeds, and of so many independent points a seed.

    Seeds that all have a share of 1 say nothing of their spread, but the points that were counted do.
    ``mean`` puts the intervals around another number, for as many ``seeds``.
    """
    if not len(values):
        return Value(nan)
    mean, seeds = float(values.mean()) if mean is None else mean, seeds or len(values)
    if len(values) == 1:
        return Value(mean)
    half, count = half_width(values, seeds), points * seeds
    good = mean * count
    low = float(beta.ppf(0.025, good, count - good + 1.0)) if good > 0.0 else 0.0
    high = float(beta.ppf(0.975, good + 1.0, count - good)) if good < count else 1.0
    return Value(mean, max(min(low, mean - half), 0.0), min(max(high, mean + half), 1.0))


@dataclass(frozen=True)
class Cell:
    """A method on a task: numbers over its seeds, and the paper's where it has them."""

    env: str
    algo: str
    seeds: int
    epochs: Value
    epoch_return: Value
    episodes: Value
    episode_return: Value
    ret: Value
    cost: Value
    over: Value
    paper: Published | None
    paper_epochs: Value
    paper_episodes: Value
    paper_return: Value

    @property
    def differs(self) -> list[str]:
        """In what ours, counted as the paper's table is, and the paper's are apart by both intervals."""
        if self.paper is None or self.seeds < 2:
            return []
        found = []
        if self.epochs.apart(self.paper_epochs):
            found.append("feasible epochs")
        if self.epoch_return.apart(self.paper_return):
            found.append("return")
        return found

    @property
    def differs_by_episode(self) -> bool:
        """Whether feasible episodes, which the paper's text speaks of, are apart from its numbers."""
        return self.paper is not None and self.seeds > 1 and self.episodes.apart(self.paper_episodes)


def cell(env: str, algo: str, group: Sequence[Row]) -> Cell:
    """Return the numbers of one method on one task.

    The paper prints no intervals. Its seeds are taken to vary as ours do, and there were six.
    """
    windows = numbers(group, "episodes").mean() / WINDOW if len(group) else nan
    episodes = numbers(group, "episodes").mean() if len(group) else nan
    epochs, returns = numbers(group, "feasible_by_epoch"), numbers(group, "return_by_epoch")
    over = 1.0 - numbers(group, "feasible_by_episode")
    paper = published_numbers(env, algo)
    paper_epochs = paper_episodes = paper_return = Value(nan)
    if paper is not None:
        paper_epochs = share(epochs, windows, PAPER_SEEDS, paper.feasibility)
        paper_episodes = share(1.0 - over, episodes, PAPER_SEEDS, paper.feasibility)
        half = half_width(returns, PAPER_SEEDS) if len(returns) > 1 else nan
        paper_return = Value(paper.ret, paper.ret - half, paper.ret + half)
    return Cell(
        env=env,
        algo=algo,
        seeds=len(group),
        epochs=share(epochs, windows),
        epoch_return=pooled(group, "epoch"),
        episodes=share(1.0 - over, episodes),
        episode_return=pooled(group, "episode"),
        ret=over_seeds(numbers(group, "return")),
        cost=over_seeds(numbers(group, "cost")),
        over=share(over, episodes),
        paper=paper,
        paper_epochs=paper_epochs,
        paper_episodes=paper_episodes,
        paper_return=paper_return,
    )


def table1() -> list[Cell]:
    """Return every method of the paper's table and ours on its tasks, those that have runs."""
    found = [*rows(grid="table1"), *rows(grid="allowance")]
    cells = [
        cell(env, algo, [row for row in found if (row["env"], row["algo"]) == (env, algo)])
        for env in TASKS
        for algo in METHODS
    ]
    return [each for each in cells if each.seeds]


def colors_of(algos: list[str]) -> dict[str, str]:
    """Return the color of each method, its own or one that is free."""
    own = {algo: RECIPES[algo].about.color for algo in algos if algo in RECIPES}
    known = {algo: color for algo, color in own.items() if color is not None}
    rest = [algo for algo in algos if algo not in known]
    return known | dict(zip(rest, free_colors(len(rest), set(known.values())), strict=True))


def markdown(headings: Sequence[str], lines: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return a table in Markdown whose first columns are flushed left."""
    rule = "|---" * left + "|---:" * (len(headings) - left) + "|"
    return "\n".join([_line(headings), rule, *map(_line, lines)])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
