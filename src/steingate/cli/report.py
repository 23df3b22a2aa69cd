"""``steingate report``: one page, tables and figures from run folders."""

import argparse
import sys

from rich.console import Console

from steingate.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("runs", nargs="+", metavar="RUNS", help="run folders, or folders that hold some")
    parser.add_argument(
        "--out", default="report.html", metavar="FILE", help="page to write (default: report.html)"
    )
    parser.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="FILE",
        help="also write the tables: .md or .tex as shown, .csv with every number; may be repeated",
    )
    parser.add_argument(
        "--figure",
        action="append",
        default=[],
        metavar="FILE",
        help="also draw the curves: .png, .svg or .pdf; may be repeated",
    )
    parser.add_argument(
        "--frontier",
        action="append",
        default=[],
        metavar="FILE",
        help="also draw return against the share of episodes over the limit, as --figure does",
    )
    parser.add_argument("--title", default="SteinGate runs", metavar="TEXT", help="heading of the page")


def run(args: argparse.Namespace) -> int:
    """Read the runs, print the table, write what was asked for, and return the exit status."""
    from steingate.report.evidence import gather
    from steingate.report.formats import to_rich
    from steingate.report.loading import require_runs
    from steingate.report.page import write_page
    from steingate.report.report_tables import feasibility_table, write_tables

    require_runs(args.runs)
    evidence = gather(args.runs)
    for item in evidence.skipped:
        print(f"steingate: left out {item.path}: {item.reason}", file=sys.stderr)
    if not evidence.runs:
        raise InputError(f"There is no run to report in {', '.join(args.runs)}; steingate train makes one.")
    # A pipe has no width: rows would be torn apart at 80 columns.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    console.print(to_rich(feasibility_table(evidence.summaries)))
    write_page(evidence, args.out, args.title)
    print(args.out)
    for path in args.table:
        write_tables(evidence, path)
        print(path)
    for path in args.figure:
        from steingate.report.curves_figure import save_curves_figure

        save_curves_figure(evidence, path)
        print(path)
    for path in args.frontier:
        from steingate.report.frontier import save_frontier_figure

        save_frontier_figure(evidence, path)
        print(path)
    return 0
