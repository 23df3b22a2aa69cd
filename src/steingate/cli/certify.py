"""``steingate certify`` and ``steingate plan``: the violation probability from a list of episode costs."""

import json
from argparse import Namespace
from math import inf

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


def certify_arguments(parser: Parser) -> None:
    option, flag = parser.option, parser.flag
    sources = "CSV, JSON lines or NPY; - for standard input"
    parser.add_argument("file", metavar="FILE", help=f"episode costs: {sources}")
    claim = parser.add_mutually_exclusive_group(required=True)
    claim.add_argument("--limit", type=float, metavar="D", help="limit on the episode cost")
    claim.add_argument("--smallest-limit", action="store_true", help="print the smallest limit that is certified")
    add_claim_options(parser)
    parser.set_defaults(risk=0.1, confidence=0.95)
    option("--cap", "X", "also bound mean and CVaR of the costs, clipped at X > D", type=float)
    option("--stein", None, "also evaluate this Stein certificate, with --risk as budget", choices=tuple(PRESETS))
    example = "'reference=Beta(2, 9)' or risk_function=exceedance:0.5"
    option("--certificate", "KEY=VALUE", f"option of the Stein certificate, such as {example}", action="append")
    option("--column", "C", "column or key of the cost: a name, or the number of a CSV column")
    option("--cluster", "C", "column of clusters of dependent episodes: days, robots, training seeds")
    flag("--explain", "also show the assumptions")
    flag("--json", "print JSON and nothing else")
    option("--plot", "FILE", "plot the certificate to FILE (.png, .svg or .pdf)")
    flag("--check", "exit with status 1 unless the risk is certified")


def certify(args: Namespace) -> int:
    """Print the certificate; return 1 if ``--check`` is given and no policy is certified."""
    if args.certificate and not args.stein:
        raise InputError("--certificate needs --stein NAME.")
    if args.smallest_limit and (args.stein or args.plot or args.cluster or args.cap is not None):
        raise InputError("--stein, --plot, --cluster and --cap need --limit.")
    data = read_costs(args.file, args.column, cluster=args.cluster)
    if args.smallest_limit:
        return _smallest_limit(args, data)
    result = certify_costs(data.costs, args.limit, args.risk, args.confidence, data.clusters)
    tail = {}
    if args.cap is not None:
        if data.clusters is not None:
            raise InputError("--cap needs independent episodes; leave out --cluster.")
        check_interval("--cap", args.cap, args.limit, inf)
        cvar = cvar_bound(data.costs, args.risk, args.limit, args.cap, args.confidence)
        tail = {"cap": args.cap, "mean_bound": mean_bound(data.costs, args.cap, args.confidence), "cvar_bound": cvar}
    stein = None
    if args.stein:
        options = convert(dict, args.certificate or {}, "--certificate")
        certificate = SteinCertificate.from_name(args.stein, args.limit, **{"budget": args.risk, **options})
        stein = certificate.evaluate(data.costs)
    if args.plot:
        from steingate.report.certificate_figure import stein_figure, violation_figure
        from steingate.report.plot_style import save_figure

        costs = data.costs
        figure = stein_figure(stein, costs) if stein else violation_figure(result, costs)
        save_figure(figure, args.plot)
    if args.json:
        extra = {} if stein is None else {"stein": stein.to_dict()}
        print(json.dumps({**result.to_dict(), **tail, **extra}, allow_nan=False))
    else:
        if stein is not None:
            _print_stein(stein)
            print()
        _print_result(result, args.file, tail)
        if args.explain:
            independent = INDEPENDENT if result.clusters is None else CLUSTERS_INDEPENDENT
            texts = {"independent": independent, **ASSUMPTIONS}
            print()
            print_rows("Assumptions", [(name, "", text) for name, text in texts.items()])
        if args.plot:
            print(f"Figure: {args.plot}")
    return NOT_CERTIFIED if args.check and not result.certified else 0


def _smallest_limit(args: Namespace, data: CostData) -> int:
    """Print the smallest limit that is certified; return as ``certify``."""
    risk, confidence, n = args.risk, args.confidence, len(data.costs)
    found = smallest_limit(data.costs, risk, confidence)
    if args.json:
        print(json.dumps({"smallest_limit": found, "episodes": n, "risk": risk, "confidence": confidence}))
    elif found is None:
        needed = episodes_needed(risk, confidence)
        print(f"{count(n)} certify no limit for {percent(risk)}: at least {needed:,} are needed.")
    else:
        claim = f"With {percent(confidence)} confidence at most {percent(risk)} of the episodes cost more"
        print(f"Smallest limit: {found:.10g}. {claim} ({count(n)}, whose number was fixed in advance).")
    return NOT_CERTIFIED if args.check and found is None else 0


