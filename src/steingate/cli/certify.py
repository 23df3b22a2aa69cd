"""``steingate certify`` and ``steingate plan``: the violation probability from a list of episode costs."""

import json
from argparse import Namespace
from math import inf

from rich.markup import escape

from steingate.certificates.formatting import count, number, percent, rate, upper, upper_number, verdict
from steingate.certificates.io import CostData, read_costs
from steingate.certificates.stein import PRESETS, SteinCertificate, SteinResult
from steingate.certificates.tail import cvar_bound, mean_bound, smallest_limit
from steingate.certificates.violation import (
    ASSUMPTIONS,
    CLUSTERS_INDEPENDENT,
    INDEPENDENT,
    ViolationResult,
    certification_power,
    clopper_pearson_upper,
    episodes_for_power,
    episodes_needed,
)
from steingate.certificates.violation import certify as certify_costs
from steingate.cli.output import print_rows, shift_rows
from steingate.cli.parser import Parser, add_claim_options
from steingate.errors import InputError, check_interval
from steingate.settings import convert

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
    claim = parser.add_mutually_exclusive_group(required=True)
    claim.add_argument("--limit", type=float, metavar="D", help="limit on the episode cost")
    claim.add_argument("--smallest-limit", action="store_true", help="print the smallest limit that is certified")
    add_claim_options(parser)
    add(
        "--cap",
        type=float,
        metavar="X",
        help="also bound mean and CVaR of the costs, clipped at X > D",
    )
    add("--stein", choices=tuple(PRESETS), help="also evaluate this Stein certificate, with --risk as budget")
    add(
        "--certificate",
        action="append",
        metavar="KEY=VALUE",
        help="option of the Stein certificate, such as 'reference=Beta(2, 9)' or risk_function=exceedance",
    )
    add("--column", metavar="C", help="column or key of the cost: a name, or the number of a CSV column")
    add("--cluster", metavar="C", help="column of clusters of dependent episodes: days, robots, training seeds")
    add("--explain", action="store_true", help="also show the assumptions")
    add("--json", action="store_true", help="print JSON and nothing else")
    add("--plot", metavar="FILE", help="plot the certificate to FILE (.png, .svg or .pdf)")
    add("--check", action="store_true", help="exit with status 1 unless one policy is certified")


def certify(args: Namespace) -> int:
    """Print the certificate; return 1 if ``--check`` is given and no policy is certified."""
    risk, confidence = _claim(args)
    if args.certificate and not args.stein:
        raise InputError("--certificate needs --stein NAME.")
    data = read_costs(args.file, args.column, cluster=args.cluster)
    if args.smallest_limit:
        return _smallest_limit(args, data, risk, confidence)
    result = certify_costs(data.costs, args.limit, risk, confidence, data.clusters)
    tail = {} if args.cap is None else _tail_bounds(data, args.limit, args.cap, risk, confidence)
    stein = None
    if args.stein:
        options = convert(dict, args.certificate or {}, "--certificate")
        certificate = SteinCertificate.from_name(args.stein, args.limit, **{"budget": risk, **options})
        stein = certificate.evaluate(data.costs)
    if args.plot:
        from steingate.report.certificate_figure import stein_figure, violation_figure
        from steingate.report.plot_style import save_figure

        if stein is None:
            figure = violation_figure(result, data.costs, data.one_policy)
        else:
            figure = stein_figure(stein, data.costs)
        save_figure(figure, args.plot)
    certified = result.certified and data.one_policy
    if args.json:
        source = {"certified": certified, "one_policy": data.one_policy, "note": data.note}
        extra = {} if stein is None else {"stein": stein.to_dict()}
        print(json.dumps({**result.to_dict(), **tail, **source, **extra}, allow_nan=False))
    else:
        if stein is not None:
            _print_stein(stein, args.explain)
            print()
        _print_result(result, args.file, data, args.explain, tail)
        if args.plot:
            print(f"Figure: {args.plot}")
    return NOT_CERTIFIED if args.check and not certified else 0


