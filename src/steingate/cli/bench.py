"""``steingate bench``: a grid of runs on this machine or on a Ray cluster, taken up where it stopped."""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steingate.cli.table import escape, print_rows
from steingate.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from steingate.experiments.forecast import Forecast
    from steingate.experiments.grid import Grid
    from steingate.experiments.launch import Outcome
    from steingate.training.config import RunConfig

_SIZES = ("total_steps", "steps_per_epoch", "num_envs", "seeds", "variant", "checkpoint_every", "out")
FAILED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "grid",
        nargs="?",
        metavar="GRID",
        help="name of a grid, or a Python file with grid(sizes); see --list",
    )
    parser.add_argument("--list", action="store_true", help="list the grids there are")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="list the runs, how far they are and how long they should take; start none",
    )
    parser.add_argument(
        "--engine", choices=("local", "ray"), default="local", help="where the runs go on (default: local)"
    )
    parser.add_argument("--workers", type=int, metavar="N", help="runs at a time (default: one per core)")
    parser.add_argument(
        "--address",
        metavar="HOST",
        help="Ray cluster, such as auto (default: one of its own, on this machine)",
    )
    parser.add_argument(
        "--nodes",
        type=int,
        metavar="N",
        help="with --engine ray: start a cluster of N nodes on this machine, to try what a lost one does",
    )
    paper = "(default: the grid's own, mostly"
    for name, text in (
        ("total-steps", f"environment steps of each run {paper} 10 million)"),
        ("steps-per-epoch", f"environment steps per policy update {paper} 20000)"),
        ("num-envs", f"environments stepped together {paper} 8)"),
    ):
        parser.add_argument(f"--{name}", type=_whole, default=argparse.SUPPRESS, metavar="N", help=text)
    parser.add_argument(
        "--seeds",
        nargs="+",
        default=argparse.SUPPRESS,
        metavar="S",
        help=f"such as 0-5 or 0 2 4 {paper} 0-5)",
    )
    parser.add_argument(
        "--variant",
        choices=("corrected", "published"),
        default=argparse.SUPPRESS,
        help="of the algorithms (default: published, as in the paper)",
    )
    parser.add_argument(
        "--checkpoint-every",
        type=_whole,
        default=argparse.SUPPRESS,
        metavar="N",
        help="epochs between checkpoints",
    )
    parser.add_argument(
        "--out",
        default=argparse.SUPPRESS,
        metavar="DIR",
        help="folder of the grid's runs (default: runs/GRID)",
    )
    parser.add_argument(
        "--kept",
        metavar="DIR",
        help="count runs that steingate keep has copied to this folder as finished, and report them too",
    )
    parser.add_argument(
        "--no-report", action="store_true", help="write no page, tables and figure at the end"
    )


def run(args: argparse.Namespace) -> int:
    """Run the grid, say what became of each run, and return 1 if some failed."""
    try:
        from steingate.experiments.grid import BUILT_IN, load_grid, plan, resize
        from steingate.experiments.launch import Outcome, sort_out
    except ModuleNotFoundError as error:
        raise MissingExtraError("steingate bench", "train") from error
    if args.list:
        grids = [load_grid(name) for name in BUILT_IN]
        print_rows(
            "Grids", [(grid.name, f"{len(plan(grid, grid.sizes))} runs", grid.summary) for grid in grids]
        )
        return 0
    if args.grid is None:
        raise InputError("Name a grid or a Python file; steingate bench --list shows the grids there are.")
    if args.address is not None and args.engine != "ray":
        raise InputError("--address names a Ray cluster: add --engine ray.")
    if args.nodes is not None and (args.engine != "ray" or args.address is not None):
        raise InputError("--nodes starts a Ray cluster: add --engine ray, and no --address.")
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
    """Return the seeds of words such as ``0-5``, ``7`` and ``8,9``, each once, in the given order."""
    seeds: dict[int, None] = {}
    for word in ",".join(words).split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", word)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last < first + 100_000:
            raise InputError(f"--seeds has {word!r}: write whole numbers and ranges such as 0-5.")
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

    # Made before anything else, so that a missing package is said even when nothing is left to do.
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
        print(f"{grid.name}: {title}", file=sys.stderr)
        done = len(runs) - len(todo)
        with LiveTable(grid.name, out, todo, done, engine.slots, forecast) as progress:
            outcomes = launch(todo, engine, progress, stop)
    if stop() and any(outcome.status in ("stopped", "not started") for outcome in outcomes):
        left = sum(outcome.status in ("stopped", "not started") for outcome in outcomes)
        print(
            f"Stopped with {left} of {len(outcomes)} runs left; the same command goes on with them.",
            file=sys.stderr,
        )
        stop.leave()
    return outcomes


