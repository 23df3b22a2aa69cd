"""Data of a report page as plain JSON types: notices, curves of groups, and details of each run."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.certificates.certificate import Certificate
from steingate.errors import SteingateError
from steingate.gates.modes import NAMES
from steingate.report.groups import Group, mean_and_std, mean_hours
from steingate.report.load import Run
from steingate.report.run_settings import to_toml
from steingate.report.statistics import Estimate, tail_start
from steingate.report.summary import THRESHOLDS, Aggregate, Report, Summary, seed_scores, tail_episodes
from steingate.report.tables import overall_notes, percent, task

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Numbers = list[float | None]

CURVES = ("return", "cost", "violation_rate", "tail")
BINS = 40  # bars of the cost histogram between the atoms
_DENSITY_POINTS = 81
_WORST_EPISODES = 10
_METHODS_IN_NOTICE = 8
_TERMS = {"reference": "ReferenceRisk", "atoms": "DiscreteTerm", "interior": "InteriorTerm"}


@dataclass(frozen=True)
class Resolution:
    """Maximum number of points of a curve and of positions of the epoch slider."""

    points: int = 500
    frames: int = 500

    def halved(self) -> "Resolution":
        """Return half the resolution, but no less than a minimum."""
        return Resolution(max(self.points // 2, 8), max(self.frames // 2, 4))


@dataclass(frozen=True)
class Reference:
    """Reference distribution of a certificate over costs.

    Attributes
    ----------
    name
        Density and preset; empty if the certificate cannot be built from the configuration.
    scale
        Cost that is normalized to 1.
    zero_tol, one_tol
        Normalized costs up to ``zero_tol`` and from ``1 - one_tol`` count as atoms.
    zero_mass, one_mass
        Probabilities of the atoms.
    density
        Probability per histogram bin at evenly spaced costs from 0 to ``scale``.
    """

    name: str
    scale: float
    zero_tol: float
    one_tol: float
    zero_mass: float
    one_mass: float
    density: Array


def page_data(report: Report, tables: Sequence[str], resolution: Resolution) -> dict[str, Any]:
    """Return everything that a page shows; ``tables`` are given as HTML."""
    references = _References()
    return {
        "notices": [*certification_notices(report.groups), *violation_notices(report)],
        "tables": list(tables),
        "skipped": [[str(item.path), item.reason] for item in report.skipped],
        "modes": list(NAMES.values()),
        "tasks": [
            {
                "name": task(env),
                "limits": sorted({group.limit for group, _ in members}),
                "groups": [
                    _group_data(group, summary, report.color(group), resolution.points)
                    for group, summary in members
                ],
            }
            for env, members in report.by_task().items()
        ],
        "profiles": _profiles(report),
        "runs": [
            {**_run_data(run, group.label, references, resolution), "color": report.color(group)}
            for group in report.groups
            for run in group.runs
        ],
        "references": references.listed,
    }


def certification_notices(groups: Sequence[Group]) -> list[str]:
    """Return a sentence per group of runs with a certification: its own for one seed, counts for several."""
    sentences = []
    for group in groups:
        found = [run.certification for run in group.runs if run.certification is not None]
        if not found:
            continue
        start = f"{task(group.env)}, {group.label}: "
        if len(group.runs) == 1:
            sentences.append(start + found[0]["sentence"])
            continue
        certified = [item for item in found if item["certified"]]
        last = sum(item.get("which") == "last" for item in certified)
        text = f"{len(certified)} of {len(group.runs)} seeds have a certified policy"
        if certified:
            text += f", in {last} of them the final one"
        if len(found) < len(group.runs):
            text += f"; {len(group.runs) - len(found)} have no certification result"
        sentences.append(f"{start}{text}.")
    return sentences


def violation_notices(report: Report) -> list[str]:
    """Return a sentence per task with the violation rate of each method in the last fifth of training."""
    sentences = []
    for env, members in report.by_task().items():
        known = [(group, summary) for group, summary in members if isfinite(summary.violation_rate)]
        known.sort(key=lambda pair: pair[1].violation_rate)
        shown = [f"{group.label} {percent(summary.violation_rate)}" for group, summary in known]
        limits = " or ".join(f"{limit:g}" for limit in sorted({group.limit for group, _ in members}))
        if shown:
            rest = len(shown) - _METHODS_IN_NOTICE
            sentences.append(
                f"{task(env)}, violation rate (cost > {limits}) in the last fifth of training: "
                f"{', '.join(shown[:_METHODS_IN_NOTICE])}{f' and {rest} more' if rest > 0 else ''}."
            )
    return sentences


def run_reference(run: Run) -> Reference:
    """Return the reference of a run's certificate; without one, an empty one up to twice the limit."""
    preset, options = run.setting("preset", "released"), run.setting("certificate", {})
    try:
        certificate = Certificate.preset(str(preset), run.limit, **dict(options))
    except (SteingateError, TypeError, ValueError):
        return Reference("", 2.0 * run.limit, 1e-4, 1e-4, 0.0, 0.0, np.zeros(0))
    # A density that is infinite at an end is evaluated a little before it.
    grid = np.clip(np.linspace(0.0, 1.0, _DENSITY_POINTS), 2e-3, 1.0 - 2e-3)
    density = (1.0 - certificate.zero_mass - certificate.one_mass) * certificate.interior.pdf(grid) / BINS
    return Reference(
        f"{certificate.reference_name}, preset {preset}",
        certificate.scale,
        certificate.zero_tol,
        certificate.one_tol,
        certificate.zero_mass,
        certificate.one_mass,
        np.asarray(density, np.float64),
    )


