"""``steingate plan``: how many episodes a budget needs, and what a number of episodes can certify."""

import json
from argparse import Namespace

from steingate.certificates.plan import certifiable_budget, episodes_needed
from steingate.cli.parser import Parser
from steingate.cli.table import print_rows

SIZES = (16, 40, 100, 200, 500, 1000, 10000)
MOST_VIOLATIONS = 5


def add_arguments(parser: Parser) -> None:
    """Declare the options of ``plan``."""
    parser.add_argument(
        "--budget", type=float, default=0.1, metavar="E", help="largest accepted risk (default: 0.1)"
    )
    parser.add_argument(
        "--delta", type=float, default=0.05, metavar="P", help="error probability (default: 0.05)"
    )
    parser.add_argument("--episodes", type=int, metavar="N", help="also say what N episodes can certify")
    parser.add_argument(
        "--violations", type=int, default=0, metavar="K", help="violations among them (default: 0)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def run(args: Namespace) -> int:
    """Print the plan and return 0."""
    needed = episodes_needed(args.budget, args.delta, args.violations)
    best = None if args.episodes is None else certifiable_budget(args.episodes, args.delta, args.violations)
    if args.json:
        plan = {
            "budget": args.budget,
            "delta": args.delta,
            "violations": args.violations,
            "episodes_needed": needed,
            "episodes": args.episodes,
            "certifiable_budget": best,
            "certifiable": None if best is None else best <= args.budget,
        }
        print(json.dumps(plan, allow_nan=False))
    else:
        _show(args)
    return 0


def _show(args: Namespace) -> None:
    counts = sorted({*range(MOST_VIOLATIONS + 1), args.violations})
    needed = [(_violations(count), episodes_needed(args.budget, args.delta, count)) for count in counts]
    print_rows(
        f"To certify a risk of at most {args.budget:g} with error probability {args.delta:g}",
        [(name, f"{number} episodes", "") for name, number in needed],
    )
    print()
    sizes = [n for n in SIZES if n >= args.violations] if args.episodes is None else [args.episodes]
    budgets = [(n, certifiable_budget(n, args.delta, args.violations)) for n in sizes]
    print_rows(
        f"What n independent episodes with {_violations(args.violations)} certify",
        [
            (f"{n} episodes", f"{budget:.4g}", "within the budget" if budget <= args.budget else "over it")
            for n, budget in budgets
        ],
        "Exact for the preset confident, which counts episodes over the limit; a soft risk needs more. "
        "Fix the number before the first look; steingate monitor may be watched.",
    )


def _violations(count: int) -> str:
    return {0: "no violation", 1: "1 violation"}.get(count, f"{count} violations")
