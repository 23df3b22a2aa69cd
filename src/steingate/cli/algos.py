"""``steingate algos``: the algorithms there are, one line each."""

import argparse
import json
from typing import Any

from steingate.errors import MissingExtraError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--variants", action="store_true", help="also say how the two variants of each algorithm differ"
    )


def run(args: argparse.Namespace) -> int:
    """Print the algorithms and return the exit status."""
    try:
        from steingate.algos.library import ALGOS
    except ModuleNotFoundError as error:
        raise MissingExtraError("steingate algos", "train") from error
    if args.json:
        print(json.dumps({name: _facts(entry) for name, entry in ALGOS.items()}, indent=2))
        return 0
    width = max(map(len, ALGOS)) + 2
    for name, entry in ALGOS.items():
        print(f"{name:<{width}}{entry.summary} [{entry.paper}]")
        if args.variants:
            print(f"{'':<{width}}published: {entry.published}")
            print(f"{'':<{width}}corrected: {entry.corrected}")
    return 0


def _facts(entry: Any) -> dict[str, str]:
    return {key: value for key, value in entry._asdict().items() if key != "recipe"}
