"""``steingate certify``: the certificate of a list of episode costs, in plain words or for machines."""

import json
from argparse import Namespace
from typing import Any

from steingate.certificates import words
from steingate.certificates.certificate import Certificate
from steingate.certificates.costs import Costs
from steingate.certificates.diagnosis import rule_in_words
from steingate.certificates.presets import PRESETS
from steingate.certificates.result import Result
from steingate.cli.cost_source import Source, read_source
from steingate.cli.parser import Parser
from steingate.cli.table import print_rows

SHUT = 1


def add_arguments(parser: Parser) -> None:
    """Declare the options of ``certify``."""
    parser.add_argument(
        "file",
        metavar="FILE",
        help="episode costs: CSV, JSON lines or NPY, a run folder, or a Monitor file of Stable-Baselines3; "
        "- is standard input",
    )
    parser.add_argument(
        "--limit", type=float, required=True, metavar="D", help="episode-cost limit; 0 accepts no cost at all"
    )
    parser.add_argument(
        "--preset", default="confident", metavar="NAME", help=f"{', '.join(PRESETS)} (default: %(default)s)"
    )
    parser.add_argument("--budget", type=float, metavar="E", help="largest accepted risk (default: 0.1)")
    parser.add_argument(
        "--delta", type=float, metavar="P", help="chance that a bound is wrong (default: 0.05)"
    )
    parser.add_argument(
        "--risk",
        metavar="H",
        help="what the gate counts as risk: exceedance (of the limit), or sigmoid:0.5,0.02, hinge:0.5, "
        "power:2, exceedance:0.5 or module:function, of cost / scale (default: the preset's)",
    )
    parser.add_argument("--column", metavar="C", help="column or key to read: a name, or a CSV column from 1")
    parser.add_argument(
        "--explain", action="store_true", help="also show how the gate decides, and what that can promise"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON and nothing else")
    parser.add_argument("--plot", metavar="FILE", help="draw the certificate to FILE (.png, .svg or .pdf)")
    parser.add_argument(
        "--check",
        action="store_true",
        help="exit with status 1 when the gate would stay shut, or more episodes than the budget are over",
    )


def run(args: Namespace) -> int:
    """Certify the costs in ``args.file`` and return 0, or 1 when ``--check`` finds the gate shut.

    A script reads no warnings, so a gate whose soft risk opens over the budget counts as shut there.
    """
    given = {name: getattr(args, name) for name in ("budget", "delta", "risk")}
    overrides = {name: value for name, value in given.items() if value is not None}
    certificate = Certificate.preset(args.preset, limit=args.limit, **overrides)
    source = read_source(args.file, args.column)
    result = certificate.evaluate(source.costs)
    if args.plot:
        _plot(certificate, source.costs, result, args.plot)
    if args.json:
        told = {"mixed_policies": source.mixed, "notes": list(source.notes)} if source.notes else {}
        print(json.dumps({**result.to_dict(), **told}, allow_nan=False))
    else:
        _show(result, source)
        if args.explain:
            print()
            _explain(certificate, result)
    opened = result.safe and result.over_share <= result.budget
    return SHUT if args.check and not opened else 0


def _plot(certificate: Certificate, costs: Costs, result: Result, path: str) -> None:
    # Matplotlib is optional and slow to load.
    from steingate.report.certificate_figure import save_certificate_figure

    save_certificate_figure(certificate, costs, path, result)


def _show(result: Result, source: Source) -> None:
    for note in source.notes:
        print(f"{note}\n")
    sure = words.confidence(result.over_delta)
    rows = [
        ("episodes", f"{result.samples:,}", ""),
        ("mean cost", words.number(result.mean_cost), ""),
        ("worst cost", words.number(result.worst_cost), ""),
        (f"over {words.number(result.limit)}", f"{result.over:,}", words.share(result.over_share)),
        (
            "P(over) at most",
            words.at_most(result.over_bound),
            f"with {sure} confidence (exact binomial bound)",
        ),
        (
            "gate",
            "open" if result.safe else "shut",
            f"preset {result.preset}; --explain shows how it decides",
        ),
    ]
    if source.mixed:
        title, told = words.counted(result), _MIXED if source.policies != 1 else _NOISY
    else:
        title, told = words.headline(result), words.advice(result)
    color = "green" if result.certified else "red"
    footer = " ".join(part for part in (told, words.gate_note(result)) if part)
    print_rows(title if source.mixed else f"[bold {color}]{title}[/]", rows, footer)


_MIXED = "These numbers are about all those policies together: this is no certificate for any one of them."
_NOISY = (
    "These numbers are about that policy with its noise: this is no certificate for the policy of the run."
)


def _explain(certificate: Certificate, result: Result) -> None:
    verdict = "[bold green]OPEN[/]" if result.safe else "[bold red]SHUT[/]"
    print_rows(f"Gate ({result.preset}): {verdict}", _rows(certificate, result), result.diagnosis)
    print()
    rows = [(check.name, "yes" if check.holds else "no", check.text) for check in result.checks]
    print_rows("What this configuration can promise", rows)


def _rows(certificate: Certificate, result: Result) -> list[tuple[str, str, str]]:
    rows: list[tuple[str, Any, str]] = [
        ("episodes", result.samples, f"{result.interior_samples} between the atoms"),
        ("limit", f"{result.limit:g}", f"costs are divided by {result.scale:g} and clipped at 1"),
        ("at no cost", f"{result.zero_mass:.1%}", f"reference {certificate.zero_mass:.1%}"),
        (f"at {result.scale:g} or more", f"{result.one_mass:.1%}", f"reference {certificate.one_mass:.1%}"),
        ("mean risk of the episodes", _number(result.empirical_risk), "no statistical guarantee by itself"),
        ("", "", ""),
    ]
    rows += _stein_rows(certificate, result) if result.delta is None else _confidence_rows(result)
    rows += [("", "", ""), ("decided by", _number(result.decision_value), rule_in_words(result.decided_by))]
    rows.append(("budget", _number(result.budget), "the gate opens up to here"))
    return [(name, str(value), note) for name, value, note in rows]


def _stein_rows(certificate: Certificate, result: Result) -> list[tuple[str, Any, str]]:
    rows = [
        ("risk of the reference", _number(result.reference_risk), _reference_note(certificate)),
        ("+ atoms", _number(result.discrete_term), f"discrepancy {_number(result.discrete_discrepancy)}"),
        (
            "+ interior",
            _number(result.interior_term),
            f"discrepancy {_number(result.interior_discrepancy)}, factor {_number(result.stein_factor)}",
        ),
        ("= Stein bound", _number(result.stein_bound), ""),
    ]
    if result.null_quantile is not None:
        note = f"noise quantile {_number(result.null_quantile)}, never below the mean risk"
        rows.append(("minus sampling noise", _number(result.decision_value), note))
    return rows


def _confidence_rows(result: Result) -> list[tuple[str, Any, str]]:
    over = f"at most {result.violation_bound:.2%}"
    return [
        (
            "bound on the risk",
            _number(result.bound),
            f"holds with probability {1.0 - (result.delta or 0.0):g}",
        ),
        (f"cost more than {result.limit:g}", over, f"{result.violation_factor:.3g} x the bound"),
    ]


def _reference_note(certificate: Certificate) -> str:
    note = certificate.reference_name
    return (
        note if certificate.attainable else f"{note}; above the budget, so the bound can never be within it"
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
