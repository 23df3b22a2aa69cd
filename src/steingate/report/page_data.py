"""What a page shows, as plain JSON types: curves of groups, and each run in detail."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.gates.modes import NAMES
from steingate.report.at_a_glance import notices, profiles
from steingate.report.cost_bars import BINS, Counts, Reference, bars, run_reference
from steingate.report.evidence import Evidence
from steingate.report.frontier import seed_points
from steingate.report.groups import Group, mean_and_spread, mean_hours
from steingate.report.json_numbers import short
from steingate.report.loading import Run, run_id, setting
from steingate.report.record import to_toml
from steingate.report.report_tables import task
from steingate.report.seeds import Estimate
from steingate.report.stats import tail_start
from steingate.report.summary import Summary, tail_episodes
from steingate.report.verdicts import verdict_sentences

Array = npt.NDArray[np.float64]
WORST = 10
CURVES = {"ret": "return", "cost": "cost", "over": "over", "tail": "tail"}  # on the page, in Run.recent
_TERMS = {"reference": "ReferenceRisk", "atoms": "DiscreteTerm", "interior": "InteriorTerm"}


@dataclass(frozen=True)
class Detail:
    """How fine the page is: points of a curve, and positions of the slider over epochs."""

    points: int = 500
    frames: int = 500

    def coarser(self) -> "Detail":
        """Return half of everything."""
        return Detail(max(self.points // 2, 8), max(self.frames // 2, 4))


def page_data(evidence: Evidence, tables: Sequence[str], detail: Detail) -> dict[str, Any]:
    """Return everything a page shows of the runs."""
    references = _References()
    return {
        "notices": [*verdict_sentences(evidence.groups), *notices(evidence)],
        "tables": list(tables),
        "skipped": [[str(item.path), item.reason] for item in evidence.skipped],
        "modes": list(NAMES.values()),
        "tasks": _tasks(evidence, detail),
        "profiles": profiles(evidence),
        "runs": [
            {**run_data(run, group.label, references, detail), "color": evidence.color(group)}
            for group in evidence.groups
            for run in group.runs
        ],
        "references": references.listed,
    }


def _tasks(evidence: Evidence, detail: Detail) -> list[dict[str, Any]]:
    return [
        {
            "name": task(env),
            "limits": sorted({group.limit for group, _ in members}),
            "groups": [
                {**_curves(group, evidence.color(group), detail.points), **_frontier(group, summary)}
                for group, summary in members
            ],
        }
        for env, members in evidence.by_task().items()
    ]


def _frontier(group: Group, summary: Summary) -> dict[str, Any]:
    """Return a point for each seed (share over the limit, return, seed), and medians with intervals."""
    return {
        "points": [[short(point.exceedance), short(point.ret), seed] for seed, point in seed_points(group)],
        "medians": [_interval(summary.seed_exceedance), _interval(summary.seed_return)],
    }


def _interval(estimate: Estimate) -> list[float | None]:
    return [short(value) for value in (estimate.value, estimate.low, estimate.high)]


def _curves(group: Group, color: str, points: int) -> dict[str, Any]:
    series: dict[str, Array] = {}
    for key, name in CURVES.items():
        steps, series[key], series[f"{key}Spread"] = mean_and_spread(group, name)
    hours = mean_hours(group)
    return {
        "label": group.label,
        "color": color,
        "seeds": len(group.runs),
        "steps": _ends(steps, points),
        "hours": [short(hours[bucket[-1]]) for bucket in _buckets(len(hours), points)],
        **{name: _thin(values, points) for name, values in series.items()},
    }


def run_data(run: Run, label: str, references: "_References", detail: Detail) -> dict[str, Any]:
    """Return one run in detail."""
    index = references.index(run)
    reference = references.known[index]
    start = tail_start(run.epochs)
    return {
        "label": label,
        "task": task(run.env),
        "seed": run.seed,
        "limit": run.limit,
        "path": str(run.path),
        "id": run_id(run.path),
        "epochs": run.epochs,
        "planned": run.planned,
        "perEpoch": int(run.config["steps_per_epoch"]),
        "tailStart": start,
        "tail": _tail(run),
        "window": setting(run, "window", 100),
        "modes": "".join(str(mode) for mode in run.modes),
        "steps": _ends(run.progress["TotalEnvSteps"], detail.points),
        "curves": _run_curves(run, detail.points),
        "gate": _gate(run, detail.points),
        "reference": index,
        "gated": bool(np.isfinite(run.progress.get("Gate/Bound", np.full(1, np.nan))).any()),
        "frames": _frames(run, reference, detail.frames),
        "phases": _phases(run, reference, start),
        "worst": _worst(run),
        "toml": to_toml(run.config),
        "made": _made(run),
    }


def _run_curves(run: Run, points: int) -> dict[str, list[float | None]]:
    low, high, top = _cost_range(run)
    columns = {
        "ret": run.progress["Metrics/EpRet"],
        "cost": run.progress["Metrics/EpCost"],
        "epochRet": run.progress.get("Train/EpRet"),
        "epochCost": run.progress.get("Train/EpCost"),
        "low": low,
        "high": high,
    }
    curves = {name: _thin(values, points) for name, values in columns.items() if values is not None}
    return curves | {"worst": _thin(top, points, largest=True)}


def _cost_range(run: Run) -> tuple[Array, Array, Array]:
    """Return, per epoch, the tenth and ninetieth percentile and the largest of the episodes' costs."""
    epoch, cost = run.episodes["epoch"], run.episodes["cost"]
    ordered = np.concatenate([cost[np.lexsort((cost, epoch))], [np.nan]])
    edges = np.searchsorted(epoch, np.arange(run.epochs + 1))
    first, count = edges[:-1], np.diff(edges)

    def quantile(level: float) -> Array:
        place = level * np.maximum(count - 1, 0)
        below = first + place.astype(np.int64)
        above = np.minimum(below + 1, first + np.maximum(count - 1, 0))
        value = ordered[below] + (place % 1.0) * (ordered[above] - ordered[below])
        return np.where(count > 0, value, np.nan)

    return quantile(0.1), quantile(0.9), quantile(1.0)


