"""``steingate certify``: the certificate of a list of episode costs, for people or for machines."""

import json
from argparse import Namespace
from typing import Any

from steingate.cli.parser import Parser
from steingate.cli.table import print_rows
from steingate.core.certificate import Certificate
from steingate.core.costs import Costs, read_costs
from steingate.core.presets import PRESETS
from steingate.core.result import Result, rule_in_words
from steingate.errors import InputError

SHUT = 1


def add_arguments(parser: Parser) -> None:
    """Declare the options of ``certify``."""
    parser.add_argument(
        "file", metavar="FILE", help="episode costs: CSV, JSON lines or NPY; - is standard input"
    )
    parser.add_argument("--limit", type=float, required=True, metavar="D", help="episode-cost limit")
    parser.add_argument(
        "--preset", default="confident", metavar="NAME", help=f"{', '.join(PRESETS)} (default: %(default)s)"
    )
    parser.add_argument("--budget", type=float, metavar="E", help="largest accepted risk (default: 0.1)")
    parser.add_argument(
        "--delta", type=float, metavar="P", help="error probability of the preset confident (default: 0.05)"
    )
    parser.add_argument(
        "--risk",
        metavar="H",
        help="what counts as risk: exceedance:0.5, sigmoid:0.5,0.02, hinge:0.5, power:2 or module:function, "
        "of the cost divided by its scale (default: the preset's)",
    )
    parser.add_argument("--column", metavar="C", help="column or key to read: a name, or a CSV column from 1")
    parser.add_argument("--json", action="store_true", help="print the result as JSON and nothing else")
    parser.add_argument("--plot", metavar="FILE", help="draw the certificate to FILE (.png, .svg or .pdf)")
    parser.add_argument(
        "--check", action="store_true", help="exit with status 1 when the gate would stay shut"
    )


def run(args: Namespace) -> int:
    """Certify the costs in ``args.file`` and return 0, or 1 when ``--check`` finds the gate shut."""
    given = {name: getattr(args, name) for name in ("budget", "delta", "risk")}
    overrides = {name: value for name, value in given.items() if value is not None}
    certificate = Certificate.preset(args.preset, limit=args.limit, **overrides)
    if args.delta is not None and certificate.decision != "confident":
        raise InputError(f"--delta {args.delta:g} has no effect on the preset {args.preset}; leave it out.")
    costs = read_costs(args.file, args.column)
    result = certificate.evaluate(costs)
    if args.plot:
        _plot(certificate, costs, result, args.plot)
    if args.json:
        print(json.dumps(result.to_dict(), allow_nan=False))
    else:
        _show(certificate, result)
    return SHUT if args.check and not result.safe else 0


def _plot(certificate: Certificate, costs: Costs, result: Result, path: str) -> None:
    # Matplotlib is optional and slow to load.
    from steingate.report.certificate_figure import save_certificate_figure

    save_certificate_figure(certificate, costs, path, result)


def _show(certificate: Certificate, result: Result) -> None:
    verdict = "[bold green]OPEN[/]" if result.safe else "[bold red]SHUT[/]"
    print_rows(f"Certificate ({result.preset}): {verdict}", _rows(certificate, result), result.diagnosis)
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
        rows.append(("less sampling noise", _number(result.decision_value), note))
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
