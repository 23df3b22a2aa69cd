"""``steingate evaluate`` and ``steingate export``: evaluate and export a trained policy."""

import argparse
import json
import sys
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steingate.certificates.formatting import percent, rate, upper
from steingate.cli.output import print_rows, shift_rows, warn
from steingate.cli.parser import Parser, add_claim_options, add_env_options
from steingate.errors import InputError
from steingate.storage.files import replace_file
from steingate.training.stop import stop_on_signals

if TYPE_CHECKING:
    from steingate.training.evaluate import Evaluation

NOT_CERTIFIED = 1


def add_run_options(parser: Parser, env: bool = True) -> None:
    """Add the run folder, the choice between its policies, and the new location of its environment."""
    parser.add_argument("run", metavar="RUN", help="run folder, or a name of steingate zoo")
    parser.add_argument(
        "--policy",
        choices=("certified", "last"),
        help="the best certified policy or the last one (default: certified, else last with a warning)",
    )
    if env:
        add_env_options(parser)


def evaluate_arguments(parser: Parser) -> None:
    """Add the options of ``evaluate``."""
    add_run_options(parser)
    add = parser.add_argument
    add("--episodes", type=int, metavar="N", help="number of episodes (default: 100; --until-certified: 1000)")
    add(
        "--actions",
        default="mean",
        choices=("mean", "sampled", "both"),
        help="mean actions, sampled actions with exploration noise, or one after the other (default: mean)",
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
    add("--json", action="store_true", help="print JSON")
    add("--plot", metavar="FILE", help="also plot the training of the run (PNG, SVG or PDF)")


def evaluate(args: argparse.Namespace) -> int:
    """Evaluate the policy and print the numbers; return 1 if ``--check`` is given and it is not certified."""
    if args.costs_out and args.until_certified:
        raise InputError(
            "--costs-out needs a number of episodes that is fixed in advance: with --until-certified the costs decide "
            "it, and the bound of steingate certify would be wrong. Leave out one of the two."
        )
    with stop_on_signals(process=True) as stop:
        from steingate.training.evaluate import evaluate as evaluate_run

        stop.check()
        names = ("seed", "policy", "limit", "risk", "confidence", "env", "trust_code")
        options: dict[str, Any] = {name: getattr(args, name) for name in names} | {"stop": stop.check}
        episodes = args.episodes if args.episodes is not None else (1000 if args.until_certified else 100)
        kinds = {"both": (False, True), "mean": (False,), "sampled": (True,)}[args.actions]
        options |= {"until_certified": args.until_certified, "warn": warn}
        results = []
        for sample in kinds:
            results.append(evaluate_run(args.run, episodes, sample=sample, **options))
            options["warn"] = lambda text: None
        costs = results[0].episodes.cost
    if args.costs_out:
        text = "".join(f"{max(float(cost), 0.0)!r}\n" for cost in costs)
        replace_file(Path(args.costs_out), text.encode())
    if args.json:
        numbers, sampled = results[0].to_dict(), [result.to_dict() for result in results[1:]]
        print(json.dumps({**numbers, "sampled": sampled[0] if sampled else None}, indent=2))
    else:
        for number, result in enumerate(results):
            print("\n" * (number > 0), end="")
            _print_evaluation(result)
    if args.plot:
        from steingate.report.figures import save_run_figure

        save_run_figure(args.run, args.plot)
        print(args.plot, file=sys.stderr if args.json else sys.stdout)
    return NOT_CERTIFIED if args.check and not results[0].certified else 0


def _print_evaluation(result: "Evaluation") -> None:
    numbers = result.to_dict()
    cost, cvar, worst = numbers["cost"], numbers["cvar"], numbers["worst"]
    mean = "within" if cost["mean"] <= result.limit else "above"
    rows = [
        ("return", f"{numbers['return']['mean']:.2f}", f"± {numbers['return']['std']:.2f} over episodes"),
        ("cost", f"{cost['mean']:.2f}", f"± {cost['std']:.2f}; mean {mean} the limit {result.limit:g}"),
        ("violations", rate(result.violation_rate), f"{result.violations} of {numbers['episodes']} episodes"),
        ("bound", upper(result.bound), f"with {percent(floor(1000 * result.confidence) / 1000)} confidence"),
        *shift_rows(result.shift, result.risk),
        (f"CVaR {cvar['tail']:.0%}", f"{cvar['cost']:.2f}", "mean cost of the worst episodes"),
        ("worst episode", f"{worst['cost']:.2f}", f"return {worst['return']:.2f}, seed {worst['seed']}"),
        ("length", f"{numbers['length']['mean']:.0f}", "steps"),
    ]
    print_rows(f"[bold]{numbers['episodes']} episodes of {result.policy}[/bold]", rows, str(result))


def export_arguments(parser: Parser) -> None:
    """Add the options of ``export``."""
    add_run_options(parser, env=False)
    parser.add_argument(
        "--to",
        required=True,
        metavar="FILE",
        help="NAME.npz (with policy.py beside it, which needs only NumPy) or NAME.onnx",
    )


def export(args: argparse.Namespace) -> int:
    """Write the policy and print the names of the files."""
    from steingate.policies.export import export_policy
    from steingate.policies.load import load_policy

    policy = load_policy(args.run, args.policy, warn)
    warn(f"{policy.about['checkpoint']} policy, after epoch {policy.about['epoch']}: {policy}")
    for file in export_policy(policy, args.to):
        print(file)
    return 0
