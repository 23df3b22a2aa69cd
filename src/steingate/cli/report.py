"""``steingate report``, ``steingate archive`` and ``steingate dashboard``: reports from run folders."""

import argparse
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from steingate.cli.output import warn
from steingate.cli.parser import Parser
from steingate.errors import InputError

if TYPE_CHECKING:
    from steingate.report.load import Run, Skipped

RUNS = "run folders, archives, or folders that contain some"


def report_arguments(parser: Parser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUNS", help=RUNS)
    parser.option("--out", "FILE", "page to write", default="report.html")
    for name, text in (
        ("--table", "also write the tables: .md or .tex as shown, .csv with every number; repeatable"),
        ("--figure", "also plot the learning curves: .png, .svg or .pdf; repeatable"),
        ("--frontier", "also plot return against violation rate: .png, .svg or .pdf; repeatable"),
    ):
        parser.option(name, "FILE", text, action="append", default=[])
    parser.option("--limit", "X", "judge all runs at this cost limit (default: that of their training)", type=float)
    parser.option("--title", "TEXT", "heading of the page", default="SteinGate runs")


def report(args: argparse.Namespace) -> int:
    """Write a page, tables and figures; print the summary table of the runs and the names of the files."""
    from steingate.report.figures import curves_figure, frontier_figure
    from steingate.report.page import verdicts, write_page
    from steingate.report.plot_style import figure_kind, save_figure
    from steingate.report.summary import make_report
    from steingate.report.tables import feasibility_table, table_kind, to_text, write_tables

    if args.limit is not None and not 0.0 <= args.limit < inf:
        raise InputError(f"--limit must be a number from 0 up, got {args.limit:g}.")
    for check, paths in ((table_kind, args.table), (figure_kind, [*args.figure, *args.frontier])):
        for path in paths:
            check(path)
    found = make_report(*_load(args.runs, args.limit))
    write_page(found, args.out, args.title)
    for path in args.table:
        write_tables(found, path)
    for draw, paths in ((curves_figure, args.figure), (frontier_figure, args.frontier)):
        for path in paths:
            save_figure(draw(found), path)
    print(to_text(feasibility_table(found.summaries)))
    if len(found.runs) == 1:
        print(*verdicts(found), sep="\n")
    print(args.out, *args.table, *args.figure, *args.frontier, sep="\n")
    return 0


def _load(roots: Sequence[str], limit: float | None = None) -> "tuple[list[Run], list[Skipped]]":
    """Load runs and warn about those that are skipped; an ``InputError`` if there is none."""
    from steingate.report.load import load_runs, require_runs

    require_runs(roots)
    runs, skipped = load_runs(roots, limit)
    for item in skipped:
        warn(f"steingate: skipped {item.path}: {item.reason}")
    for run in runs:
        if run.edited:
            warn(f"steingate: {run.path} was edited after training: {', '.join(run.edited)}.")
    if not runs:
        raise InputError(f"There is no run in {', '.join(roots)}; steingate train makes one.")
    return runs, skipped


def archive_arguments(parser: Parser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUNS", help=RUNS)
    parser.option("--out", "FILE", "archive to write: NAME.jsonl.xz", required=True)
    parser.flag("--all", "also include unfinished runs")
    parser.option("--digits", "N", "round numbers to N significant digits (default: exact)", type=int)


def archive(args: argparse.Namespace) -> int:
    """Write the archive, without edited runs, and print its size."""
    from steingate.report.archive import write_archive

    runs = [run for run in _load(args.runs)[0] if not run.edited]
    included = [run for run in runs if run.complete or args.all]
    for run in runs:
        if not (run.complete or args.all):
            epochs = f"{run.n_epochs} of {run.planned_epochs} epochs"
            warn(f"steingate: skipped {run.path}: {epochs} (--all includes it).")
    if not included:
        raise InputError(f"There is no finished run in {', '.join(args.runs)}.")
    write_archive(included, args.runs, args.out, args.digits)
    print(f"{len(included)} runs, {Path(args.out).stat().st_size / 1e6:.1f} MB in {args.out}")
    return 0


def dashboard_arguments(parser: Parser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUNS", help=RUNS)
    parser.option("--port", "N", "port on 127.0.0.1; 0 for any", type=int, default=8265)


def dashboard(args: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    from steingate.report.dashboard import ADDRESS, make_server
    from steingate.report.load import require_runs

    require_runs(args.runs)
    with make_server(args.runs, args.port) as server:
        print(f"http://{ADDRESS}:{server.server_address[1]}/", flush=True)
        print("Press Ctrl-C to stop.", flush=True)
        server.serve_forever(poll_interval=0.2)
    return 0
