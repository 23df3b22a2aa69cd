"""``python -m tests.fuzz``: damage and forge run folders and cost files, run commands on them; count the results.

Takes minutes and is not part of the test suite. A try fails if a command prints a traceback or a warning,
ends with a status other than 0 to 4, ends with status 2 without a message, hangs, continues a damaged run
with other numbers, runs foreign code, changes a file outside of the run, or believes an edited run.
Every try depends only on the seed and its number; ``--only NUMBER`` repeats one.
"""

import argparse
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.fuzz.tries import Originals, run_try


def main() -> int:
    """Run the campaign and return 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--tries", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="repeat one try and print its result")
    args = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
    counts: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        originals = Originals(Path(folder))
        if args.only is not None:
            print(*run_try(originals, args.seed, args.only))
            return 0
        for number in range(args.tries):
            kind, result, what = run_try(originals, args.seed, number)
            counts[kind, result] += 1
            if result == "failed":
                print(f"FAILED try {number}: {what}", flush=True)
            if number % 1000 == 999:
                print(f"{number + 1} tries", flush=True)
    for (kind, result), count in sorted(counts.items()):
        print(f"{kind:<50}{result:>12}{count:>8}")
    return int(any(result == "failed" for _, result in counts))


if __name__ == "__main__":
    sys.exit(main())