def _outlook(
    runs: "Sequence[RunConfig]", todo: "Sequence[RunConfig]", slots: int | None, cores: int | None
) -> "tuple[Forecast, str]":
    """Return what is known about the speeds of a grid's runs, and a line about how long they should take."""
    from steingate.experiments.forecast import Forecast
    from steingate.experiments.times import expectation

    forecast = Forecast(todo, runs, crowd=(slots or 1) / (cores or slots or 1))
    counts = f"{len(runs)} runs, {len(todo)} to do"
    if not todo:
        return forecast, counts
    return forecast, f"{counts}: {expectation(forecast, todo, slots, cores, datetime.now())}"


def _slots(args: argparse.Namespace, runs: int) -> int | None:
    """Return how many runs would go on at a time; None on a cluster that has not been asked."""
    from steingate.experiments.local import LocalEngine

    if args.address is not None and args.workers is None:
        return None
    return LocalEngine(args.workers, runs).slots


def _cores(args: argparse.Namespace) -> int | None:
    """Return the number of cores of this machine; None where the runs go on elsewhere."""
    from steingate.experiments.local import available_cores

    return len(available_cores()) if args.address is None else None


def _list_runs(runs: "Sequence[RunConfig]", known: "Sequence[Outcome]", title: str) -> None:
    status = {outcome.path: outcome.status for outcome in known}
    rows = [(str(cfg.path), status.get(cfg.path, "to do"), f"{cfg.epochs} epochs") for cfg in runs]
    print_rows(escape(title), rows)


def _show(name: str, outcomes: "Sequence[Outcome]") -> None:
    """Print how many runs of each kind ended how, then each failure in its own words."""
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
            print(f"steingate: {outcome.path} failed: {outcome.message}", file=sys.stderr)


def _kept(runs: "Sequence[RunConfig]", out: Path, folder: Path) -> "list[RunConfig]":
    """Return the runs that have a small copy in ``folder``, at the place that they have in ``out``."""
    from steingate.experiments.folders import holds
    from steingate.report.loading import load_run
    from steingate.runs import RunFolder

    if not folder.is_dir():
        raise InputError(f"--kept {folder} is not a folder: name one that steingate keep has written.")
    places = [(cfg, folder / cfg.path.relative_to(out)) for cfg in runs]
    return [
        cfg
        for cfg, place in places
        if holds(RunFolder(place), cfg, "--kept") and not cfg.path.exists() and load_run(place).complete
    ]


def _report(folders: "Sequence[str]", title: str) -> None:
    """Write page, tables and figure into the first folder, that of the grid, and print where they are."""
    from steingate.cli.report import add_arguments
    from steingate.cli.report import run as report

    out = Path(folders[0])
    out.mkdir(parents=True, exist_ok=True)  # it is not there yet if all runs were kept elsewhere
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    files = ["--table", f"{out}/table.md", "--table", f"{out}/table.csv", "--figure", f"{out}/curves.png"]
    report(parser.parse_args([*folders, "--out", f"{out}/report.html", "--title", title, *files]))


def _whole(text: str) -> int:
    try:
        number = float(text.replace("_", ""))
    except ValueError:
        number = float("nan")
    if not number.is_integer():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(number)