def _smallest_limit(args: Namespace, data: CostData, risk: float, confidence: float) -> int:
    """Print the smallest limit that is certified; return as ``certify``."""
    if args.stein or args.plot or args.cluster or args.cap is not None:
        raise InputError("--stein, --plot, --cluster and --cap need --limit.")
    found, n = smallest_limit(data.costs, risk, confidence), len(data.costs)
    if args.json:
        numbers = {"smallest_limit": found, "episodes": n, "risk": risk, "confidence": confidence}
        print(json.dumps({**numbers, "one_policy": data.one_policy, "note": data.note}, allow_nan=False))
    elif found is None:
        needed = episodes_needed(risk, confidence)
        print(f"{count(n)} certify no limit for {percent(risk)}: at least {needed:,} are needed.")
    else:
        print(
            f"Smallest limit: {found:.10g}. With {percent(confidence)} confidence at most {percent(risk)} of the "
            f"episodes cost more ({count(n)}, whose number was fixed in advance)."
        )
        if data.note:
            print(data.note)
    return NOT_CERTIFIED if args.check and (found is None or not data.one_policy) else 0


def _claim(args: Namespace) -> tuple[float, float]:
    """Return the accepted risk and the confidence."""
    return 0.1 if args.risk is None else args.risk, 0.95 if args.confidence is None else args.confidence


def _tail_bounds(data: CostData, limit: float, cap: float, risk: float, confidence: float) -> dict[str, float]:
    """Return the bounds on mean and CVaR of the clipped costs, each with this confidence."""
    if data.clusters is not None:
        raise InputError("--cap needs independent episodes; leave out --cluster.")
    check_interval("--cap", cap, limit, inf)
    tail = cvar_bound(data.costs, risk, limit, cap, confidence)
    return {"cap": cap, "mean_bound": mean_bound(data.costs, cap, confidence), "cvar_bound": tail}


def _print_result(result: ViolationResult, file: str, data: CostData, explain: bool, tail: dict[str, float]) -> None:
    limit, confidence = number(result.limit), percent(result.confidence)
    rows = [
        ("mean cost", number(result.mean_cost), ""),
        ("largest cost", number(result.max_cost), ""),
        ("violations", f"{result.violations:,}", f"{rate(result.violation_rate)} cost more than {limit}"),
        ("bound", upper(result.bound), f"on P(cost > {limit}), with {confidence} confidence"),
    ]  # fmt: skip
    if result.clusters is not None:
        rows.insert(0, ("clusters", f"{result.clusters:,}", "each has the same weight"))
        rows[3] = ("violations", f"{result.violations:,}", f"{rate(result.violation_rate)} of a cluster on average")
        rows[4] = ("bound", upper(result.bound), f"on the expected part of a cluster, with {confidence} confidence")
    if tail:
        clipped = f"costs clipped at {number(tail['cap'])}; alone with {confidence} confidence"
        name = f"CVaR {percent(result.risk)}"
        rows.append(("mean cost", upper_number(tail["mean_bound"]), f"bound; {clipped}"))
        rows.append((name, upper_number(tail["cvar_bound"]), f"bound on the mean of the worst episodes; {clipped}"))
    rows += shift_rows(result.shift, result.risk)
    source = "standard input" if file == "-" else file
    if data.one_policy:
        text = verdict(result.outcome, result.risk, result.known, f"the policy of {source}", result.advice)
    else:
        text = verdict(None, result.risk, data.note.removesuffix("."))
    print_rows(f"[bold]{count(result.episodes)} of {escape(source)}[/]", rows, text)
    if explain:
        print()
        independent = INDEPENDENT if result.clusters is None else CLUSTERS_INDEPENDENT
        texts = {"independent": independent, **ASSUMPTIONS}
        print_rows("Assumptions", [(name, "", text) for name, text in texts.items()])


