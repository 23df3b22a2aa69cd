"""Statistics of the stored runs: ``python docs/summary.py`` writes results/summary.csv from results/runs.

results/summary.csv has one row per run (last fifth of its epochs). The other scripts read it; only figures of
learning curves read the runs.

``python docs/summary.py --endpoints GRID FOLDER [--episodes N]`` evaluates the last policies of the run folders of a
grid without exploration noise, and replaces the grid's rows of results/endpoints.csv.
"""

import argparse
import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan, sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import beta, t

from steingate.report.load import Run, load_runs
from steingate.report.statistics import cvar, feasible_return, tail_feasibility, violation_rate
from steingate.report.summary import tail_episodes, tail_epochs

RESULTS = Path(__file__).parents[1] / "results"
ALL_GRIDS = (
    "table1", "allowance", "allowance-0.2", "unseen", "limits", "references", "samples", "circle2", "velocity",
    "baselines", "cpo-variants", "gates", "goal", "equal",
)  # fmt: skip
GRIDS = tuple(grid for grid in ALL_GRIDS if (RESULTS / "runs" / f"{grid}.jsonl.xz").exists())
JUDGED_AT = {"equal": 25.0}  # cost limit of the statistics where it is not that of training
TASKS = ("SafetyPointGoal1-v0", "SafetyPointCircle1-v0", "SafetyCarGoal1-v0", "SafetyCarCircle1-v0")
METHODS = ("cpo", "evo", "trpo-saute", "trpo-simmer", "steingate", "allowance")
PAPER_SEEDS = 6
WINDOW = 100  # an epoch is feasible if the mean cost of this many episodes is within the limit
MILLION = 1_000_000
KEY = ("grid", "kind", "env", "algo", "seed")
Row = dict[str, str]
Array = npt.NDArray[np.float64]


# Table 1 of the paper: 6 seeds, 10 million steps, 8 environments, limit 25. Every value is a rounded multiple of 1/600:
# the table counts epochs (the last fifths of six runs of 500 epochs, judged by 100-episode means), not episodes as the
# text of the paper says.


class PaperResult(NamedTuple):
    """Tail feasibility and feasible return as printed in the paper."""

    feasibility: float
    ret: float


PAPER = {
    "cpo": ((0.258, 19.21), (0.775, 47.16), (0.257, 22.86), (0.578, 18.24)),
    "evo": ((0.988, 3.68), (0.990, 44.27), (0.997, 3.23), (0.995, 15.64)),
    "trpo-saute": ((0.563, 14.26), (0.992, 41.25), (0.575, 17.54), (0.998, 14.31)),
    "trpo-simmer": ((0.858, 12.33), (0.915, 40.80), (0.698, 15.62), (0.977, 14.51)),
    "steingate": ((0.987, 9.77), (0.992, 46.15), (0.998, 12.65), (0.997, 16.77)),
}


def paper_numbers(env: str, algo: str) -> PaperResult | None:
    """Return the paper's result of an algorithm on a task, None if the table has none."""
    return PaperResult(*PAPER[algo][TASKS.index(env)]) if algo in PAPER and env in TASKS else None


# Rows of the summary


def archive(grid: str) -> Path:
    """Return the file with the runs of a grid."""
    return RESULTS / "runs" / f"{grid}.jsonl.xz"


def grid_runs(grid: str) -> list[Run]:
    """Return the stored runs of a grid."""
    runs, skipped = load_runs([archive(grid)], JUDGED_AT.get(grid))
    if skipped:
        raise ValueError(f"{skipped[0].path}: {skipped[0].reason}")
    return runs


def run_kind(run: Run, grid: str) -> str:
    """Return the folder that separates runs of one grid beyond algorithm, task and seed ("" if none)."""
    folder = run.path.relative_to(archive(grid)).parents[2]
    return "" if folder == Path() else str(folder)


def first_steps(run: Run, steps: int) -> Run:
    """Return a run as if it had been planned for and trained for only the first ``steps`` steps."""
    epochs = int(np.sum(run.progress["TotalEnvSteps"] <= steps))
    return replace(
        run,
        record=run.record | {"config": {**run.config, "total_steps": steps}},
        progress={name: cells[:epochs] for name, cells in run.progress.items()},
        episodes={name: cells[run.episodes["epoch"] < epochs] for name, cells in run.episodes.items()},
        recent={name: cells[:epochs] for name, cells in run.recent.items()},
        modes=run.modes[:epochs],
    )