def cost_histograms(cost: npt.ArrayLike, row: Integers, rows: int, reference: Reference) -> Integers:
    """Return (rows, 2 + BINS) counts: costs at the lower atom, at the upper atom, and in each bin between.

    ``row`` gives for each cost the row in which it is counted.
    """
    x = np.minimum(np.asarray(cost, np.float64) / reference.scale, 1.0)
    inner = 2 + np.minimum((x * BINS).astype(np.int64), BINS - 1)
    column = np.where(x <= reference.zero_tol, 0, np.where(x >= 1.0 - reference.one_tol, 1, inner))
    width = 2 + BINS
    return np.bincount(row * width + column, minlength=rows * width).reshape(rows, width)


def rounded(value: float) -> float | None:
    """Return a number with four significant digits, or None if it is not finite.

    Examples
    --------
    >>> rounded(1 / 3), rounded(2.0), rounded(float("nan"))
    (0.3333, 2, None)
    """
    if not isfinite(value):
        return None
    number = float(f"{value:.4g}")
    return int(number) if number.is_integer() else number


def _group_data(group: Group, summary: Summary, color: str, points: int) -> dict[str, Any]:
    """Return the curves of a group, and return and violation rate of each seed with their medians."""
    series: dict[str, Numbers] = {}
    for name in CURVES:
        steps, mean, std = mean_and_std(group, name)
        series |= {name: _thin(mean, points), f"{name}_std": _thin(std, points)}
    hours = mean_hours(group)
    return {
        "label": group.label,
        "color": color,
        "seeds": len(group.runs),
        "steps": _last_steps(steps, points),
        "hours": [rounded(hours[bucket[-1]]) for bucket in _buckets(len(hours), points)],
        **series,
        "points": [
            [rounded(score.violation_rate), rounded(score.ret), seed]
            for seed, score in seed_scores(group).items()
        ],
        "medians": [_interval(summary.seed_violation_rate), _interval(summary.seed_return)],
    }


def _profiles(report: Report) -> dict[str, Any] | None:
    """Return the performance profiles over all tasks, None if no method ran on all of them."""
    found = report.overall
    if not found.methods:
        return None

    def curves(score: Aggregate) -> list[Numbers]:
        return [[rounded(value) for value in values] for values in (score.profile, score.low, score.high)]

    return {
        "thresholds": [rounded(value) for value in THRESHOLDS],
        "tasks": len(found.scales),
        "notes": list(overall_notes(found)[1:]),
        "methods": [
            {
                "label": method.group.label,
                "color": report.color(method.group),
                "ret": curves(method.ret),
                "safety": curves(method.safety),
            }
            for method in found.methods
        ],
    }


