"""``steingate algos``: the algorithms there are, one line each."""

import argparse
import json

from steingate.algos.catalog import FACTS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--variants", action="store_true", help="also say how the two variants of each algorithm differ"
    )


def run(args: argparse.Namespace) -> int:
    """Print the algorithms and return the exit status."""
    if args.json:
        print(json.dumps({name: facts._asdict() for name, facts in FACTS.items()}, indent=2))
        return 0
    width = max(map(len, FACTS)) + 2
    for name, entry in FACTS.items():
        print(f"{name:<{width}}{entry.summary} [{entry.paper}]")
        if args.variants:
            print(f"{'':<{width}}published: {entry.published}")
            print(f"{'':<{width}}corrected: {entry.corrected}")
    return 0
