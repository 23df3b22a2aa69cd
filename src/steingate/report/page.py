"""Report page: one HTML file with the data as JSON and a script that draws it. It makes no requests."""

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate import __version__
from steingate.algorithms.modes import MODE_NAMES
from steingate.certificates.stein import SteinCertificate
from steingate.errors import SteingateError
from steingate.report.load import Run, to_toml
from steingate.report.plot_style import SCHEDULES
from steingate.report.statistics import tail_start
from steingate.report.summary import THRESHOLDS, Report, Summary, seed_scores, tail_episodes
from steingate.report.tables import ONE_SEED, overall_notes, percent, report_tables, task, to_html, write_text

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Numbers = list[float | None]

MAX_BYTES = 9_500_000
BINS = 40  # bars of the cost histogram between the atoms
_SCRIPTS = ("chart.js", "overview.js", "sections.js", "page.js")
_CURVES = ("return", "cost", "violation_rate", "cvar")  # of a group; the next two are columns of a run
_LOGGED = {
    "ret": "Metrics/EpRet", "cost": "Metrics/EpCost", "epochRet": "Train/EpRet", "epochCost": "Train/EpCost",
}  # fmt: skip
_GATE = {
    "reference": "Gate/ReferenceRisk", "atoms": "Gate/DiscreteTerm", "interior": "Gate/InteriorTerm",
    "bound": "Gate/Bound", "decision": "Gate/DecisionValue", "budget": "Gate/Budget",
}  # fmt: skip
_SECTIONS = (
    ("notices", "Summary"), ("overview", "Curves"), ("frontier", "Return against violation rate"),
    ("profiles", "Over all tasks"), ("tables", "Tables"), ("run", "One run"), ("skipped", "Skipped runs"),
)  # fmt: skip


def write_page(report: Report, path: str | Path, title: str = "SteinGate runs") -> None:
    """Write the page of a report."""
    write_text(Path(path), page(make_data(report), title))