def _run_data(run: Run, label: str, references: "_References", resolution: Resolution) -> dict[str, Any]:
    index = references.index(run)
    reference = references.known[index]
    ret, cost = tail_episodes(run)
    means = [rounded(float(values.mean())) if len(values) else None for values in (ret, cost)]
    return {
        "label": label,
        "task": task(run.env),
        "seed": run.seed,
        "limit": run.limit,
        "path": str(run.path),
        "epochs": run.n_epochs,
        "planned": run.planned_epochs,
        "perEpoch": int(run.config["steps_per_epoch"]),
        "tail": [len(cost), int(np.count_nonzero(cost > run.limit)), *means],
        "window": run.setting("window", 100),
        "modes": "".join(str(mode) for mode in run.modes),
        "steps": _last_steps(run.progress["TotalEnvSteps"], resolution.points),
        "curves": _run_curves(run, resolution.points),
        "gate": _gate(run, resolution.points),
        "reference": index,
        "frames": _frames(run, reference, resolution.frames),
        "phases": _phases(run, reference),
        "worst": _worst_episodes(run),
        "toml": to_toml(run.config),
        "versions": _versions(run),
    }


def _run_curves(run: Run, points: int) -> dict[str, Numbers]:
    low, high, largest = _cost_range(run)
    columns = {
        "ret": run.progress["Metrics/EpRet"],
        "cost": run.progress["Metrics/EpCost"],
        "epochRet": run.progress.get("Train/EpRet"),
        "epochCost": run.progress.get("Train/EpCost"),
        "low": low,
        "high": high,
    }
    curves = {name: _thin(values, points) for name, values in columns.items() if values is not None}
    return curves | {"worst": _thin(largest, points, largest=True)}


def _cost_range(run: Run) -> tuple[Array, Array, Array]:
    """Return the 10 % and 90 % quantiles and the maximum of the episode costs of each epoch."""
    epoch, cost = run.episodes["epoch"], run.episodes["cost"]
    ordered = np.concatenate([cost[np.lexsort((cost, epoch))], [np.nan]])
    edges = np.searchsorted(epoch, np.arange(run.n_epochs + 1))
    first, count = edges[:-1], np.diff(edges)

    def quantile(level: float) -> Array:
        place = level * np.maximum(count - 1, 0)
        below = first + place.astype(np.int64)
        above = np.minimum(below + 1, first + np.maximum(count - 1, 0))
        value = ordered[below] + (place % 1.0) * (ordered[above] - ordered[below])
        return np.where(count > 0, value, np.nan)

    return quantile(0.1), quantile(0.9), quantile(1.0)


def _gate(run: Run, points: int) -> dict[str, Numbers] | None:
    bound = run.progress.get("Gate/Bound")
    if bound is None or not np.isfinite(bound).any():
        return None
    missing = np.full(run.n_epochs, np.nan)
    columns = {name: run.progress.get(f"Gate/{column}", missing) for name, column in _TERMS.items()}
    columns["decision"] = run.progress.get("Gate/DecisionValue", bound)
    columns["budget"] = run.progress.get("Gate/Budget", missing)
    return {name: _thin(values, points) for name, values in columns.items()}


def _frames(run: Run, reference: Reference, most: int) -> list[list[Any]]:
    """Return first epoch, last epoch and cost histogram of each position of the epoch slider."""
    buckets = _buckets(run.n_epochs, most)
    frame = np.repeat(np.arange(len(buckets)), [len(bucket) for bucket in buckets])
    epoch = run.episodes["epoch"].astype(np.int64)
    histograms = cost_histograms(run.episodes["cost"], frame[epoch], len(buckets), reference)
    return [
        [int(bucket[0]), int(bucket[-1]), _compact(row)]
        for bucket, row in zip(buckets, histograms, strict=True)
    ]


