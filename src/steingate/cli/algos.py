"""``steingate algos``: the algorithms there are, one line each, or all that is known about some."""

import argparse
import json

from steingate.algorithms import METHODS
from steingate.algorithms.common.recipe import Recipe, find_recipe
from steingate.settings import to_plain


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "names", nargs="*", metavar="ALGO", help="only these (names or module:Class), with all settings"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--variants", action="store_true", help="also say how the two variants of each algorithm differ"
    )


def run(args: argparse.Namespace) -> int:
    """Print the algorithms and return the exit status."""
    shown = {name: find_recipe(name) for name in args.names or METHODS}
    if args.json:
        print(json.dumps({name: _facts(kind) for name, kind in shown.items()}, indent=2))
        return 0
    width = max(map(len, shown)) + 2
    for name, kind in shown.items():
        about = kind.about
        source = f" [{about.paper}]" if about.paper else ""
        print(f"{name:<{width}}{about.summary or (kind.__doc__ or '').partition(chr(10))[0]}{source}")
        if args.variants or args.names:
            print(f"{'':<{width}}published: {about.published}")
            print(f"{'':<{width}}corrected: {about.corrected}")
        if args.names:
            settings = ", ".join(f"{key}={value}" for key, value in flat(to_plain(kind())).items())
            print(f"{'':<{width}}settings: {settings}")
    return 0


def flat(table: dict[str, object], prefix: str = "") -> dict[str, object]:
    """Return settings by name, with dots for those of parts."""
    result: dict[str, object] = {}
    for key, value in table.items():
        if isinstance(value, dict) and value:
            result |= flat(value, f"{prefix}{key}.")
        else:
            shown = ",".join(map(str, value)) if isinstance(value, list) else value
            result[prefix + key] = "none" if shown in (None, {}) else shown
    return result


def _facts(kind: type[Recipe]) -> dict[str, object]:
    about = kind.about
    return {
        "summary": about.summary,
        "paper": about.paper,
        "published": about.published,
        "corrected": about.corrected,
        "settings": to_plain(kind()),
    }