def make_data(report: Report, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Return the data of a page; the number of points is halved until it fits into ``max_bytes``."""
    data: dict[str, Any] = {}
    for points in (500, 250, 125, 62, 31, 15, 7):
        data = page_data(report, points)
        if len(to_json(data)) <= max_bytes:
            break
    return data


def page(data: dict[str, Any] | None, title: str = "SteinGate runs", poll: int = 0) -> str:
    """Return the page of the result of ``make_data`` as HTML.

    Without data, the page requests ``data.json`` from its server every ``poll`` milliseconds.
    """
    style, script = _asset("page.css"), "\n".join(map(_asset, _SCRIPTS))
    # Browsers run this script and style only, and refuse requests to other servers.
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
        f"connect-src '{'self' if poll else 'none'}'; base-uri 'none'; form-action 'none'"
    )
    tables = "" if data is None else "".join(data["tables"])
    content = "null" if data is None else to_json(data)
    sections = "\n".join(
        f'<section id="{name}" aria-label="{label}">{tables * (name == "tables")}</section>'
        for name, label in _SECTIONS
    )
    return f"""<!doctype html>
<html lang="en" data-poll="{poll}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="generator" content="steingate {__version__}">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{escape(title)}</h1><p id="status"></p></header>
<main>
{sections}
<noscript><p class="note">The curves need JavaScript; the tables do not.</p></noscript>
</main>
<footer>Made by steingate {__version__}.</footer>
<script type="application/json" id="data">{content}</script>
<script>{script}</script>
</body>
</html>
"""


def to_json(data: dict[str, Any]) -> str:
    """Return data as JSON without the characters that could end an HTML script element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return (files("steingate.report") / "assets" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# Data of a page as plain JSON types


def page_data(report: Report, points: int) -> dict[str, Any]:
    """Return everything that a page shows; curves and the epoch slider have at most ``points`` points."""
    return {
        "notices": notices(report),
        "tables": [to_html(table) for table in report_tables(report)],
        "skipped": [[str(item.path), item.reason] for item in report.skipped],
        "modes": list(MODE_NAMES.values()),
        "tasks": [
            {
                "name": task(env),
                "limits": sorted({item.group.limit for item in members}),
                "groups": [_group_data(item, report, points) for item in members],
            }
            for env, members in report.by_task().items()
        ],
        "profiles": _profiles(report),
        "runs": [
            {"label": item.group.label, "color": report.colors[item.group.label]} | _run_data(run, points)
            for item in report.summaries
            for run in item.group.runs
        ],
    }


def verdicts(report: Report) -> list[str]:
    """Return the verdict of certification on each method with one seed."""
    found = []
    for item in report.summaries:
        certification = item.group.runs[0].certification
        if item.seeds == 1 and certification is not None:
            found.append(f"{task(item.group.env)}, {item.group.label}: {certification.get('sentence', '')}")
    return found


def notices(report: Report, most: int = 8) -> list[str]:
    """Return the verdicts, the violation rates of the safest methods of each task, and a warning if one seed is all."""
    sentences = verdicts(report)
    for env, members in report.by_task().items():
        known = sorted((item.violation_rate, item.group.label) for item in members if isfinite(item.violation_rate))
        limits = " or ".join(f"{limit:g}" for limit in sorted({item.group.limit for item in members}))
        if known:
            rates = ", ".join(f"{label} {percent(rate)}" for rate, label in known[:most])
            rest = f" and {len(known) - most} more" if len(known) > most else ""
            start = f"{task(env)}, violation rate (cost > {limits}) with exploration noise, last fifth of training"
            sentences.append(f"{start}: {rates}{rest}.")
    return sentences + [ONE_SEED] * (bool(report.runs) and not report.several_seeds)


def run_reference(run: Run) -> dict[str, Any]:
    """Return the reference distribution of a run's Stein certificate over costs.

    ``name`` is empty if the run has no such certificate or it cannot be built. Costs are divided by ``scale``;
    those closer than ``tol`` to 0 or 1 belong to the atoms, whose probabilities are ``zero`` and ``one``.
    ``density`` is the probability per histogram bin at evenly spaced costs.
    """
    unknown = {
        "name": "", "scale": 2.0 * run.trained_limit or 1.0, "tol": 1e-4, "zero": 0, "one": 0, "bins": BINS,
        "density": [],
    }  # fmt: skip
    preset, options = run.setting("preset"), run.setting("certificate", {})
    try:
        with np.errstate(all="ignore"):
            certificate = SteinCertificate.from_name(str(preset), run.trained_limit, imports=False, **options)
            # A density that is infinite at an end is evaluated a little before it.
            grid = np.clip(np.linspace(0.0, 1.0, 81), 2e-3, 1.0 - 2e-3)
            zero, one = certificate.zero_mass, certificate.one_mass
            density = (1.0 - zero - one) / BINS * np.asarray(certificate.interior.pdf(grid), np.float64)
    except (SteingateError, ArithmeticError, TypeError, ValueError):
        return unknown
    if not np.isfinite(density).all():
        return unknown
    return {
        "name": f"{certificate.reference_name}, preset {preset}", "scale": certificate.scale,
        "tol": certificate.atom_tol, "zero": zero, "one": one, "bins": BINS, "density": _rounded_list(density),
    }  # fmt: skip


def cost_histogram(cost: npt.ArrayLike, reference: dict[str, Any]) -> str:
    """Return the numbers of costs at the lower atom, at the upper atom and in BINS bins, by commas; zeros are empty."""
    x = np.clip(np.asarray(cost, np.float64) / reference["scale"], 0.0, 1.0)
    inner = 2 + np.minimum((x * BINS).astype(np.int64), BINS - 1)
    column = np.where(x <= reference["tol"], 0, np.where(x >= 1.0 - reference["tol"], 1, inner))
    counts = np.bincount(column, minlength=2 + BINS).tolist()
    return ",".join(str(count or "") for count in counts).rstrip(",")


def rounded(value: float) -> float | None:
    """Return a number with four significant digits, or None if it is not finite.

    >>> rounded(1 / 3), rounded(2.0), rounded(float("nan"))
    (0.3333, 2, None)
    """
    if not isfinite(value):
        return None
    number = float(f"{value:.4g}")
    return int(number) if number.is_integer() else number


def _group_data(item: Summary, report: Report, points: int) -> dict[str, Any]:
    """Return the curves of a group, and return and violation rate of each seed with their medians."""
    group = item.group
    series: dict[str, Numbers] = {}
    for name in _CURVES:
        steps, mean, std = group.mean_and_std(name)
        series |= {name: _thin(mean, points), f"{name}_std": _thin(std, points)}
    scores = seed_scores(group).items()
    return series | {
        "label": group.label,
        "color": report.colors[group.label],
        "seeds": len(group.runs),
        "steps": _last(steps, points),
        "hours": _last(group.mean_hours(), points),
        "points": [[rounded(score.violation_rate), rounded(score.ret), seed] for seed, score in scores],
        "medians": [_rounded_list(value) for value in (item.seed_violation_rate, item.seed_return)],
    }


def _profiles(report: Report) -> dict[str, Any] | None:
    """Return the performance profiles over all tasks; None with one seed, or if no method ran on all of them."""
    found = report.overall
    if not found.methods or not report.several_seeds:
        return None
    return {
        "thresholds": _rounded_list(THRESHOLDS),
        "tasks": len(found.scales),
        "notes": list(overall_notes(found)[1:]),
        "methods": [
            {"label": method.label, "color": report.colors[method.label]}
            | {name: list(map(_rounded_list, getattr(method, name)[-3:])) for name in ("ret", "safety")}
            for method in found.methods
        ],
    }


def _run_data(run: Run, points: int) -> dict[str, Any]:
    ret, cost = tail_episodes(run)
    means = [rounded(float(values.mean())) if len(values) else None for values in (ret, cost)]
    reference = run_reference(run)
    return {
        "task": task(run.env),
        "seed": run.seed,
        "limit": run.limit,
        "trainedLimit": run.trained_limit,
        "path": str(run.path),
        "epochs": run.n_epochs,
        "planned": run.planned_epochs,
        "perEpoch": int(run.config["steps_per_epoch"]),
        "tail": [len(cost), int(np.count_nonzero(cost > run.limit)), *means],
        "window": run.window,
        "modes": "".join(str(mode) for mode in run.modes),
        "steps": _last(run.progress["TotalEnvSteps"], points),
        "curves": _run_curves(run, points),
        "gate": _gate(run, points),
        "reference": reference,
        "frames": _frames(run, reference, points),
        "phases": _phases(run, reference),
        "worst": _worst_episodes(run),
        "toml": to_toml(run.config),
        "versions": _versions(run),
    }


def _logged(run: Run, columns: dict[str, str], points: int) -> dict[str, Any]:
    """Return columns of ``progress.csv`` by the names of the page."""
    return {name: _thin(run.progress[column], points) for name, column in columns.items() if column in run.progress}


def _run_curves(run: Run, points: int) -> dict[str, Numbers]:
    low, high, worst = _cost_range(run)
    ranges = {"low": _thin(low, points), "high": _thin(high, points), "worst": _thin(worst, points, largest=True)}
    return _logged(run, _LOGGED, points) | ranges


def _cost_range(run: Run) -> Iterator[Array]:
    """Yield the 10 % and 90 % quantiles and the maximum of the episode costs of each epoch."""
    epoch, cost = run.episodes["epoch"], run.episodes["cost"]
    ordered = np.append(cost[np.lexsort((cost, epoch))], np.nan)
    first = np.searchsorted(epoch, np.arange(run.n_epochs))
    last = np.searchsorted(epoch, np.arange(run.n_epochs), side="right") - 1
    for level in (0.1, 0.9, 1.0):
        place = first + level * np.maximum(last - first, 0)
        below = place.astype(np.int64)
        low, high = ordered[below], ordered[np.maximum(np.minimum(below + 1, last), below)]
        yield np.where(last >= first, low + place % 1.0 * (high - low), np.nan)


def _gate(run: Run, points: int) -> dict[str, Any]:
    """Return the columns of the gate that have a value: bound, its terms, budget; and its schedule."""
    found = _logged(run, _GATE | {name: column for column, name in SCHEDULES.items()}, points)
    gate: dict[str, Any] = {name: cells for name, cells in found.items() if set(cells) != {None}}
    schedules = [[name, gate.pop(name)] for name in SCHEDULES.values() if name in gate]
    if "decision" not in gate and "bound" in gate:
        gate["decision"] = gate["bound"]
    return gate | {"schedules": schedules}


def _frames(run: Run, reference: dict[str, Any], points: int) -> list[list[Any]]:
    """Return first epoch, last epoch (from 1) and cost histogram of each position of the epoch slider."""
    buckets = _buckets(run.n_epochs, points)
    ends = np.searchsorted(run.episodes["epoch"], [bucket[-1] for bucket in buckets], side="right")
    costs = np.split(run.episodes["cost"], ends[:-1])
    return [
        [int(bucket[0]) + 1, int(bucket[-1]) + 1, cost_histogram(cost, reference)]
        for bucket, cost in zip(buckets, costs, strict=True)
    ]


def _phases(run: Run, reference: dict[str, Any]) -> list[list[Any]]:
    """Return name, number of epochs and cost histogram of parts of the run and of each mode."""
    start, epochs = tail_start(run.n_epochs), np.arange(run.n_epochs)
    phases = {"whole run": epochs >= 0}
    if run.n_epochs > 1:
        phases |= {"first fifth": epochs < run.n_epochs - start, "last fifth": epochs >= start}
    phases |= {name: run.modes == mode for mode, name in MODE_NAMES.items() if 0 < sum(run.modes == mode) < len(epochs)}
    epoch, cost = run.episodes["epoch"].astype(np.int64), run.episodes["cost"]
    return [
        [name, int(chosen.sum()), cost_histogram(cost[chosen[epoch]], reference)] for name, chosen in phases.items()
    ]


def _worst_episodes(run: Run, most: int = 10) -> list[list[Any]]:
    """Return cost, return, length, epoch (from 1), step and mode of the episodes with the highest costs."""
    order = np.argsort(-run.episodes["cost"], kind="stable")[:most]
    columns = [run.episodes[name][order] for name in ("cost", "return", "length", "epoch", "step")]
    return [
        [*map(rounded, cells[:3]), int(cells[3]) + 1, int(cells[4]), int(run.modes[int(cells[3])])]
        for cells in zip(*columns, strict=True)
    ]


def _versions(run: Run) -> list[list[str]]:
    """Return start time, versions and machine of a run as pairs of name and value."""
    pairs = [["started", str(run.record.get("started", "unknown"))]]
    for key, prefix in (("versions", ""), ("machine", ""), ("learner", "learner ")):
        values = run.record.get(key)
        if isinstance(values, dict):
            pairs += [[f"{prefix}{name}", str(value)] for name, value in values.items()]
    return pairs


def _rounded_list(values: Sequence[float] | Array) -> Numbers:
    return [rounded(value) for value in values]


def _buckets(count: int, most: int) -> list[Integers]:
    """Return the integers below ``count`` in at most ``most`` consecutive groups of nearly equal size."""
    return np.array_split(np.arange(count), min(count, most)) if count else []


def _thin(values: Array, points: int, largest: bool = False) -> Numbers:
    """Return at most ``points`` values, each the mean (or maximum) of consecutive epochs, ignoring NaN."""
    starts = [bucket[0] for bucket in _buckets(len(values), points)]
    if len(starts) in (0, len(values)):
        return _rounded_list(values)
    if largest:
        return _rounded_list(np.fmax.reduceat(values, starts))
    known = np.isfinite(values)
    total = np.add.reduceat(np.where(known, values, 0.0), starts)
    count = np.add.reduceat(known, starts, dtype=int)
    return _rounded_list(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def _last(values: Array, points: int) -> list[float | None]:
    """Return the last value of each bucket; whole numbers are exact."""
    last = [float(values[bucket[-1]]) for bucket in _buckets(len(values), points)]
    return [int(value) if value.is_integer() else rounded(value) for value in last]