def _gate(run: Run, points: int) -> dict[str, list[float | None]] | None:
    bound = run.progress.get("Gate/Bound")
    if bound is None or not np.isfinite(bound).any():
        return None
    missing = np.full(run.epochs, np.nan)
    columns = {name: run.progress.get(f"Gate/{column}", missing) for name, column in _TERMS.items()}
    columns["decides"] = run.progress.get("Gate/DecisionValue", bound)
    columns["budget"] = run.progress.get("Gate/Budget", missing)
    return {name: _thin(values, points) for name, values in columns.items()}


def _frames(run: Run, reference: Reference, most: int) -> list[list[Any]]:
    """Return the slider's positions: first epoch, last epoch, counts."""
    stretches = _buckets(run.epochs, most)
    owner = np.repeat(np.arange(len(stretches)), [len(stretch) for stretch in stretches])
    heights = bars(
        run.episodes["cost"], owner[run.episodes["epoch"].astype(np.int64)], len(stretches), reference
    )
    return [
        [int(stretch[0]), int(stretch[-1]), _packed(row)]
        for stretch, row in zip(stretches, heights, strict=True)
    ]


def _phases(run: Run, reference: Reference, start: int) -> list[list[Any]]:
    """Return costs by phase: name, number of epochs, counts."""
    epoch = run.episodes["epoch"].astype(np.int64)
    phases = {"whole run": np.ones(run.epochs, bool)}
    if run.epochs > 1:
        phases["first fifth"] = np.arange(run.epochs) < run.epochs - start
        phases["last fifth"] = np.arange(run.epochs) >= start
    phases |= {name: run.modes == mode for mode, name in NAMES.items() if (run.modes == mode).any()}
    result = []
    for name, chosen in phases.items():
        cost = run.episodes["cost"][chosen[epoch]]
        heights = bars(cost, np.zeros(len(cost), np.int64), 1, reference)[0]
        result.append([name, int(chosen.sum()), _packed(heights)])
    return result


def _tail(run: Run) -> list[float | None]:
    """Return what the episodes of the last fifth did: how many, how many over the limit, return, cost."""
    ret, cost = tail_episodes(run)
    means = [float(values.mean()) if len(values) else np.nan for values in (ret, cost)]
    return [len(cost), int(np.count_nonzero(cost > run.limit)), *(short(value) for value in means)]


def _worst(run: Run) -> list[list[Any]]:
    """Return the costliest episodes: cost, return, length, epoch, steps, mode of the epoch."""
    order = np.argsort(-run.episodes["cost"], kind="stable")[:WORST]
    return [
        [
            *(short(run.episodes[name][index]) for name in ("cost", "return", "length")),
            int(run.episodes["epoch"][index]),
            int(run.episodes["step"][index]),
            int(run.modes[int(run.episodes["epoch"][index])]),
        ]
        for index in order
    ]


def _made(run: Run) -> list[list[str]]:
    """Return what the run was made with, as pairs of words."""
    pairs = [["started", str(run.record.get("started", "unknown"))]]
    for part, prefix in (("versions", ""), ("machine", ""), ("learner", "learner ")):
        values = run.record.get(part)
        if isinstance(values, dict):
            pairs += [[f"{prefix}{name}", str(value)] for name, value in values.items()]
    return pairs


class _References:
    """The references of the runs, each listed once."""

    def __init__(self) -> None:
        self.known: list[Reference] = []
        self.listed: list[dict[str, Any]] = []
        self._index: dict[str, int] = {}

    def index(self, run: Run) -> int:
        key = repr((setting(run, "preset"), setting(run, "certificate"), run.limit))
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
                    "density": [short(value) for value in reference.density],
                }
            )
        return self._index[key]


def _buckets(count: int, most: int) -> list[npt.NDArray[np.int64]]:
    """Return the numbers below ``count`` as at most ``most`` stretches of nearly equal length."""
    return np.array_split(np.arange(count), min(count, most)) if count else []


def _thin(values: Array, points: int, largest: bool = False) -> list[float | None]:
    """Return at most ``points`` values, each the mean or the largest of what a stretch of epochs knows."""
    starts = [bucket[0] for bucket in _buckets(len(values), points)]
    if len(starts) in (0, len(values)):
        return [short(value) for value in values]
    if largest:
        return [short(value) for value in np.fmax.reduceat(values, starts)]
    known = np.isfinite(values)
    total, count = (
        np.add.reduceat(np.where(known, values, 0.0), starts),
        np.add.reduceat(known, starts, dtype=int),
    )
    return [short(value) for value in np.where(count > 0, total / np.maximum(count, 1), np.nan)]


def _ends(steps: Array, points: int) -> list[int]:
    return [int(steps[bucket[-1]]) for bucket in _buckets(len(steps), points)]


def _packed(heights: Counts) -> str:
    """Return counts as text: both atoms, then the bins; what is 0 is left empty."""
    return ",".join(str(height) if height else "" for height in heights.tolist()).rstrip(",")
