"""Keep a grid's finished runs: ``python results/keep_grid.py GRID RUNS``, or without words the summary alone.

Writes small copies (``steingate keep``) to ``results/kept/GRID``, evaluates the last policies of the grids in
``ENDPOINTS``, and writes ``summary.csv`` again, a row per kept run, from the copies. Runs that are kept
already stay as they are, so the command can be repeated while a grid goes on, and
``steingate bench GRID --kept results/kept/GRID`` does not do them again.
"""

import sys
from pathlib import Path

import numpy as np
from rows import Row, read_rows, write_rows

from steingate.report.archive import keep_run
from steingate.report.loading import Run, cut, load_run, load_runs
from steingate.report.stats import cvar, exceedance, feasible_return, tail_feasibility
from steingate.report.summary import tail_episodes, tail_epochs
from steingate.training.evaluate import evaluate

KEPT = Path(__file__).parent / "kept"
MILLION = 1_000_000
ENDPOINTS = {"allowance": 300, "goal": 100, "table1": 100}  # episodes without noise for each last policy


def place_of(run: Run, grid: str) -> Row:
    """Return what tells a kept run from the others."""
    folder = run.path.relative_to(KEPT / grid).parents[2]  # below it are algorithm, task, seed
    kind = "" if folder == Path() else str(folder)
    return {"grid": grid, "kind": kind, "env": run.env, "algo": run.algo, "seed": str(run.seed)}


def summary_row(run: Run, grid: str) -> Row:
    """Return the numbers of a run over the last fifth of its epochs."""
    epoch_return, epoch_cost = tail_epochs(run)
    episode_return, episode_cost = tail_episodes(run)
    whole = {
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
        "cost_sd": np.std(epoch_means(run, len(epoch_cost))),
        "cvar90": cvar(episode_cost, 0.9),
        "over_in_training": exceedance(run.episodes["cost"], run.limit),
        "highest_mean_cost": highest_mean_cost(run),
        "minutes": run.progress["Time/Total"][-1] / 60.0,
    }
    return (
        place_of(run, grid)
        | {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in whole.items()}
        | {name: "" if np.isnan(value) else f"{value:.4f}" for name, value in numbers.items()}
    )


def epoch_means(run: Run, last: int) -> list[float]:
    """Return the mean cost of the episodes of each of the last epochs."""
    epoch, cost = run.episodes["epoch"], run.episodes["cost"]
    return [cost[epoch == number].mean() for number in range(run.epochs - last, run.epochs)]


def highest_mean_cost(run: Run, after: float = MILLION) -> float:
    """Return the highest mean cost of a hundred episodes from the second million steps on, NaN before."""
    later = run.recent["cost"][run.progress["TotalEnvSteps"] > after]
    return float(later.max()) if len(later) else np.nan


def endpoint_row(source: Run, kept: Run, grid: str) -> Row:
    """Return what a trained policy does without exploration noise."""
    outcome = evaluate(source.path, ENDPOINTS[grid], policy="last")
    found = outcome.episodes
    return place_of(kept, grid) | {
        "episodes": str(len(found.cost)),
        "return": f"{found.ret.mean():.3f}",
        "cost": f"{found.cost.mean():.3f}",
        "over": str(outcome.over),
        "at_most": f"{outcome.bound:.4f}",
        "cvar90": f"{cvar(found.cost, 0.9):.2f}",
    }


def order(row: Row) -> tuple[str, ...]:
    """Return the place of a row in its file."""
    return tuple(row[name] for name in ("grid", "kind", "env", "algo", "seed"))


def keep(grid: str, root: str) -> None:
    """Keep what is finished and new."""
    runs, skipped = load_runs([root])
    for item in skipped:
        print(f"left out {item.path}: {item.reason}", file=sys.stderr)
    known = {order(row): row for row in read_rows(KEPT / "endpoints.csv")}
    for run in runs:
        target = KEPT / grid / run.path.relative_to(root)
        if not run.complete:
            continue
        if not (target / "config.json").exists():
            keep_run(run, target)
        if grid in ENDPOINTS:
            kept = load_run(target)
            if order(place_of(kept, grid)) not in known:
                row = endpoint_row(run, kept, grid)
                known[order(row)] = row
                write_rows(KEPT / "endpoints.csv", [known[key] for key in sorted(known)])


def summarize() -> None:
    """Write ``summary.csv`` and ``first_million.csv`` from the copies."""
    rows = []
    for folder in sorted(path for path in KEPT.iterdir() if path.is_dir()):
        runs, _ = load_runs([folder])
        rows += [summary_row(run, folder.name) for run in runs]
    write_rows(KEPT / "summary.csv", sorted(rows, key=order))
    stein = sorted((KEPT / "table1" / "steingate").glob("*/seed-0"))
    write_rows(
        KEPT / "first_million.csv", [summary_row(cut(load_run(path), MILLION), "table1") for path in stein]
    )


if __name__ == "__main__":
    if len(sys.argv) not in (1, 3):
        raise SystemExit(__doc__)
    if len(sys.argv) == 3:
        keep(sys.argv[1], sys.argv[2].rstrip("/"))
    summarize()
