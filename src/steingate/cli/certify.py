"""``steingate certify`` and ``steingate plan``: certificates from a list of episode costs."""

import json
from argparse import Namespace
from typing import Any

from steingate.certificates import words
from steingate.certificates.certificate import Certificate
from steingate.certificates.diagnosis import rule_in_words
from steingate.certificates.plan import certifiable_budget, episodes_needed
from steingate.certificates.presets import PRESETS
from steingate.certificates.result import Result
from steingate.cli.cost_source import Source, read_source
from steingate.cli.output import print_rows
from steingate.cli.parser import Parser, add_claim_options, error_probability

NOT_CERTIFIED = 1
PLANNED_EPISODES = (16, 40, 100, 200, 500, 1000, 10000)
PLANNED_VIOLATIONS = 5


def certify_arguments(parser: Parser) -> None:
    """Add the options of ``certify``."""
    add = parser.add_argument
    add(
        "file",
        metavar="FILE",
        help="episode costs: CSV, JSON lines or NPY, a run folder, or a Monitor file of Stable-Baselines3; "
        "- for standard input",
    )
    add("--limit", type=float, required=True, metavar="D", help="limit on the episode cost")
    add_claim_options(parser)
    add("--stein", metavar="NAME", help=f"evaluate a Stein certificate instead: {', '.join(PRESETS)}")
    add(
        "--risk-function",
        metavar="H",
        help="risk function of the Stein certificate: exceedance, sigmoid:0.5,0.02, hinge:0.5, power:2 or "
        "module:function, of cost / scale",
    )
    add("--column", metavar="C", help="column or key of the cost: a name, or the number of a CSV column")
    add("--explain", action="store_true", help="also show the terms of the certificate and its assumptions")
    add("--json", action="store_true", help="print JSON and nothing else")
    add("--plot", metavar="FILE", help="plot the certificate to FILE (.png, .svg or .pdf)")
    add("--check", action="store_true", help="exit with status 1 unless the costs are certified")


def certify(args: Namespace) -> int:
    """Print the certificate; return 1 if ``--check`` is given and the costs are not certified."""
    delta = None if args.confidence is None else error_probability(args.confidence)
    given = {"budget": args.risk, "delta": delta, "risk": args.risk_function}
    options = {name: value for name, value in given.items() if value is not None}
    certificate = Certificate.preset(args.stein or "confident", limit=args.limit, **options)
    source = read_source(args.file, args.column)
    result = certificate.evaluate(source.costs)
    if args.plot:
        from steingate.report.certificate_figure import save_certificate_figure

        save_certificate_figure(certificate, source.costs, args.plot, result)
    if args.json:
        about = {"mixed_policies": source.mixed, "notes": list(source.notes)} if source.notes else {}
        print(json.dumps({**result.to_dict(), **about}, allow_nan=False))
    else:
        _print_result(result, source)
        if args.explain:
            print()
            _print_terms(certificate, result)
    # A gate with a soft risk function may be open although too many episodes are violations.
    opened = result.safe and result.over_share <= result.budget
    return NOT_CERTIFIED if args.check and not opened else 0


def _print_result(result: Result, source: Source) -> None:
    for note in source.notes:
        print(f"{note}\n")
    confidence = words.confidence(result.over_delta)
    rows = [
        ("episodes", f"{result.samples:,}", ""),
        ("mean cost", words.number(result.mean_cost), ""),
        ("worst cost", words.number(result.worst_cost), ""),
        (f"over {words.number(result.limit)}", f"{result.over:,}", words.share(result.over_share)),
        ("bound", words.at_most(result.over_bound), f"on P(cost > limit), with {confidence} confidence"),
        ("gate", "open" if result.safe else "shut", f"preset {result.preset}; see --explain"),
    ]  # fmt: skip
    if source.mixed:
        title, advice = words.counted(result), _MIXED if source.policies != 1 else _NOISY
    else:
        title, advice = words.headline(result), words.advice(result)
    color = "green" if result.certified else "red"
    footer = " ".join(part for part in (advice, words.gate_note(result)) if part)
    print_rows(title if source.mixed else f"[bold {color}]{title}[/]", rows, footer)


_MIXED = "These episodes come from several policies, so they certify none of them."
_NOISY = (
    "These episodes have the exploration noise of training, so they do not certify the policy of the run."
)


