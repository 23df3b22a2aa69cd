"""``steingate evaluate``: what a trained policy does on fresh seeds."""

import argparse
import json
import sys
from typing import TYPE_CHECKING

from steingate.cli.table import print_rows
from steingate.errors import MissingExtraError
from steingate.training.stop import stop_on_signals

if TYPE_CHECKING:
    from steingate.monitor.certify import Verdict


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("run", metavar="RUN", help="run folder")
    parser.add_argument(
        "--episodes",
        type=int,
        metavar="N",
        help="whole episodes (default: 100; with --until-certified the most, 1000)",
    )
    parser.add_argument(
        "--until-certified",
        action="store_true",
        help="stop as soon as the share of episodes over the limit is certified, or shown to be too large",
    )
    parser.add_argument("--budget", type=float, default=0.1, metavar="X", help="that share (default: 0.1)")
    parser.add_argument(
        "--delta",
        type=float,
        default=0.05,
        metavar="X",
        help="chance that it is wrong (default: 0.05)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the episodes (default: 0)")
    parser.add_argument(
        "--sample", action="store_true", help="draw actions as in training instead of taking the mean"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--plot", metavar="FILE", help="also draw the training of the run (PNG, SVG or PDF)")


def run(args: argparse.Namespace) -> int:
    """Evaluate, print the numbers, and return the exit status."""
    with stop_on_signals(process=True) as stop:
        try:
            from steingate.training.evaluate import Certify, evaluate
        except ModuleNotFoundError as error:
            raise MissingExtraError("steingate evaluate", "train") from error
        stop.check()
        until = Certify(args.budget, args.delta) if args.until_certified else None
        episodes = args.episodes if args.episodes is not None else (1000 if until else 100)
        result = evaluate(args.run, episodes, args.seed, args.sample, _warn, stop.check, until)
    numbers = result.to_dict()
    if args.json:
        print(json.dumps(numbers, indent=2))
    else:
        cost, tail, worst = numbers["cost"], numbers["cvar"], numbers["worst"]
        within = "within" if cost["mean"] <= cost["limit"] else "above"
        rows = [
            ("return", f"{numbers['return']['mean']:.2f}", f"± {numbers['return']['std']:.2f} over episodes"),
            ("cost", f"{cost['mean']:.2f}", f"± {cost['std']:.2f}; {within} the limit {cost['limit']:g}"),
            ("over the limit", f"{numbers['over_limit']:.1%}", "share of episodes"),
            (f"CVaR {tail['tail']:.0%}", f"{tail['cost']:.2f}", "mean cost of the worst episodes"),
            ("worst episode", f"{worst['cost']:.2f}", f"return {worst['return']:.2f}, seed {worst['seed']}"),
            ("length", f"{numbers['length']['mean']:.0f}", "steps"),
            ("bound", f"{result.certificate.bound:.4f}", f"budget {result.certificate.budget:g}"),
            ("gate", "open" if result.certificate.safe else "shut", result.certificate.diagnosis),
        ]  # fmt: skip
        if result.verdict is not None:
            rows.append(("verdict", _word(result.verdict), result.verdict.sentence))
        print_rows(f"[bold]{numbers['episodes']} episodes[/bold] after epoch {numbers['epoch']}", rows)
    if args.plot:
        from steingate.report.run_figure import save_run_figure

        save_run_figure(args.run, args.plot)
        print(args.plot, file=sys.stderr if args.json else sys.stdout)
    return 0


def _word(verdict: "Verdict") -> str:
    return "certified" if verdict.certified else "unsafe" if verdict.unsafe else "open"


def _warn(text: str) -> None:
    print(text, file=sys.stderr)
