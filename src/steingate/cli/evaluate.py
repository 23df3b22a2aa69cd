"""``steingate evaluate``, ``compare`` and ``export``: evaluate, compare and export trained policies."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from steingate.certificates.formatting import percent, percent_down, rate, upper
from steingate.cli.output import print_rows, shift_rows, warn
from steingate.cli.parser import Parser, add_claim_options, add_env_options, add_run_options
from steingate.errors import InputError
from steingate.storage.files import replace_file
from steingate.training.stop import stop_on_signals

if TYPE_CHECKING:
    from steingate.training.compare import Comparison
    from steingate.training.evaluate import Evaluation

NOT_CERTIFIED = 1


def evaluate_arguments(parser: Parser) -> None:
    option, flag = parser.option, parser.flag
    add_run_options(parser)
    option("--episodes", "N", "number of episodes (default: 100; --until-certified: 1000)", type=int)
    actions = "mean actions, or sampled actions with exploration noise"
    option("--actions", None, actions, choices=("mean", "sampled"), default="mean")
    flag("--until-certified", "stop once the violation probability is certified, or known to exceed the risk")
    option("--limit", "X", "limit on the episode cost (default: the run's)", type=float)
    add_claim_options(parser, "the run's")
    option("--seed", "N", "seed of the episodes", type=int, default=0)
    flag("--check", "exit with status 1 unless the policy is certified")
    option("--costs-out", "FILE", "write the episode costs, one per line, for steingate certify")
    flag("--json", "print JSON")


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
        names = ("seed", "policy", "limit", "risk", "confidence", "env", "trust_code", "until_certified")
        options = {name: getattr(args, name) for name in names}
        episodes = args.episodes if args.episodes is not None else (1000 if args.until_certified else 100)
        sample = args.actions == "sampled"
        result = evaluate_run(args.run, episodes, sample=sample, warn=warn, stop=stop.check, **options)
    if args.costs_out:
        text = "".join(f"{max(float(cost), 0.0)!r}\n" for cost in result.episodes.cost)
        replace_file(Path(args.costs_out), text.encode())
    if args.json:
        print(json.dumps(result.to_dict(), indent=2))
    else:
        _print_evaluation(result)
    return NOT_CERTIFIED if args.check and not result.certified else 0


def _print_evaluation(result: "Evaluation") -> None:
    numbers = result.to_dict()
    cost, cvar, worst = numbers["cost"], numbers["cvar"], numbers["worst"]
    mean = "within" if cost["mean"] <= result.limit else "above"
    rows = [
        ("return", f"{numbers['return']['mean']:.2f}", f"± {numbers['return']['std']:.2f} over episodes"),
        ("cost", f"{cost['mean']:.2f}", f"± {cost['std']:.2f}; mean {mean} the limit {result.limit:g}"),
        ("violations", rate(result.violation_rate), f"{result.violations} of {numbers['episodes']} episodes"),
        ("bound", upper(result.bound), f"with {percent_down(result.confidence)} confidence"),
        *shift_rows(result.shift, result.risk),
        (f"CVaR {cvar['tail']:.0%}", f"{cvar['cost']:.2f}", "mean cost of the worst episodes"),
        ("worst episode", f"{worst['cost']:.2f}", f"return {worst['return']:.2f}, seed {worst['seed']}"),
        ("length", f"{numbers['length']['mean']:.0f}", "steps"),
    ]
    print_rows(f"{numbers['episodes']} episodes of {result.policy}", rows, str(result))


def compare_arguments(parser: Parser) -> None:
    parser.add_argument("run_a", metavar="RUN_A", help="run folder of policy A, or a name of steingate zoo")
    parser.add_argument("run_b", metavar="RUN_B", help="run folder of policy B, with the same environment")
    parser.option("--episodes", "N", "largest number of pairs", type=int, default=2000)
    policies = "the best certified policies or the last ones"
    parser.option("--policy", None, policies, choices=("certified", "last"))
    parser.option("--limit", "X", "limit on the episode cost (default: that of the runs)", type=float)
    parser.option("--confidence", "P", "confidence of each statement", type=float, default=0.95)
    parser.option("--seed", "N", "seed of the episodes", type=int, default=0)
    parser.flag("--json", "print JSON")
    add_env_options(parser)


def compare(args: argparse.Namespace) -> int:
    """Play both policies and print which one is safer."""
    with stop_on_signals(process=True) as stop:
        from steingate.training.compare import compare as compare_runs

        stop.check()
        names = ("seed", "policy", "limit", "confidence", "env", "trust_code")
        options = {name: getattr(args, name) for name in names}
        result = compare_runs(args.run_a, args.run_b, args.episodes, warn=warn, stop=stop.check, **options)
    if args.json:
        print(json.dumps(result.to_dict(), indent=2))
    else:
        _print_comparison(result)
    return 0


def _print_comparison(result: "Comparison") -> None:
    monitor, confidence = result.monitor, percent(round(1.0 - result.monitor.delta, 15))
    higher = "A" if monitor.a_has_higher_return else "B" if monitor.b_has_higher_return else ""
    returns = f"{higher} is higher with {confidence} confidence" if higher else "no difference has been shown"
    rows = [
        ("pairs", f"{monitor.pairs}", "episodes that both policies played with the same seed"),
        ("violations of A, B", f"{monitor.violations_a}, {monitor.violations_b}", f"cost above {monitor.limit:g}"),
        ("by one alone", f"{monitor.only_a}, {monitor.only_b}", "only these pairs count"),
        ("e-value", f"{monitor.e_value:.3g}", f"{1 / monitor.delta:g} decides, at any time ({confidence} confidence)"),
        ("mean return of A, B", f"{result.mean_return_a:.2f}, {result.mean_return_b:.2f}", returns),
    ]
    print_rows("Comparison of two policies", rows, str(result))


def export_arguments(parser: Parser) -> None:
    add_run_options(parser, env=False)
    files = "NAME.npz (with policy.py beside it, which needs only NumPy) or NAME.onnx"
    parser.option("--to", "FILE", files, required=True)


def export(args: argparse.Namespace) -> int:
    """Write the policy and print the names of the files."""
    from steingate.policies.export import export_policy
    from steingate.policies.load import load_policy

    policy = load_policy(args.run, args.policy, warn)
    warn(f"{policy.about['checkpoint']} policy, after epoch {policy.about['epoch']}: {policy}")
    for file in export_policy(policy, args.to):
        print(file)
    return 0
