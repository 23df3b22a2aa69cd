"""``steingate keep``: small copies of runs, from which every report can be made again."""

import argparse
import sys

from steingate.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("runs", nargs="+", metavar="RUNS", help="run folders, or folders that hold some")
    parser.add_argument("--out", required=True, metavar="DIR", help="where the small copies go")
    parser.add_argument("--all", action="store_true", help="also runs that are not finished")


def run(args: argparse.Namespace) -> int:
    """Write the copies, print how many and how large they are, and return the exit status."""
    from steingate.report.archive import keep_runs
    from steingate.report.loading import load_runs, require_runs

    require_runs(args.runs)
    runs, skipped = load_runs(args.runs)
    for item in skipped:
        print(f"steingate: left out {item.path}: {item.reason}", file=sys.stderr)
    kept = [each for each in runs if each.complete or args.all]
    for each in runs:
        if each.path not in {one.path for one in kept}:
            rest = f"it has {each.epochs} of {each.planned} epochs (--all takes it too)."
            print(f"steingate: left out {each.path}: {rest}", file=sys.stderr)
    if not kept:
        raise InputError(f"There is no finished run to keep in {', '.join(args.runs)}.")
    folders = keep_runs(kept, args.runs, args.out)
    size = sum(file.stat().st_size for folder in folders for file in folder.iterdir())
    print(f"{len(folders)} runs, {size / 1e6:.1f} MB in {args.out}")
    return 0
