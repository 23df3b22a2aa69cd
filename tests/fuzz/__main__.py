"""Run with python -m tests.fuzz: damage run folders and cost files, kill runs, and count what happened.

Not part of the test suite: it takes minutes. Every try is decided by the seed and its number, so that a
failure can be repeated alone with ``--only NUMBER``. A try fails when a command leaves a traceback or a
warning, ends with another status than 0 to 4, complains without a sentence, hangs, or goes on from damaged
files to other numbers.
"""

import argparse
import csv
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.commands import samples
from tests.fuzz.kills import kill_runs
from tests.fuzz.tries import Base, attempt

COLUMNS = ["what", "tries", "refused in a sentence", "went on", "failures"]


def main() -> int:
    """Run the campaign and return 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--tries", type=int, default=10_000, help="damaged files, in this process")
    parser.add_argument("--samples", type=int, default=40, help="commands in processes of their own")
    parser.add_argument("--kills", type=int, default=100, help="kills and signals at random moments")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, help="damage no further file after so long")
    parser.add_argument("--only", type=int, help="repeat one try and show what it did")
    parser.add_argument("--scratch", help="folder for run folders; one in memory is fast")
    parser.add_argument("--out", type=Path, help="CSV file for the table")
    args = parser.parse_args()
    # A shell starts what is in the background with Ctrl-C ignored, and commands would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    counts: dict[str, Counter[str]] = {}
    failures: list[str] = []

    def note(kind: str, outcome: str, what: str) -> None:
        counts.setdefault(kind, Counter())[outcome] += 1
        if outcome == "failed":
            failures.append(what)
            print(f"FAILED {what}", flush=True)

    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=args.scratch) as scratch:
        if args.tries:
            base = Base(Path(scratch))
            for number in range(args.tries) if args.only is None else [args.only]:
                if args.minutes is not None and time.monotonic() - began > 60 * args.minutes:
                    break
                kind, outcome, what = attempt(base, args.seed, number)
                note(kind, outcome, f"try {number}: {what}")
                if args.only is not None:
                    print(what)
                if number % 1000 == 999:
                    print(
                        f"{number + 1} tries, {len(failures)} failures, {time.monotonic() - began:.0f} s",
                        flush=True,
                    )
        if args.samples and args.only is None:
            for kind, outcome, what in samples(Path(scratch), args.seed, args.samples):
                note(kind, outcome, what)
        if args.kills and args.only is None:
            for kind, outcome, what in kill_runs(Path(scratch), args.seed, args.kills):
                note(kind, outcome, what)
    rows = [
        [kind, sum(found.values()), found["refused"], found["went on"], found["failed"]]
        for kind, found in sorted(counts.items())
    ]
    total = [sum(row[column] for row in rows) for column in range(1, 5)]
    show([*rows, ["all", *total]])
    print(f"seed {args.seed}, {time.monotonic() - began:.0f} s")
    if args.out:
        with open(args.out, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows, ["all", *total]])
    return 1 if failures else 0


def show(rows: list[list[object]]) -> None:
    """Print the table."""
    width = max(len(str(row[0])) for row in rows) + 2
    print(f"{COLUMNS[0]:<{width}}" + "".join(f"{name:>24}" for name in COLUMNS[1:]))
    for row in rows:
        print(f"{row[0]!s:<{width}}" + "".join(f"{cell!s:>24}" for cell in row[1:]))


if __name__ == "__main__":
    sys.exit(main())