def _print_terms(certificate: Certificate, result: Result) -> None:
    state = "[bold green]open[/]" if result.safe else "[bold red]shut[/]"
    print_rows(f"Gate ({result.preset}): {state}", _terms(certificate, result), result.diagnosis)
    print()
    rows = [(check.name, "yes" if check.holds else "no", check.text) for check in result.checks]
    print_rows("Assumptions and guarantees", rows)


def _terms(certificate: Certificate, result: Result) -> list[tuple[str, str, str]]:
    rows: list[tuple[str, Any, str]] = [
        ("episodes", result.samples, f"{result.interior_samples} between the atoms"),
        ("limit", f"{result.limit:g}", f"costs are divided by {result.scale:g} and clipped at 1"),
        ("cost 0", f"{result.zero_mass:.1%}", f"reference {certificate.zero_mass:.1%}"),
        (f"cost {result.scale:g} or more", f"{result.one_mass:.1%}", f"reference {certificate.one_mass:.1%}"),
        ("mean risk", _number(result.empirical_risk), "of these episodes"),
    ]
    if result.delta is None:
        reference = certificate.reference_name
        if not certificate.attainable:
            reference += "; above the budget, so the bound cannot be within it"
        interior = (
            f"discrepancy {_number(result.interior_discrepancy)}, factor {_number(result.stein_factor)}"
        )
        rows += [
            ("reference risk", _number(result.reference_risk), reference),
            ("+ atoms", _number(result.discrete_term), f"discrepancy {_number(result.discrete_discrepancy)}"),
            ("+ interior", _number(result.interior_term), interior),
            ("= Stein bound", _number(result.stein_bound), ""),
        ]
        if result.null_quantile is not None:
            noise = f"quantile of sampling noise {_number(result.null_quantile)}; at least the mean risk"
            rows.append(("noise-corrected", _number(result.decision_value), noise))
    else:
        rows.append(("risk bound", _number(result.bound), f"with probability {1.0 - result.delta:g}"))
        rows.append((f"P(cost > {result.limit:g})", f"{result.violation_bound:.2%}", "bound"))
    rows.append(("decision", _number(result.decision_value), rule_in_words(result.decided_by)))
    rows.append(("budget", _number(result.budget), "the gate is open up to this value"))
    return [(name, str(value), note) for name, value, note in rows]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def plan_arguments(parser: Parser) -> None:
    """Add the options of ``plan``."""
    add_claim_options(parser)
    parser.add_argument("--episodes", type=int, metavar="N", help="also show what N episodes can certify")
    parser.add_argument(
        "--violations", type=int, default=0, metavar="K", help="violations among them (default: 0)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def plan(args: Namespace) -> int:
    """Print how many episodes a certificate needs, and what a number of episodes can certify."""
    risk = 0.1 if args.risk is None else args.risk
    confidence = 0.95 if args.confidence is None else args.confidence
    delta = error_probability(confidence)
    needed = episodes_needed(risk, delta, args.violations)
    best = None if args.episodes is None else certifiable_budget(args.episodes, delta, args.violations)
    if args.json:
        numbers = {
            "risk": risk,
            "confidence": confidence,
            "violations": args.violations,
            "episodes_needed": needed,
            "episodes": args.episodes,
            "certifiable_risk": best,
            "certifiable": None if best is None else best <= risk,
        }
        print(json.dumps(numbers, allow_nan=False))
        return 0
    counts = sorted({*range(PLANNED_VIOLATIONS + 1), args.violations})
    print_rows(
        f"Episodes to certify a violation probability of at most {risk:g} with confidence {confidence:g}",
        [(_violations(count), f"{episodes_needed(risk, delta, count)} episodes", "") for count in counts],
    )
    print()
    sizes = (
        [n for n in PLANNED_EPISODES if n >= args.violations] if args.episodes is None else [args.episodes]
    )
    bounds = [(n, certifiable_budget(n, delta, args.violations)) for n in sizes]
    print_rows(
        f"Violation probability that n episodes with {_violations(args.violations)} certify",
        [
            (f"{n} episodes", f"{bound:.4g}", "certified" if bound <= risk else "above the accepted risk")
            for n, bound in bounds
        ],
        "Fix the number of episodes before the first look; steingate monitor may be checked at any time.",
    )
    return 0


def _violations(count: int) -> str:
    return {0: "no violation", 1: "1 violation"}.get(count, f"{count} violations")