def _print_stein(result: SteinResult, explain: bool) -> None:
    certificate = result.certificate
    scale = number(certificate.scale)
    atoms = f"{rate(result.zero_mass)} cost nothing, {rate(result.one_mass)} cost {scale} or more"
    interior = f"lambda_int {certificate.factor:.4g}, SD_int {result.interior_discrepancy:.4g}"
    proven = "at least the mean risk (proven)" if certificate.bounds_sample_risk else "not proven"
    rows = [
        ("h_ref", result.reference_risk, f"risk of the reference {certificate.reference_name}"),
        ("+ atoms", result.discrete_term, f"SD_disc {result.discrete_discrepancy:.4g}; {atoms}"),
        ("+ interior", result.interior_term, f"{interior}; {count(result.interior_episodes)}"),
        ("= U", result.stein_bound, proven),
        ("mean risk", result.empirical_risk, "of the episodes"),
        ("decision", result.decision_value, result.decided_by.replace("_", " ")),
        ("budget", result.budget, "the gate is open up to this value"),
    ]  # fmt: skip
    if result.null_quantile is not None:
        rows.insert(4, ("noise", result.null_quantile, "subtracted from SD_int"))
    color = "green" if result.is_open else "red"
    title = f"Stein certificate {certificate.name}: [bold {color}]gate {'open' if result.is_open else 'closed'}[/]"
    print_rows(title, [(name, f"{value:.4g}", note) for name, value, note in rows], result.advice)
    if explain:
        print()
        items = [(item.name, "yes" if item.holds else "no", item.text) for item in certificate.assumptions]
        print_rows("Assumptions of the Stein certificate", items)


def plan_arguments(parser: Parser) -> None:
    """Add the options of ``plan``."""
    add_claim_options(parser)
    parser.add_argument("--episodes", type=int, metavar="N", help="also show what N episodes can certify")
    parser.add_argument("--violations", type=int, default=0, metavar="K", help="violations among them (default: 0)")
    parser.add_argument("--expect", type=float, metavar="P", help="expected violation probability of the policy")
    parser.add_argument(
        "--power", type=float, default=0.9, metavar="Q", help="wanted probability of a certificate (default: 0.9)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def plan(args: Namespace) -> int:
    """Print how many episodes a certificate needs, and what a number of episodes can certify."""
    risk, confidence = _claim(args)
    needed = episodes_needed(risk, confidence, args.violations)
    best = None if args.episodes is None else clopper_pearson_upper(args.violations, args.episodes, confidence)
    if args.expect is not None:
        enough, allowed = episodes_for_power(args.expect, args.power, risk, confidence)
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
        if args.expect is not None:
            numbers |= {"expected": args.expect, "power": args.power}
            numbers |= {"episodes_for_power": enough, "violations_allowed": allowed}
        print(json.dumps(numbers, allow_nan=False))
        return 0
    if args.expect is not None:
        sizes = sorted({needed, *([] if args.episodes is None else [args.episodes]), enough})
        print_rows(
            f"Probability of certifying {percent(risk)} if {percent(args.expect)} of the episodes are violations",
            [(count(n), rate(certification_power(n, args.expect, risk, confidence)), "") for n in sizes],
            f"{count(enough)} are the fewest for {percent(args.power)}; at most {_violations(allowed)} may occur.",
        )
        print()
    counts = sorted({*range(PLANNED_VIOLATIONS + 1), args.violations})
    print_rows(
        f"Episodes that certify a risk of {percent(risk)} with {percent(confidence)} confidence",
        [(_violations(k), f"{episodes_needed(risk, confidence, k):,} episodes", "") for k in counts],
    )
    print()
    sizes = [n for n in PLANNED_EPISODES if n >= args.violations] if args.episodes is None else [args.episodes]
    bounds = [(n, clopper_pearson_upper(args.violations, n, confidence)) for n in sizes]
    print_rows(
        f"Risk that n episodes with {_violations(args.violations)} certify",
        [(count(n), upper(bound), "certified" if bound <= risk else "above the accepted risk") for n, bound in bounds],
        "Fix the number of episodes before the first look; steingate monitor may be checked at any time.",
    )
    return 0


def _violations(number: int) -> str:
    return {0: "no violation", 1: "1 violation"}.get(number, f"{number} violations")
