"""``steingate resume``: go on from a run's last checkpoint, as if it had never stopped."""

import argparse

from steingate.settings import convert
from steingate.training.stop import stop_on_signals


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("run", metavar="RUN", help="run folder")
    parser.add_argument(
        "--total-steps",
        metavar="N",
        help="make the run longer: environment steps in all, as if it had been started with them",
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def run(args: argparse.Namespace) -> int:
    """Train on, print the run folder, and return the exit status."""
    with stop_on_signals(process=True) as stop:
        from steingate.training.loop import resume

        steps = None if args.total_steps is None else convert(int, args.total_steps, "--total-steps")
        path = resume(args.run, args.quiet, stop, steps)
    print(path)
    return 0
