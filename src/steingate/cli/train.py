"""``steingate train``: one run with live progress, every setting an option."""

import argparse

from steingate.errors import MissingExtraError
from steingate.training.config import RunConfig
from steingate.training.options import add_options, build
from steingate.training.stop import stop_on_signals


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--config", metavar="FILE", help="TOML file of settings; options win over it")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    add_options(parser, RunConfig)


def run(args: argparse.Namespace) -> int:
    """Train, print the run folder, and return the exit status."""
    given = {key: value for key, value in vars(args).items() if key not in ("config", "quiet")}
    cfg = build(RunConfig, given, args.config)
    with stop_on_signals() as stop:
        try:
            from steingate.training.loop import train
        except ModuleNotFoundError as error:
            raise MissingExtraError("steingate train", "train") from error
        path = train(cfg, args.quiet, stop)
    print(path)
    return 0