def summary_row(run: Run, grid: str, kind: str) -> Row:
    """Return the statistics of a run over the last fifth of its epochs."""
    epoch_return, epoch_cost = tail_epochs(run)
    episode_return, episode_cost = tail_episodes(run)
    first = run.n_epochs - len(epoch_cost)
    epoch, cost = run.episodes["epoch"], run.episodes["cost"]
    late_means = run.recent["cost"][run.progress["TotalEnvSteps"] > MILLION]
    counts = {
        "steps": run.steps,
        "limit": run.limit,
        "epochs": len(epoch_cost),
        "episodes": len(episode_cost),
        "over_count": int(np.sum(episode_cost > run.limit)),
    }
    numbers = {
        "feasible_in_training": tail_feasibility(run.recent["cost"], run.limit),
        "feasible_by_epoch": tail_feasibility(epoch_cost, run.limit),
        "return_by_epoch": feasible_return(epoch_return, epoch_cost, run.limit),
        "feasible_by_episode": tail_feasibility(episode_cost, run.limit),
        "return_by_episode": feasible_return(episode_return, episode_cost, run.limit),
        "return": episode_return.mean(),
        "cost": episode_cost.mean(),
        "cost_sd": np.std([cost[epoch == number].mean() for number in range(first, run.n_epochs)]),
        "cvar90": cvar(episode_cost, 0.9),
        "over_in_training": violation_rate(cost, run.limit),
        "highest_mean_cost": late_means.max() if len(late_means) else nan,
        "minutes": run.progress["Time/Total"][-1] / 60.0,
    }
    return (
        dict(zip(KEY, (grid, kind, run.env, run.algo, str(run.seed)), strict=True))
        | {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in counts.items()}
        | {name: "" if isnan(value) else f"{value:.4f}" for name, value in numbers.items()}
    )


def summarize() -> list[Row]:
    """Return a row per stored run, and one for the first million steps of SteinGate's runs with seed 0."""
    found = []
    for grid in GRIDS:
        for run in grid_runs(grid):
            found.append(summary_row(run, grid, run_kind(run, grid)))
            if (grid, run.algo, run.seed) == ("table1", "steingate", 0):
                found.append(summary_row(first_steps(run, MILLION), "first-million", ""))
    return sorted(found, key=lambda row: tuple(row[name] for name in KEY))


def endpoints(grid: str, folder: Path, episodes: int) -> list[Row]:
    """Return a row per run folder: fresh noise-free episodes of its last policy, with the exact 95 % bound."""
    from steingate.certificates.violation import certify
    from steingate.training.evaluate import evaluate

    found = []
    for path in sorted(file.parent for file in folder.rglob("config.json")):
        result = evaluate(path, episodes, policy="last", limit=JUDGED_AT.get(grid))
        run = load_runs([path])[0][0]
        kind = str(path.relative_to(folder).parents[2])
        cost, bound = result.episodes.cost, certify(result.episodes.cost, result.limit)
        found.append(
            dict(zip(KEY, (grid, "" if kind == "." else kind, run.env, run.algo, str(run.seed)), strict=True))
            | {"episodes": str(episodes), "return": f"{result.episodes.ret.mean():.3f}", "cost": f"{cost.mean():.3f}"}
            | {"over": str(bound.violations), "at_most": f"{bound.bound:.4f}", "cvar90": f"{cvar(cost, 0.9):.2f}"}
        )
        print(path, found[-1])
    return found


def rows(file: str = "summary.csv", **cells: str) -> list[Row]:
    """Return the rows of a table in results/ that have the given cells."""
    with open(RESULTS / file, newline="", encoding="utf-8") as lines:
        found = list(csv.DictReader(lines))
    return [row for row in found if all(row[name] == value for name, value in cells.items())]


def write_rows(path: Path, table: Sequence[Mapping[str, str]]) -> None:
    """Write a CSV file."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


def column(table: Sequence[Row], name: str) -> Array:
    """Return a column as numbers, without empty cells."""
    return np.array([float(row[name]) for row in table if row[name]])


def over_limit(row: Row) -> float:
    """Return the fraction of episodes over the limit."""
    return 1.0 - float(row["feasible_by_episode"])


# Means over seeds with confidence intervals


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval; NaN bounds where one seed gives no interval."""

    value: float
    low: float = nan
    high: float = nan

    def text(self, digits: int) -> str:
        """Return ``value [low, high]``."""
        if isnan(self.value):
            return "–"
        if isnan(self.low):
            return f"{self.value:.{digits}f}"
        return f"{self.value:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"

    def differs(self, other: "Estimate") -> bool:
        """Return whether the two intervals are disjoint."""
        return self.low > other.high or self.high < other.low


def half_width(values: Array, seeds: int) -> float:
    """Return half of Student's 95 % interval for a mean of ``seeds`` values with the deviation of these."""
    return float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / sqrt(seeds))


def mean_over_seeds(values: Array) -> Estimate:
    """Return the mean with Student's interval."""
    if len(values) < 2:
        return Estimate(float(values[0]) if len(values) else nan)
    mean, half = float(values.mean()), half_width(values, len(values))
    return Estimate(mean, mean - half, mean + half)