def _phases(run: Run, reference: Reference) -> list[list[Any]]:
    """Return name, number of epochs and cost histogram of parts of the run and of each mode."""
    start = tail_start(run.n_epochs)
    epochs = np.arange(run.n_epochs)
    phases = {"whole run": np.ones(run.n_epochs, bool)}
    if run.n_epochs > 1:
        phases |= {"first fifth": epochs < run.n_epochs - start, "last fifth": epochs >= start}
    phases |= {name: run.modes == mode for mode, name in NAMES.items() if (run.modes == mode).any()}
    epoch = run.episodes["epoch"].astype(np.int64)
    result = []
    for name, chosen in phases.items():
        cost = run.episodes["cost"][chosen[epoch]]
        histogram = cost_histograms(cost, np.zeros(len(cost), np.int64), 1, reference)[0]
        result.append([name, int(chosen.sum()), _compact(histogram)])
    return result


def _worst_episodes(run: Run) -> list[list[Any]]:
    """Return cost, return, length, epoch, step and mode of the episodes with the highest costs."""
    order = np.argsort(-run.episodes["cost"], kind="stable")[:_WORST_EPISODES]
    return [
        [
            *(rounded(run.episodes[name][index]) for name in ("cost", "return", "length")),
            int(run.episodes["epoch"][index]),
            int(run.episodes["step"][index]),
            int(run.modes[int(run.episodes["epoch"][index])]),
        ]
        for index in order
    ]


def _versions(run: Run) -> list[list[str]]:
    """Return start time, versions and machine of a run as pairs of name and value."""
    pairs = [["started", str(run.record.get("started", "unknown"))]]
    for key, prefix in (("versions", ""), ("machine", ""), ("learner", "learner ")):
        values = run.record.get(key)
        if isinstance(values, dict):
            pairs += [[f"{prefix}{name}", str(value)] for name, value in values.items()]
    return pairs


class _References:
    """References of the runs, each listed once."""

    def __init__(self) -> None:
        self.known: list[Reference] = []
        self.listed: list[dict[str, Any]] = []
        self._index: dict[str, int] = {}

    def index(self, run: Run) -> int:
        key = repr((run.setting("preset"), run.setting("certificate"), run.limit))
        if key not in self._index:
            reference = run_reference(run)
            self._index[key] = len(self.known)
            self.known.append(reference)
            self.listed.append(
                {
                    "name": reference.name,
                    "scale": reference.scale,
                    "zero": reference.zero_mass,
                    "one": reference.one_mass,
                    "bins": BINS,
                    "density": [rounded(value) for value in reference.density],
                }
            )
        return self._index[key]


def _interval(estimate: Estimate) -> Numbers:
    return [rounded(value) for value in (estimate.value, estimate.low, estimate.high)]


def _buckets(count: int, most: int) -> list[Integers]:
    """Return the integers below ``count`` in at most ``most`` consecutive groups of nearly equal size."""
    return np.array_split(np.arange(count), min(count, most)) if count else []


def _thin(values: Array, points: int, largest: bool = False) -> Numbers:
    """Return at most ``points`` values, each the mean (or maximum) of consecutive epochs, ignoring NaN."""
    starts = [bucket[0] for bucket in _buckets(len(values), points)]
    if len(starts) in (0, len(values)):
        return [rounded(value) for value in values]
    if largest:
        return [rounded(value) for value in np.fmax.reduceat(values, starts)]
    known = np.isfinite(values)
    total = np.add.reduceat(np.where(known, values, 0.0), starts)
    count = np.add.reduceat(known, starts, dtype=int)
    return [rounded(value) for value in np.where(count > 0, total / np.maximum(count, 1), np.nan)]


def _last_steps(steps: Array, points: int) -> list[int]:
    return [int(steps[bucket[-1]]) for bucket in _buckets(len(steps), points)]


def _compact(counts: Integers) -> str:
    """Return counts as comma-separated text with empty entries for 0."""
    return ",".join(str(count) if count else "" for count in counts.tolist()).rstrip(",")
