"""``steingate evaluate``: what a trained policy does on fresh seeds."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steingate.certificates.words import at_most, confidence, share
from steingate.cli.table import print_rows
from steingate.errors import MissingExtraError
from steingate.storage.files import replace_file
from steingate.training.stop import stop_on_signals

if TYPE_CHECKING:
    from steingate.training.evaluate import Evaluation

NOT_CERTIFIED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("run", metavar="RUN", help="run folder")
    add_policy_option(parser)
    parser.add_argument(
        "--episodes",
        type=int,
        metavar="N",
        help="whole episodes (default: 100; with --until-certified the most, 1000)",
    )
    parser.add_argument(
        "--actions",
        default="both",
        choices=("both", "mean", "sampled"),
        help="the mean action, actions drawn as in training, or both, one after the other (default: both)",
    )
    parser.add_argument(
        "--until-certified",
        action="store_true",
        help="stop as soon as the share of episodes over the limit is certified, or shown to be too large",
    )
    parser.add_argument("--budget", type=float, metavar="X", help="that share (default: the run's, 0.1)")
    parser.add_argument(
        "--delta", type=float, metavar="X", help="chance that it is wrong (default: the run's, 0.05)"
    )
    parser.add_argument("--limit", type=float, metavar="X", help="limit on the cost (default: the run's)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the episodes (default: 0)")
    parser.add_argument(
        "--check",
        action="store_true",
        help="exit with status 1 unless the episodes over the limit are certified to be within the budget",
    )
    parser.add_argument(
        "--costs-out", metavar="FILE", help="write the episode costs, one per line, for steingate certify"
    )
    parser.add_argument(
        "--env", metavar="TEXT", help="where the environment is now, if not where the run found it"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--plot", metavar="FILE", help="also draw the training of the run (PNG, SVG or PDF)")


def add_policy_option(parser: argparse.ArgumentParser) -> None:
    """Add the choice of the policy."""
    parser.add_argument(
        "--policy",
        choices=("certified", "last"),
        help="the best certified policy or the last one (default: certified, else last with a warning)",
    )


def run(args: argparse.Namespace) -> int:
    """Evaluate, print the numbers, and return the exit status."""
    with stop_on_signals(process=True) as stop:
        try:
            from steingate.training.evaluate import evaluate
        except ModuleNotFoundError as error:
            raise MissingExtraError("steingate evaluate", "train") from error
        stop.check()
        shared: dict[str, Any] = {
            name: getattr(args, name) for name in ("seed", "policy", "limit", "budget", "delta", "env")
        }
        shared["stop"] = stop.check
        until = args.until_certified
        episodes = args.episodes if args.episodes is not None else (1000 if until else 100)
        drawn = args.actions == "sampled"
        result = evaluate(args.run, episodes, sample=drawn, warn=_warn, until_certified=until, **shared)
        other = None
        if args.actions == "both":
            quiet = {**shared, "warn": lambda text: None}
            other = evaluate(args.run, len(result.episodes.cost), sample=True, **quiet)
    if args.costs_out:
        replace_file(Path(args.costs_out), "".join(f"{cost!r}\n" for cost in _costs(result)).encode())
    if args.json:
        both = {**result.to_dict(), "sampled": None if other is None else other.to_dict()}
        print(json.dumps(both, indent=2))
    else:
        _show(result, other)
    if args.plot:
        from steingate.report.run_figure import save_run_figure

        save_run_figure(args.run, args.plot)
        print(args.plot, file=sys.stderr if args.json else sys.stdout)
    return NOT_CERTIFIED if args.check and not result.certified else 0


def _costs(result: "Evaluation") -> list[float]:
    return [max(float(cost), 0.0) for cost in result.episodes.cost]  # as certificates count them


def _show(result: "Evaluation", other: "Evaluation | None") -> None:
    numbers = result.to_dict()
    of = f"of the {result.which} policy, after epoch {result.epoch}, {_kind(result)}"
    print_rows(f"[bold]{numbers['episodes']} episodes[/bold] {of}", _rows(result), result.sentence)
    if other is not None:
        print()
        print_rows(f"The same policy, {_kind(other)}", _rows(other), other.sentence)


def _kind(result: "Evaluation") -> str:
    return "[bold]sampled[/bold] as in training" if result.sampled else "at the [bold]mean action[/bold]"


def _rows(result: "Evaluation") -> list[tuple[str, str, str]]:
    numbers = result.to_dict()
    cost, tail, worst = numbers["cost"], numbers["cvar"], numbers["worst"]
    within = "within" if cost["mean"] <= cost["limit"] else "above"
    count = f"{result.violations} of {numbers['episodes']} episodes"
    rows = [
        ("return", f"{numbers['return']['mean']:.2f}", f"± {numbers['return']['std']:.2f} over episodes"),
        ("cost", f"{cost['mean']:.2f}", f"± {cost['std']:.2f}; mean {within} the limit {cost['limit']:g}"),
        ("over the limit", share(result.violation_rate), count),
        ("at most", at_most(result.bound), f"with {confidence(result.delta)} confidence"),
        (f"CVaR {tail['tail']:.0%}", f"{tail['cost']:.2f}", "mean cost of the worst episodes"),
        ("worst episode", f"{worst['cost']:.2f}", f"return {worst['return']:.2f}, seed {worst['seed']}"),
        ("length", f"{numbers['length']['mean']:.0f}", "steps"),
    ]  # fmt: skip
    if result.gate is not None:
        gate = result.gate
        rows.append(("gate bound", f"{gate.bound:.4f}", f"budget {gate.budget:g}"))
        rows.append(("gate", "open" if gate.safe else "closed", gate.diagnosis))
    if result.monitor is not None:
        word = "certified" if result.monitor.certified else "unsafe" if result.monitor.unsafe else "undecided"
        rows.append(("monitor", word, result.monitor.sentence))
    return rows


def _warn(text: str) -> None:
    print(text, file=sys.stderr)
