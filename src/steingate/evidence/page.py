"""``evidence.html``: everything a bundle says on one static page without scripts, with figures as inline SVG."""

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.certificates.formatting import number, percent, rate, upper
from steingate.escaping import printable
from steingate.evidence.argument import Element, argument, texts
from steingate.evidence.plan import Plan
from steingate.evidence.statistics import EpisodeTable

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_SUMS = "SHA256SUMS has the SHA-256 of these and all other files; its own SHA-256 is the digest of the bundle."


def page(evidence: Mapping[str, Any], plan: Plan, table: EpisodeTable) -> str:
    """Return the page of the content of ``evidence.json``, the plan and the test episodes."""
    claim = evidence["claim"]
    environment, verdict = _text(claim["environment"]), "Established" if claim["established"] else "Not established"
    sections = (
        ("Result", _result(evidence) + _figures(plan.limit, table) + _statistics(evidence["result"])),
        ("Plan", _table([(name, str(value)) for name, value in plan.to_dict().items() if name != "schema_version"])),
        ("Method and assumptions", _paragraph("{name}: {text}".format(**evidence["method"]))
         + _list(evidence["assumptions"])),
        ("Not shown", _list(evidence["not_shown"])),
        ("Shift radius", _shift(evidence["result"]["shift_radius"])),
        ("Argument", _paragraph(texts()["disclaimer"]) + _tree(argument(evidence, plan), "")
         + _table([("standard", "question", "where"), *texts()["standards"]], True)),
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
    return _table(rows + ([("No sample", result["failure"])] if result["failure"] else []))


def _statistics(result: Mapping[str, Any]) -> str:
    rows = [(name, *(number(value) for value in result[name].values())) for name in ("cost", "return", "length")]
    return _table([("", *result["cost"]), *rows], head=True)


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


def _paragraph(text: str) -> str:
    return f"<p>{_text(text)}</p>"


def _list(items: Sequence[str], tag: str = "span") -> str:
    return f"<ul>{''.join(f'<li><{tag}>{_text(item)}</{tag}></li>' for item in items)}</ul>"


def _tree(elements: Sequence[Element], parent: str) -> str:
    """Return the elements of the argument below ``parent`` as nested lists."""
    items = []
    for each in elements:
        if each.parent == parent:
            todo = f' <span class="open">Open: {_text(each.open)}</span>' if each.open else ""
            items.append(f"<li><b>{each.id}</b> {_text(each.text)}{todo}{_tree(elements, each.id)}</li>")
    return f"<ul>{''.join(items)}</ul>" if items else ""


# Figures

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 460, 260, 52, 40, 14


def _figures(limit: float, table: EpisodeTable) -> str:
    top = max(float(table.cost.max()), 1.1 * limit, 1e-9)
    drawn = {
        "Costs of the test episodes; the dashed line is the limit.": _histogram(table.cost, limit, top),
        "Return and cost of the test episodes.": _scatter(table, limit, top),
    }
    figures = (f"<figure>{svg}<figcaption>{text}</figcaption></figure>" for text, svg in drawn.items())
    return f'<div class="figures">{"".join(figures)}</div>'


def _histogram(cost: npt.NDArray[np.float64], limit: float, top: float) -> str:
    edges = np.linspace(0.0, top, 31)
    total = np.histogram(cost, edges)[0].tolist()
    x, y = _scales(0.0, top, 0.0, max(total))
    bars = []
    for kind, counts in (("bar", total), ("over", np.histogram(cost[cost > limit], edges)[0].tolist())):
        for left, right, count in zip(edges, edges[1:], counts, strict=False):
            height = max(y(0) - y(count), 2.0)  # one episode stays visible beside thousands
            place = f'x="{x(left):.1f}" y="{y(0) - height:.1f}" width="{x(right) - x(left) - 1:.1f}"'
            bars.append(f'<rect class="{kind}" {place} height="{height:.1f}"/>' if count else "")
    return _plot("".join(bars), (0.0, top), (0.0, max(total)), "episode cost", "episodes", limit)


def _scatter(table: EpisodeTable, limit: float, top: float) -> str:
    shown = np.unique(np.linspace(0, len(table.ret) - 1, 2000).astype(int))
    ret, cost = table.ret[shown], table.cost[shown]
    low, high = float(ret.min()), float(ret.max())
    low, high = (low, high) if high > low else (low - 1.0, high + 1.0)
    x, y = _scales(0.0, top, low, high)
    kinds = np.where(cost > limit, "over", "bar")
    places = zip(kinds, cost, ret, strict=True)
    dots = (f'<circle class="{kind} dot" cx="{x(c):.1f}" cy="{y(r):.1f}" r="3"/>' for kind, c, r in places)
    return _plot("".join(dots), (0.0, top), (low, high), "episode cost", "return", limit)


def _scales(x0: float, x1: float, y0: float, y1: float) -> tuple[Any, Any]:
    """Return the functions from data to coordinates of the drawing."""
    across, up = (_WIDTH - _LEFT - 10) / (x1 - x0), (_HEIGHT - _BOTTOM - _TOP) / (y1 - y0)
    return lambda v: _LEFT + (v - x0) * across, lambda v: _HEIGHT - _BOTTOM - (v - y0) * up


def _plot(marks: str, xs: tuple[float, float], ys: tuple[float, float], xlabel: str, ylabel: str, limit: float) -> str:
    """Return an SVG with axes, the limit and marks."""
    x, y = _scales(*xs, *ys)
    base = _HEIGHT - _BOTTOM
    texts = [f'<text x="{x(v):.1f}" y="{base + 16}" text-anchor="middle">{number(v)}</text>' for v in _ticks(*xs)]
    texts += [f'<text x="{_LEFT - 6}" y="{y(v) + 4:.1f}" text-anchor="end">{number(v)}</text>' for v in _ticks(*ys)]
    texts += [f'<text x="{(_LEFT + _WIDTH) / 2}" y="{_HEIGHT - 6}" text-anchor="middle">{xlabel}</text>']
    texts += [f'<text transform="translate(12 {base / 2}) rotate(-90)" text-anchor="middle">{ylabel}</text>']
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{ylabel} by {xlabel}">{marks}'
        f'<path class="limit" d="M{x(limit):.1f} {_TOP}V{base}"/>'
        f'<path class="axis" d="M{_LEFT} {_TOP}V{base}H{_WIDTH - 10}"/>'
        f"{''.join(texts)}</svg>"
    )


def _ticks(low: float, high: float) -> list[float]:
    """Return three to seven round numbers between ``low`` and ``high``."""
    step = 10.0 ** np.floor(np.log10(high - low))
    step = next(step * f for f in (1.0, 0.5, 0.2, 0.1) if (high - low) / (step * f) >= 3.0)
    return [float(step * k) for k in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)]