def epoch_return_mean(group: Sequence[Row]) -> Estimate:
    """Return the mean return over feasible epochs of all seeds, with the interval over seeds."""
    some = [row for row in group if row["return_by_epoch"]]
    over_seeds = mean_over_seeds(column(some, "return_by_epoch"))
    if not some:
        return over_seeds
    mean = float(np.average(column(some, "return_by_epoch"), weights=column(some, "feasible_by_epoch")))
    shift = mean - over_seeds.value
    return Estimate(mean, over_seeds.low + shift, over_seeds.high + shift)


def proportion(values: Array, points: float, seeds: int = 0, mean: float | None = None) -> Estimate:
    """Return a mean fraction with the wider of Student's and the Clopper-Pearson interval.

    Seeds that all have the same fraction give Student's interval no width; the number of points does. ``values``
    has a fraction per seed, each of ``points`` independent points. With ``seeds`` and ``mean``, the interval is that
    of so many seeds around this mean.
    """
    center, seeds = float(values.mean()) if mean is None else mean, seeds or len(values)
    if len(values) < 2:
        return Estimate(center)
    half, count = half_width(values, seeds), points * seeds
    successes = center * count
    low = float(beta.ppf(0.025, successes, count - successes + 1.0)) if successes > 0.0 else 0.0
    high = float(beta.ppf(0.975, successes + 1.0, count - successes)) if successes < count else 1.0
    return Estimate(center, max(min(low, center - half), 0.0), min(max(high, center + half), 1.0))


class Cell(NamedTuple):
    """One method on one task of Table 1: statistics over seeds, and the paper's numbers where it has them."""

    env: str
    algo: str
    seeds: int
    epochs: Estimate  # fraction of feasible epochs
    epoch_return: Estimate  # mean return over them
    episodes: Estimate  # fraction of episodes within the limit
    ret: Estimate
    over: Estimate
    paper: PaperResult | None
    differences: tuple[str, ...]  # of "epochs" and "return", those whose intervals are disjoint from the paper's
    differs_by_episode: bool  # whether the interval of ``episodes`` is disjoint from the paper's


def table1_cell(env: str, algo: str, group: Sequence[Row]) -> Cell:
    """Return one cell. The paper prints no intervals: its six seeds are assumed to vary as ours do."""
    n = column(group, "episodes").mean()
    by_epoch, by_episode = column(group, "feasible_by_epoch"), column(group, "feasible_by_episode")
    epochs, episodes = proportion(by_epoch, n / WINDOW), proportion(by_episode, n)
    epoch_return, paper = epoch_return_mean(group), paper_numbers(env, algo)
    different, differs_by_episode = list[str](), False
    if paper is not None and len(group) > 1:
        half = half_width(column(group, "return_by_epoch"), PAPER_SEEDS)
        if epochs.differs(proportion(by_epoch, n / WINDOW, PAPER_SEEDS, paper.feasibility)):
            different.append("epochs")
        if epoch_return.differs(Estimate(paper.ret, paper.ret - half, paper.ret + half)):
            different.append("return")
        differs_by_episode = episodes.differs(proportion(by_episode, n, PAPER_SEEDS, paper.feasibility))
    ret, over = mean_over_seeds(column(group, "return")), proportion(1.0 - by_episode, n)
    differences = (tuple(different), differs_by_episode)
    return Cell(env, algo, len(group), epochs, epoch_return, episodes, ret, over, paper, *differences)


def table1_cells() -> dict[tuple[str, str], Cell]:
    """Return the cells of Table 1 and of the allowance by task and method."""
    found = [*rows(grid="table1"), *rows(grid="allowance")]
    groups = {
        (env, algo): [row for row in found if (row["env"], row["algo"]) == (env, algo)]
        for env in TASKS
        for algo in METHODS
    }
    return {place: table1_cell(*place, group) for place, group in groups.items() if group}


# Text


def markdown_table(headings: Sequence[str], lines: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return a Markdown table whose first ``left`` columns are left-aligned."""
    rule = "|---" * left + "|---:" * (len(headings) - left) + "|"
    return "\n".join([f"| {' | '.join(headings)} |", rule, *(f"| {' | '.join(line)} |" for line in lines)])


def main() -> None:
    """Write results/summary.csv, or with ``--endpoints`` results/endpoints.csv."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--endpoints", nargs=2, metavar=("GRID", "FOLDER"), help="evaluate the runs in FOLDER")
    parser.add_argument("--episodes", type=int, default=300)
    args = parser.parse_args()
    if args.endpoints:
        grid, folder = args.endpoints
        new = endpoints(grid, Path(folder), args.episodes)
        kept = [row for row in rows("endpoints.csv") if row["grid"] != grid]
        order = sorted([*kept, *new], key=lambda row: tuple(row[name] for name in KEY))
        write_rows(RESULTS / "endpoints.csv", order)
        return
    for missing in sorted(set(ALL_GRIDS) - set(GRIDS)):
        print(f"{missing}: left out, there is no {archive(missing).name} yet")
    write_rows(RESULTS / "summary.csv", summarize())


if __name__ == "__main__":
    main()
