"""``steingate bench``: train a grid of runs, locally or on a Ray cluster; finished runs are skipped."""

import argparse
import re
import time
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from steingate.cli.output import print_rows, warn
from steingate.cli.parser import Parser, add_options
from steingate.cli.report import report, report_arguments
from steingate.errors import InputError
from steingate.settings import list_options, with_options

if TYPE_CHECKING:
    from steingate.experiments.launch import Outcome
    from steingate.training.config import RunConfig

FAILED = 1


def bench_arguments(parser: Parser) -> None:
    from steingate.experiments.grid import Sizes

    parser.add_argument("grid", nargs="?", metavar="GRID", help="name of a grid, or a Python file with grid(sizes)")
    parser.flag("--list", "list the grids")
    parser.flag("--dry-run", "list the runs and their state, and start none")
    parser.option("--tasks", "TASK", "only these tasks, such as CarGoal1", nargs="+", default=[])
    parser.option("--algos", "ALGO", "only these algorithms", nargs="+", default=[])
    parser.option("--workers", "N", "runs at a time (default: one per core)", type=int)
    parser.option("--ray", "ADDRESS", "use a Ray cluster: local starts one; auto or HOST:PORT")
    parser.flag("--no-report", "write no page, tables and figure at the end")
    sizes = parser.add_argument_group("sizes of the runs (some grids have other defaults)")
    add_options(sizes, [option for option in list_options(Sizes()) if option.name not in ("seeds", "out")])
    seeds = "random seeds, such as 0-5 or 0 2 4 (default: 0-5)"
    sizes.add_argument("--seeds", nargs="+", default=argparse.SUPPRESS, metavar="S", help=seeds)
    out = "folder of the runs (default: runs/GRID)"
    sizes.add_argument("--out", default=argparse.SUPPRESS, metavar="DIR", help=out)


def bench(args: argparse.Namespace) -> int:
    """Run the grid, print the outcome of each run, and return 1 if some failed."""
    from steingate.experiments.grid import filter_runs, load_grid, plan_runs
    from steingate.experiments.grids import GRIDS
    from steingate.experiments.launch import find_todo

    if args.list:
        rows = [(name, f"{len(plan_runs(grid, grid.sizes))} runs", grid.summary) for name, grid in GRIDS.items()]
        print_rows("Grids", rows)
        return 0
    if args.grid is None:
        raise InputError("Give the name of a grid or a Python file; steingate bench --list lists the grids.")
    grid = load_grid(args.grid)
    names = {option.name for option in list_options(grid.sizes)}
    given = {name: value for name, value in vars(args).items() if name in names}
    if "seeds" in given:
        given["seeds"] = read_seeds(given["seeds"])
    sizes = with_options(grid.sizes, given, "steingate bench")
    runs = filter_runs(plan_runs(grid, sizes), args.tasks, args.algos)
    todo, outcomes = find_todo(runs)
    if args.dry_run:
        status = {outcome.path: outcome.status for outcome in outcomes}
        rows = [(str(cfg.path), status.get(cfg.path, "to do"), f"{cfg.epochs} epochs") for cfg in runs]
        print_rows(f"{len(runs)} runs, {len(todo)} to do", rows)
        return 0
    outcomes += _launch(args, grid.name, Path(sizes.out), todo, len(runs))
    count = Counter(outcome.status for outcome in outcomes)
    finished = count["finished"] + count["already finished"]
    print(f"{grid.name}: {finished} finished, {count['already finished']} of them before, {count['failed']} failed")
    for outcome in outcomes:
        if outcome.status == "failed":
            warn(f"steingate: {outcome.path} failed: {outcome.message}")
    if finished and not args.no_report:
        files = ("--out", "report.html"), ("--table", "table.md"), ("--table", "table.csv"), ("--figure", "curves.png")
        words = [word for option, name in files for word in (option, f"{sizes.out}/{name}")]
        parser = Parser("steingate report")
        report_arguments(parser)
        report(parser.parse_args([sizes.out, "--title", grid.name, *words]))
    return FAILED if count["failed"] else 0


def read_seeds(words: Sequence[str]) -> tuple[int, ...]:
    """Parse seeds such as ``0-5``, ``7`` and ``8,9``; duplicates are dropped, the order is kept."""
    seeds: dict[int, None] = {}
    for word in ",".join(words).split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", word)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last < first + 100_000:
            raise InputError(f"--seeds must be integers and ranges such as 0-5, got {word!r}.")
        seeds |= dict.fromkeys(range(first, last + 1))
    return tuple(seeds)


def _launch(args: argparse.Namespace, name: str, out: Path, todo: "Sequence[RunConfig]", total: int) -> "list[Outcome]":
    """Run what is left to do, with a line per finished run."""
    from steingate.experiments.engines import LocalEngine, RayEngine
    from steingate.experiments.launch import launch
    from steingate.runs import RunFolder, folder_lock
    from steingate.training.stop import stop_on_signals

    # First, so that a missing package is reported even if nothing is left to do.
    workers, runs = args.workers, len(todo)
    new_engine = LocalEngine(workers, runs) if args.ray is None else RayEngine(workers, runs, args.ray)
    if not todo:
        return []
    with folder_lock(RunFolder(out)), new_engine as engine, stop_on_signals() as stop:
        before, start = total - len(todo), time.monotonic()
        done = before
        warn(f"{name}: {total} runs, {len(todo)} to do, {engine.slots} at a time")

        def notify(cfg: "RunConfig", text: str) -> None:
            nonlocal done
            done += text.startswith(("finished", "failed"))
            path = cfg.path.resolve().relative_to(out.resolve())
            seconds = (time.monotonic() - start) / max(done - before, 1) * (total - done)
            left = f", about {timedelta(seconds=round(seconds))} left" if before < done < total else ""
            warn(f"{done} of {total}{left}: {path} {text}")

        outcomes = launch(todo, engine, notify, stop)
    left = sum(outcome.status in ("stopped", "not started") for outcome in outcomes)
    if stop() and left:
        warn(f"Stopped with {left} of {total} runs left; run the same command to continue.")
        stop.leave()
    return outcomes