def _print_result(result: ViolationResult, file: str, tail: dict[str, float]) -> None:
    limit, confidence = number(result.limit), percent(result.confidence)
    rows = [("mean cost", number(result.mean_cost), ""), ("largest cost", number(result.max_cost), "")]
    observed, bounded = f"cost more than {limit}", f"P(cost > {limit})"
    if result.clusters is not None:
        rows.insert(0, ("clusters", f"{result.clusters:,}", "each has the same weight"))
        observed, bounded = "of a cluster on average", "the expected part of a cluster"
    rows.append(("violations", f"{result.violations:,}", f"{rate(result.violation_rate)} {observed}"))
    rows.append(("bound", upper(result.bound), f"on {bounded}, with {confidence} confidence"))
    if tail:
        clipped = f"costs clipped at {number(tail['cap'])}; alone with {confidence} confidence"
        cvar = f"bound on the mean of the worst episodes; {clipped}"
        rows.append(("mean cost", upper_number(tail["mean_bound"]), f"bound; {clipped}"))
        rows.append((f"CVaR {percent(result.risk)}", upper_number(tail["cvar_bound"]), cvar))
    rows += shift_rows(result.shift, result.risk)
    source = "standard input" if file == "-" else file
    text = verdict(result.outcome, result.risk, result.known, f"the policy of {source}", result.advice)
    print_rows(f"{count(result.episodes)} of {source}", rows, text)


def _print_stein(result: SteinResult) -> None:
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
    title = f"Stein certificate {certificate.name}: gate {'open' if result.is_open else 'closed'}"
    print_rows(title, [(name, f"{value:.4g}", note) for name, value, note in rows], result.advice)


def plan_arguments(parser: Parser) -> None:
    add_claim_options(parser)
    parser.set_defaults(risk=0.1, confidence=0.95)
    parser.option("--episodes", "N", "also show what N episodes can certify", type=int)
    parser.option("--violations", "K", "violations among them", type=int, default=0)
    parser.option("--expect", "P", "expected violation probability of the policy", type=float)
    parser.option("--power", "Q", "wanted probability of a certificate", type=float, default=0.9)
    parser.flag("--json", "print JSON and nothing else")


def plan(args: Namespace) -> int:
    """Print how many episodes a certificate needs, and what a number of episodes can certify."""
    risk, confidence, n, violations = args.risk, args.confidence, args.episodes, args.violations
    needed = episodes_needed(risk, confidence, violations)
    numbers = {"risk": risk, "confidence": confidence, "violations": violations, "episodes_needed": needed}
    if n is not None:
        best = clopper_pearson_upper(violations, n, confidence)
        numbers |= {"episodes": n, "certifiable_risk": best, "certifiable": best <= risk}
    if args.expect is not None:
        if args.expect >= risk:
            reason = "a policy that violates as often as that cannot be certified"
            raise InputError(f"--expect must be below the risk, {risk:g}, got {args.expect:g}: {reason}.")
        enough, allowed = episodes_for_power(args.expect, args.power, risk, confidence)
        numbers |= {"expected": args.expect, "power": args.power}
        numbers |= {"episodes_for_power": enough, "violations_allowed": allowed}
    if args.json:
        print(json.dumps(numbers, allow_nan=False))
        return 0
    if args.expect is not None:
        sizes = sorted({needed, enough} | ({n} if n is not None else set()))
        print_rows(
            f"Probability of certifying {percent(risk)} if {percent(args.expect)} of the episodes are violations",
            [(count(size), rate(certification_power(size, args.expect, risk, confidence)), "") for size in sizes],
            f"{count(enough)} are the fewest for {percent(args.power)}; at most {_violations(allowed)} may occur.",
        )
        print()
    print_rows(
        f"Episodes that certify a risk of {percent(risk)} with {percent(confidence)} confidence",
        [
            (_violations(k), f"{episodes_needed(risk, confidence, k):,} episodes", "")
            for k in sorted({*range(6), violations})
        ],
        "Fix the number of episodes before the first look; steingate monitor may be checked at any time.",
    )
    if n is not None:
        print(f"\n{count(n)} with {_violations(violations)} certify a risk of {upper(best)}.")
    return 0


def _violations(number: int) -> str:
    return {0: "no violation", 1: "1 violation"}.get(number, f"{number} violations")
