"""``steingate bench``: train a grid of runs, locally or on a Ray cluster; finished runs are skipped."""

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from steingate.cli.output import print_rows, warn
from steingate.cli.parser import Parser
from steingate.cli.report import write_report
from steingate.errors import InputError

if TYPE_CHECKING:
    from steingate.experiments.forecast import Forecast
    from steingate.experiments.grid import Grid
    from steingate.experiments.launch import Outcome
    from steingate.training.config import RunConfig

_SIZES = ("total_steps", "steps_per_epoch", "num_envs", "seeds", "variant", "checkpoint_every", "out")
FAILED = 1


def bench_arguments(parser: Parser) -> None:
    """Add the options of ``bench``."""
    add = parser.add_argument
    add(
        "grid",
        nargs="?",
        metavar="GRID",
        help="name of a grid, or a Python file with grid(sizes); see --list",
    )
    add("--list", action="store_true", help="list the grids")
    add("--dry-run", action="store_true", help="list the runs and their state, and start none")
    add("--engine", choices=("local", "ray"), default="local", help="where the runs go (default: local)")
    add("--workers", type=int, metavar="N", help="runs at a time (default: one per core)")
    add("--address", metavar="HOST", help="Ray cluster, such as auto (default: a new one on this machine)")
    add(
        "--nodes", type=int, metavar="N", help="with --engine ray: start a cluster of N nodes on this machine"
    )
    default = "(default: the grid's own, mostly"
    for name, text in (
        ("total-steps", f"environment steps of each run {default} 10 million)"),
        ("steps-per-epoch", f"environment steps per policy update {default} 20000)"),
        ("num-envs", f"environments stepped together {default} 8)"),
        ("checkpoint-every", "epochs between checkpoints"),
    ):
        add(f"--{name}", type=_integer, default=argparse.SUPPRESS, metavar="N", help=text)
    seeds = f"such as 0-5 or 0 2 4 {default} 0-5)"
    add("--seeds", nargs="+", default=argparse.SUPPRESS, metavar="S", help=seeds)
    add(
        "--variant",
        choices=("corrected", "published"),
        default=argparse.SUPPRESS,
        help="variant of the algorithms (default: published, as in the paper)",
    )
    add("--out", default=argparse.SUPPRESS, metavar="DIR", help="folder of the runs (default: runs/GRID)")
    add("--kept", metavar="DIR", help="archived runs; they count as finished and are reported too")
    add("--no-report", action="store_true", help="write no page, tables and figure at the end")


def bench(args: argparse.Namespace) -> int:
    """Run the grid, print the outcome of each run, and return 1 if some failed."""
    from steingate.experiments.grid import BUILT_IN, load_grid, plan, resize
    from steingate.experiments.launch import Outcome, sort_out

    if args.list:
        grids = [load_grid(name) for name in BUILT_IN]
        print_rows(
            "Grids", [(grid.name, f"{len(plan(grid, grid.sizes))} runs", grid.summary) for grid in grids]
        )
        return 0
    if args.grid is None:
        raise InputError("Give the name of a grid or a Python file; steingate bench --list lists the grids.")
    if args.address is not None and args.engine != "ray":
        raise InputError("--address needs --engine ray.")
    if args.nodes is not None and (args.engine != "ray" or args.address is not None):
        raise InputError("--nodes needs --engine ray and no --address.")
    grid = load_grid(args.grid)
    changes = {name: getattr(args, name) for name in _SIZES if hasattr(args, name)}
    if "seeds" in changes:
        changes["seeds"] = read_seeds(changes["seeds"])
    sizes = resize(grid, changes)
    runs = plan(grid, sizes)
    kept = [] if args.kept is None else _kept(runs, Path(sizes.out), Path(args.kept))
    todo, known = sort_out([cfg for cfg in runs if cfg not in kept])
    known += [Outcome(cfg, "already finished") for cfg in kept]
    if args.dry_run:
        _list_runs(runs, known, _outlook(runs, todo, _slots(args, len(todo)), _cores(args))[1])
        return 0
    outcomes = [*known, *_launch(args, grid, sizes.out, todo, runs)]
    _show(grid.name, outcomes)
    if not args.no_report and any(outcome.status.endswith("finished") for outcome in outcomes):
        _report([sizes.out, *([args.kept] if kept else [])], grid.name)
    return FAILED if any(outcome.status == "failed" for outcome in outcomes) else 0


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


