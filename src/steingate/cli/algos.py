"""``steingate algos``: the algorithms there are, one line each, or all that is known about some."""

import argparse
import json
from difflib import get_close_matches

from steingate.algos.catalog import FACTS
from steingate.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("names", nargs="*", metavar="ALGO", help="only these, with their variants")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--variants", action="store_true", help="also say how the two variants of each algorithm differ"
    )


def run(args: argparse.Namespace) -> int:
    """Print the algorithms and return the exit status."""
    for name in args.names:
        if name not in FACTS:
            close = get_close_matches(name, FACTS, n=1)
            hint = f"did you mean {close[0]}?" if close else "steingate algos lists what there is."
            raise InputError(f"There is no algorithm {name!r}: {hint}")
    shown = {name: FACTS[name] for name in args.names or FACTS}
    if args.json:
        print(json.dumps({name: facts._asdict() for name, facts in shown.items()}, indent=2))
        return 0
    width = max(map(len, shown)) + 2
    for name, entry in shown.items():
        print(f"{name:<{width}}{entry.summary} [{entry.paper}]")
        if args.variants or args.names:
            print(f"{'':<{width}}published: {entry.published}")
            print(f"{'':<{width}}corrected: {entry.corrected}")
    return 0
