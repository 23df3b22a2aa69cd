"""``evidence.html``: everything a bundle says on one static page without scripts, with figures as inline SVG."""

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.certificates.formatting import number, percent, rate, upper
from steingate.escaping import printable
from steingate.evidence.plan import Plan
from steingate.evidence.statistics import EpisodeTable

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_SUMS = "SHA256SUMS has the SHA-256 of these and all other files; its own SHA-256 is the digest of the bundle."


def page(evidence: Mapping[str, Any], plan: Plan, table: EpisodeTable) -> str:
    """Return the page of the content of ``evidence.json``, the plan and the test episodes."""
    claim = evidence["claim"]
    environment, verdict = _text(claim["environment"]), "Established" if claim["established"] else "Not established"
    sections = (
        ("Result", _result(evidence) + _histogram(table.cost, plan.limit)),
        ("Plan", _table([(name, str(value)) for name, value in plan.to_dict().items() if name != "schema_version"])),
        ("Method and assumptions", _paragraph(_capital("{name}. {text}".format(**evidence["method"])))
         + _list(evidence["assumptions"])),
        ("Not shown", _list(evidence["not_shown"])),
        ("Shift radius", _shift(evidence["result"]["shift_radius"])),
        ("Re-test triggers and monitoring", _table([(each["id"], each["text"]) for each in evidence["retest_triggers"]])
         + _list([evidence["monitoring"]], "code")),
        ("Policy, training and test", _origin(evidence)),
        ("Files", _table(list(evidence["files"].items())) + _paragraph(_SUMS)
         + _list(["steingate evidence verify DIR", evidence["replay"]["command"]], "code")),
    )  # fmt: skip
    body = "".join(f"<section><h2>{title}</h2>{content}</section>\n" for title, content in sections)
    style = (files("steingate.evidence") / "page.css").read_text(encoding="utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>Evidence: {environment}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>Evidence for a policy in {environment}</h1>
<div class="claim{" yes" * claim["established"]}"><strong>{verdict}</strong>{_text(claim["sentence"])}</div>
{body}<p class="soft">Made by steingate {_text(evidence["steingate"])}. Verify the folder before you rely on it.</p>
</main>
</body>
</html>
"""


def _result(evidence: Mapping[str, Any]) -> str:
    claim, result, number_of_test = evidence["claim"], evidence["result"], evidence["test"]["number"]
    over = f"{result['violations']:,} ({rate(result['violation_rate'])})"
    rows = [
        ("Episodes", f"{result['episodes']:,}"),
        ("Violations", f"{over} cost more than {number(claim['limit'])}"),
        ("Upper bound", f"{upper(result['bound'])}, wrong with probability at most {result['error_probability']:.3g}"),
        ("Budget", percent(claim["budget"])),
        ("Evaluation", f"{number_of_test} of this run; all together have {percent(claim['confidence'])} confidence"),
        ("Ends", ", ".join(f"{count:,} {name}" for name, count in result["ends"].items())),
    ]
    rows += [("No sample", result["failure"])] if result["failure"] else []
    names = ("cost", "return", "length")
    statistics = [(name, *(number(value) for value in result[name].values())) for name in names]
    return _table(rows) + _table([("", *result["cost"]), *statistics], head=True)


def _shift(shift: Mapping[str, float] | None) -> str:
    if shift is None:
        return _paragraph("None: the claim is not established.")
    text = "If episodes in operation have another distribution than in the test, the claim holds up to these distances."
    return _paragraph(text) + _table([(name.replace("_", " "), f"{value:.4g}") for name, value in shift.items()])


def _origin(evidence: Mapping[str, Any]) -> str:
    policy, training, test = (evidence[name] for name in ("policy", "training", "test"))
    rows = [
        ("Policy", f"{policy['which']}, step {policy['step']:,}"),
        ("SHA-256 of its arrays", policy["sha256"]),
        ("Algorithm", f"{training['algo']}, {training['total_steps']:,} steps, seed {training['seed']}"),
        ("Run", f"{training['run']}, started {training['started']}, identity {training['identity']}"),
        ("Certification in training", str(training["certification"])),
        ("Test", f"{test['started']} to {test['finished']}, {test['actions']} actions"),
        ("Code of the test, SHA-256", test["code_sha256"]),
    ]
    for name, origin in (("training", training), ("test", test)):
        for kind in ("versions", "machine"):
            values = origin[kind] if isinstance(origin[kind], Mapping) else {}
            rows.append((f"{kind.capitalize()}, {name}", ", ".join(f"{key} {value}" for key, value in values.items())))
    return _table(rows)


def _text(value: Any) -> str:
    return escape(printable(value, 5000))


def _table(rows: Sequence[Sequence[str]], head: bool = False) -> str:
    """Return a table whose headers are the first row with ``head``, else the first column."""
    lines = []
    for i, row in enumerate(rows):
        tags = ["th" if (i == 0 if head else k == 0) else "td" for k in range(len(row))]
        cells = (f"<{tag}>{_text(cell)}</{tag}>" for tag, cell in zip(tags, row, strict=True))
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>'


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _paragraph(text: str) -> str:
    return f"<p>{_text(text)}</p>"


def _list(items: Sequence[str], tag: str = "span") -> str:
    return f"<ul>{''.join(f'<li><{tag}>{_text(item)}</{tag}></li>' for item in items)}</ul>"


def _histogram(cost: npt.NDArray[np.float64], limit: float) -> str:
    """Return a figure of the episode costs, those over the limit in another color."""
    width, base, left, top = 460, 190, 40, 14
    highest = max(float(cost.max()), 1.1 * limit, 1e-9)
    edges = np.linspace(0.0, highest, 31)
    counts = np.histogram(cost, edges)[0]
    x, y = (width - left - 10) / highest, (base - top) / counts.max()  # per unit of cost, per episode
    marks = []
    for kind, shown in (("bar", cost), ("over", cost[cost > limit])):
        for edge, count in zip(edges, np.histogram(shown, edges)[0], strict=False):
            height = max(y * count, 2.0)  # one episode stays visible beside thousands
            place = f'x="{left + x * edge:.1f}" y="{base - height:.1f}" width="{x * edges[1] - 1.0:.1f}"'
            marks.append(f'<rect class="{kind}" {place} height="{height:.1f}"/>' if count else "")
    at, side = left + x * limit, "end" if 2.0 * limit > highest else "start"
    labels = (
        (left, base + 16, "start", "0"),
        (width - 10, base + 16, "end", number(highest)),
        (left - 6, top + 4, "end", f"{counts.max()}"),
        (at + (-6 if side == "end" else 6), top + 4, side, f"limit {number(limit)}"),
    )
    marks += [f'<text x="{h:.1f}" y="{v}" text-anchor="{anchor}">{text}</text>' for h, v, anchor, text in labels]
    return (
        f'<figure><svg viewBox="0 0 {width} {base + 24}" role="img" aria-label="histogram of the episode costs">'
        f'{"".join(marks)}<path class="limit" d="M{at:.1f} {top}V{base}"/>'
        f'<path class="axis" d="M{left} {top}V{base}H{width - 10}"/></svg>'
        "<figcaption>Number of test episodes by cost.</figcaption></figure>"
    )