def _launch(
    args: argparse.Namespace,
    grid: "Grid",
    out: str,
    todo: "Sequence[RunConfig]",
    runs: "Sequence[RunConfig]",
) -> "list[Outcome]":
    from steingate.experiments.launch import launch
    from steingate.experiments.live import LiveTable
    from steingate.experiments.local import LocalEngine
    from steingate.experiments.ray_engine import RayEngine
    from steingate.runs import RunFolder, folder_lock
    from steingate.training.stop import stop_on_signals

    # First, so that a missing package is reported even if nothing is left to do.
    place: Any = (
        LocalEngine(args.workers, len(todo))
        if args.engine == "local"
        else RayEngine(args.workers, len(todo), args.address, args.nodes)
    )
    if not todo:
        return []
    with (
        folder_lock(RunFolder(Path(out))),
        place as engine,
        stop_on_signals() as stop,
    ):
        forecast, title = _outlook(runs, todo, engine.slots, _cores(args))
        warn(f"{grid.name}: {title}")
        done = len(runs) - len(todo)
        with LiveTable(grid.name, out, todo, done, engine.slots, forecast) as progress:
            outcomes = launch(todo, engine, progress, stop)
    if stop() and any(outcome.status in ("stopped", "not started") for outcome in outcomes):
        left = sum(outcome.status in ("stopped", "not started") for outcome in outcomes)
        warn(f"Stopped with {left} of {len(outcomes)} runs left; run the same command to continue.")
        stop.leave()
    return outcomes


def _outlook(
    runs: "Sequence[RunConfig]", todo: "Sequence[RunConfig]", slots: int | None, cores: int | None
) -> "tuple[Forecast, str]":
    """Return a forecast of the durations of a grid's runs, and a line that describes it."""
    from steingate.experiments.forecast import Forecast
    from steingate.experiments.times import expectation

    forecast = Forecast(todo, runs, crowd=(slots or 1) / (cores or slots or 1))
    counts = f"{len(runs)} runs, {len(todo)} to do"
    if not todo:
        return forecast, counts
    return forecast, f"{counts}: {expectation(forecast, todo, slots, cores, datetime.now())}"


def _slots(args: argparse.Namespace, runs: int) -> int | None:
    """Return the number of runs at a time; None if it is unknown (on a cluster)."""
    from steingate.experiments.local import LocalEngine

    if args.address is not None and args.workers is None:
        return None
    return LocalEngine(args.workers, runs).slots


def _cores(args: argparse.Namespace) -> int | None:
    """Return the number of cores of this machine; None for a cluster."""
    from steingate.experiments.local import available_cores

    return len(available_cores()) if args.address is None else None


def _list_runs(runs: "Sequence[RunConfig]", known: "Sequence[Outcome]", title: str) -> None:
    status = {outcome.path: outcome.status for outcome in known}
    rows = [(str(cfg.path), status.get(cfg.path, "to do"), f"{cfg.epochs} epochs") for cfg in runs]
    print_rows(escape(title), rows)


def _show(name: str, outcomes: "Sequence[Outcome]") -> None:
    """Print the number of finished and failed runs per folder, then the message of each failure."""
    kinds: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        kinds.setdefault(str(outcome.path.parent), Counter())[outcome.status] += 1
    rows = []
    for folder, counts in sorted(kinds.items()):
        finished = counts["finished"] + counts["already finished"]
        note = f"{counts['already finished']} of them before" if counts["already finished"] else ""
        failed = f"{counts['failed']} failed" if counts["failed"] else ""
        rows.append((folder, f"{finished} finished", "  ".join(filter(None, (note, failed)))))
    print_rows(f"{escape(name)}: {len(outcomes)} runs", rows)
    for outcome in outcomes:
        if outcome.status == "failed":
            warn(f"steingate: {outcome.path} failed: {outcome.message}")


def _kept(runs: "Sequence[RunConfig]", out: Path, folder: Path) -> "list[RunConfig]":
    """Return the runs that are archived in ``folder``."""
    from steingate.experiments.folders import holds
    from steingate.report.load import load_run
    from steingate.runs import RunFolder

    if not folder.is_dir():
        raise InputError(f"--kept {folder} is not a folder of archived runs.")
    places = [(cfg, folder / cfg.path.relative_to(out)) for cfg in runs]
    return [
        cfg
        for cfg, place in places
        if holds(RunFolder(place), cfg, "--kept") and not cfg.path.exists() and load_run(place).complete
    ]


def _report(folders: list[str], title: str) -> None:
    """Write page, tables and figure into the folder of the grid."""
    out = Path(folders[0])
    out.mkdir(parents=True, exist_ok=True)  # it does not exist yet if all runs are archived
    tables = [f"{out}/table.md", f"{out}/table.csv"]
    write_report(folders, f"{out}/report.html", title, tables, [f"{out}/curves.png"])


def _integer(text: str) -> int:
    try:
        number = float(text.replace("_", ""))
    except ValueError:
        number = float("nan")
    if not number.is_integer():
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer")
    return int(number)
