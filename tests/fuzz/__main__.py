"""``python -m tests.fuzz``: damage and forge run folders and cost files, run commands on them; count the results.

Takes minutes and is not part of the test suite. A try fails if a command prints a traceback or a warning,
ends with a status other than 0 to 4, ends with status 2 without a message, hangs, continues a damaged run
with other numbers, runs foreign code, changes a file outside of the run, or believes an edited run.
Every try depends only on the seed and its number; ``--only NUMBER`` repeats one.
"""

import argparse
import csv
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.monitors import run_monitors
from tests.fuzz.tries import Originals, run_try

COLUMNS = ("what", "tries", "refused", "accepted", "failures")


def main() -> int:
    """Run the campaign and return 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--tries", type=int, default=10_000, help="damaged files, in this process")
    parser.add_argument("--monitors", type=int, default=10, help="monitors that are killed while logs rotate")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="repeat one try and print its result")
    parser.add_argument("--out", type=Path, help="CSV file for the table")
    args = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
    counts: dict[str, Counter[str]] = {}
    failures = 0

    def note(kind: str, result: str, what: str) -> None:
        nonlocal failures
        counts.setdefault(kind, Counter())[result] += 1
        if result == "failed":
            failures += 1
            print(f"FAILED {what}", flush=True)

    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        originals = Originals(Path(folder))
        if args.only is not None:
            print(*run_try(originals, args.seed, args.only))
            return 0
        for number in range(args.tries):
            kind, result, what = run_try(originals, args.seed, number)
            note(kind, result, f"try {number}: {what}")
            if number % 1000 == 999:
                print(f"{number + 1} tries, {failures} failures", flush=True)
        for outcome in run_monitors(Path(folder), args.seed, args.monitors):
            note(*outcome)
    rows = [
        [kind, sum(found.values()), found["refused"], found["accepted"], found["failed"]]
        for kind, found in sorted(counts.items())
    ]
    rows.append(["all", *(sum(row[column] for row in rows) for column in range(1, 5))])
    for row in [COLUMNS, *rows]:
        print(f"{row[0]:<50}" + "".join(f"{cell!s:>12}" for cell in row[1:]))
    print(f"seed {args.seed}, {time.monotonic() - start:.0f} s")
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        with open(args.out, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
