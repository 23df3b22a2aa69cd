"""``steingate evaluate`` and ``steingate export``: evaluate and export a trained policy."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steingate.certificates.words import at_most, confidence, share
from steingate.cli.output import print_rows, warn
from steingate.cli.parser import Parser, add_claim_options, error_probability
from steingate.storage.files import replace_file
from steingate.training.stop import stop_on_signals

if TYPE_CHECKING:
    from steingate.training.evaluate import Evaluation

NOT_CERTIFIED = 1


def add_policy_option(parser: Parser) -> None:
    """Add the choice between the certified and the last policy."""
    parser.add_argument(
        "--policy",
        choices=("certified", "last"),
        help="the best certified policy or the last one (default: certified, else last with a warning)",
    )


def add_env_option(parser: Parser) -> None:
    """Add the new location of an environment."""
    parser.add_argument("--env", metavar="TEXT", help="location of the environment, if it has moved")


def evaluate_arguments(parser: Parser) -> None:
    """Add the options of ``evaluate``."""
    add = parser.add_argument
    add("run", metavar="RUN", help="run folder")
    add_policy_option(parser)
    add(
        "--episodes", type=int, metavar="N", help="number of episodes (default: 100; --until-certified: 1000)"
    )
    add(
        "--actions",
        default="both",
        choices=("both", "mean", "sampled"),
        help="mean actions, sampled actions as in training, or both one after the other (default: both)",
    )
    add(
        "--until-certified",
        action="store_true",
        help="stop as soon as the violation probability is certified, or known to exceed the risk",
    )
    add("--limit", type=float, metavar="X", help="limit on the episode cost (default: the run's)")
    add_claim_options(parser, "the run's")
    add("--seed", type=int, default=0, metavar="N", help="seed of the episodes (default: 0)")
    add("--check", action="store_true", help="exit with status 1 unless the policy is certified")
    add("--costs-out", metavar="FILE", help="write the episode costs, one per line, for steingate certify")
    add_env_option(parser)
    add("--json", action="store_true", help="print JSON")
    add("--plot", metavar="FILE", help="also plot the training of the run (PNG, SVG or PDF)")


def evaluate(args: argparse.Namespace) -> int:
    """Evaluate the policy and print the numbers; return 1 if ``--check`` is given and it is not certified."""
    with stop_on_signals(process=True) as stop:
        from steingate.training.evaluate import evaluate as evaluate_run

        stop.check()
        options: dict[str, Any] = {name: getattr(args, name) for name in ("seed", "policy", "limit", "env")}
        options |= {"budget": args.risk, "stop": stop.check, "until_certified": args.until_certified}
        if args.confidence is not None:
            options["delta"] = error_probability(args.confidence)
        episodes = args.episodes if args.episodes is not None else (1000 if args.until_certified else 100)
        sample = args.actions == "sampled"
        result = evaluate_run(args.run, episodes, sample=sample, warn=warn, **options)
        sampled = None
        if args.actions == "both":
            options |= {"until_certified": False, "warn": lambda text: None}
            sampled = evaluate_run(args.run, len(result.episodes.cost), sample=True, **options)
    if args.costs_out:
        costs = "".join(f"{max(float(cost), 0.0)!r}\n" for cost in result.episodes.cost)
        replace_file(Path(args.costs_out), costs.encode())
    if args.json:
        numbers = {**result.to_dict(), "sampled": None if sampled is None else sampled.to_dict()}
        print(json.dumps(numbers, indent=2))
    else:
        title = f"[bold]{len(result.episodes.cost)} episodes[/bold] of the {result.which} policy"
        _print_evaluation(f"{title} (after epoch {result.epoch})", result)
        if sampled is not None:
            print()
            _print_evaluation("The same policy", sampled)
    if args.plot:
        from steingate.report.run_figure import save_run_figure

        save_run_figure(args.run, args.plot)
        print(args.plot, file=sys.stderr if args.json else sys.stdout)
    return NOT_CERTIFIED if args.check and not result.certified else 0


def _print_evaluation(title: str, result: "Evaluation") -> None:
    numbers = result.to_dict()
    count = f"{result.violations} of {numbers['episodes']} episodes"
    cost, cvar, worst = numbers["cost"], numbers["cvar"], numbers["worst"]
    side = "below" if cost["mean"] <= cost["limit"] else "above"
    rows = [
        ("return", f"{numbers['return']['mean']:.2f}", f"± {numbers['return']['std']:.2f} over episodes"),
        ("cost", f"{cost['mean']:.2f}", f"± {cost['std']:.2f}; mean {side} the limit {cost['limit']:g}"),
        ("violations", share(result.violation_rate), count),
        ("bound", at_most(result.bound), f"with {confidence(result.delta)} confidence"),
        (f"CVaR {cvar['tail']:.0%}", f"{cvar['cost']:.2f}", "mean cost of the worst episodes"),
        ("worst episode", f"{worst['cost']:.2f}", f"return {worst['return']:.2f}, seed {worst['seed']}"),
        ("length", f"{numbers['length']['mean']:.0f}", "steps"),
    ]  # fmt: skip
    if result.gate is not None:
        gate = result.gate
        rows.append(("gate", "open" if gate.safe else "closed", gate.diagnosis))
    if result.monitor is not None:
        monitor = result.monitor
        state = "certified" if monitor.certified else "unsafe" if monitor.unsafe else "undecided"
        rows.append(("monitor", state, monitor.summary))
    actions = "sampled actions" if result.sampled else "mean actions"
    print_rows(f"{title}, [bold]{actions}[/bold]", rows, result.sentence)


def export_arguments(parser: Parser) -> None:
    """Add the options of ``export``."""
    parser.add_argument("run", metavar="RUN", help="run folder")
    parser.add_argument(
        "--to",
        required=True,
        metavar="FILE",
        help="NAME.npz (with NAME.py beside it, which needs only NumPy) or NAME.onnx",
    )
    add_policy_option(parser)


def export(args: argparse.Namespace) -> int:
    """Write the policy and print the names of the files."""
    from steingate.policies.export import export_policy
    from steingate.policies.policy import load

    loaded = load(args.run, args.policy, warn)
    config = loaded.config.get("config") or {}
    about = {
        **{name: config.get(name) for name in ("env", "algo", "seed")},
        "epoch": loaded.epoch,
        "policy": loaded.which,
        "certification": None if loaded.certification is None else loaded.certification["sentence"],
    }
    warn(f"{loaded.which} policy, after epoch {loaded.epoch}: {loaded.policy}")
    for file in export_policy(loaded.policy, args.to, about):
        print(file)
    return 0
