"""``steingate compare``: which of two trained policies violates the limit less often."""

import argparse
import json
from typing import TYPE_CHECKING

from steingate.certificates.formatting import percent
from steingate.cli.output import print_rows, warn
from steingate.cli.parser import Parser, add_env_options
from steingate.training.stop import stop_on_signals

if TYPE_CHECKING:
    from steingate.training.compare import Comparison


def compare_arguments(parser: Parser) -> None:
    """Add the options of ``compare``."""
    add = parser.add_argument
    add("run_a", metavar="RUN_A", help="run folder of policy A, or a name of steingate zoo")
    add("run_b", metavar="RUN_B", help="run folder of policy B, with the same environment")
    add("--episodes", type=int, default=2000, metavar="N", help="largest number of pairs (default: 2000)")
    add("--policy", choices=("certified", "last"), help="the best certified policies or the last ones")
    add("--limit", type=float, metavar="X", help="limit on the episode cost (default: that of the runs)")
    confidence_help = "confidence of each statement (default: 0.95)"
    add("--confidence", type=float, default=0.95, metavar="P", help=confidence_help)
    add("--seed", type=int, default=0, metavar="N", help="seed of the episodes (default: 0)")
    add("--json", action="store_true", help="print JSON")
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
    print_rows("[bold]Comparison of two policies[/bold]", rows, str(result))
