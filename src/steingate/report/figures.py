"""Figures: training curves and return against violation rate of a report, and the figure of one run."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from steingate.algorithms.modes import Mode
from steingate.errors import InputError
from steingate.report.groups import Group, group_colors, group_runs
from steingate.report.load import Run, load_run
from steingate.report.plot_style import (
    DASHES,
    FAINT,
    INK,
    LIMIT,
    SCHEDULES,
    SOFT,
    UNSAFE,
    cost_scale,
    free_colors,
    save_figure,
    styled,
)
from steingate.report.statistics import Estimate
from steingate.report.summary import Report, seed_medians, seed_scores, tail_episodes
from steingate.report.tables import task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = npt.NDArray[np.float64]

_MARKERS = {"published inputs": "o", "with lidar features": "D"}
_GATE = {"Gate/Bound": "bound", "Gate/DecisionValue": "value used\nby the gate", **SCHEDULES}  # panels of a run

# Figures of a report


@styled
def curves_figure(report: Report) -> "Figure":
    """Return a figure with a row per task: recent return and cost over steps.

    Lines are means over seeds, bands one standard deviation.
    """
    tasks = report.by_task()
    figure, panels = _panels(len(tasks), 2, 2.1)
    for (left, right), (env, members) in zip(panels, tasks.items(), strict=True):
        groups = [item.group for item in members]
        left.set_title(f"{task(env)}: return", loc="left", fontsize=11, fontweight="bold")
        right.set_title(f"{task(env)}: cost", loc="left", fontsize=11, fontweight="bold")
        _plot_curves(left, groups, "return", report)
        highest = _plot_curves(right, groups, "cost", report)
        limits = sorted({group.limit for group in groups})
        for limit in limits:
            right.axhline(limit, color=LIMIT, linewidth=1.2, linestyle=DASHES)
        cost_scale(right, limits[-1], highest)
    for panel in panels[-1]:
        panel.set_xlabel("environment steps, millions")
    keys = [{"color": color, "linewidth": 2.0, "label": label} for label, color in report.colors.items()]
    _legend(figure, [*keys, {"color": LIMIT, "linewidth": 1.2, "linestyle": DASHES, "label": "limit"}])
    return figure


def _plot_curves(panel: "Axes", groups: Sequence[Group], name: str, report: Report) -> float:
    """Draw mean and standard deviation of each group; return the highest value."""
    highest = 0.0
    for group in groups:
        steps, mean, std = group.mean_and_std(name)
        color, spread = report.colors[group.label], np.nan_to_num(std)
        panel.plot(steps / 1e6, mean, color=color, linewidth=1.6)
        if np.isfinite(std).any():
            panel.fill_between(steps / 1e6, mean - spread, mean + spread, color=color, alpha=0.17, linewidth=0)
        highest = max(highest, float(np.nanmax(mean + spread, initial=0.0)))
    panel.grid(axis="y", color=FAINT, linewidth=0.6)
    panel.set_xlim(0.0, max(run.steps for group in groups for run in group.runs) / 1e6)
    return highest


@styled
def frontier_figure(report: Report) -> "Figure":
    """Return a figure of return against violation rate in the last fifth of training, a panel per task.

    Small marks are seeds, large marks medians over seeds with 95 % bootstrap intervals. A method has one color;
    the marker is the kind of inputs: the published ones, or those of the options ``lidar_powers`` and
    ``lidar_positions``. The dotted line joins the methods that no other method dominates in both.
    """
    kinds: dict[str, list[Run]] = {}
    for run in report.runs:
        kinds.setdefault(input_kind(run), []).append(run)
    # Each kind by itself, so that labels name what differs between runs with the same inputs.
    groups = [(kind, group) for kind in _MARKERS if kind in kinds for group in group_runs(kinds[kind])]
    colors = group_colors([group for _, group in groups])
    tasks, has_front = list(report.by_task()), False
    figure, panels = _panels(-(-len(tasks) // 2), min(len(tasks), 2), 3.0)
    for panel in panels.flat[len(tasks) :]:
        panel.remove()
    for panel, env in zip(panels.flat, tasks, strict=False):
        medians = []
        for kind, group in groups:
            if group.env == env and seed_scores(group):
                medians.append(_plot_method(panel, group, colors[group.label], _MARKERS[kind]))
        front = np.array([medians[index] for index in not_dominated(medians)]).reshape(-1, 2)
        has_front |= len(front) > 1
        panel.plot(100.0 * front[:, 1], front[:, 0], color=SOFT, linewidth=1.2, linestyle=":", zorder=2)
        panel.set_title(task(env), loc="left", fontsize=11, fontweight="bold")
        panel.grid(color=FAINT, linewidth=0.6)
        high = max(panel.get_xlim()[1], 5.0)
        panel.set_xlim(-0.02 * high, min(high, 102.0))
        limits = ", ".join(f"{limit:g}" for limit in sorted({group.limit for _, group in groups if group.env == env}))
        panel.set(xlabel=f"violation rate (cost > {limits}), %", ylabel="return")
    dot = {"linestyle": "", "marker": "o", "markersize": 7}
    keys = [dot | {"color": color, "label": label} for label, color in colors.items()]
    if len(kinds) > 1:
        keys += [dot | {"color": SOFT, "marker": _MARKERS[kind], "label": kind} for kind in _MARKERS if kind in kinds]
    keys += [{"color": SOFT, "linewidth": 1.2, "linestyle": ":", "label": "not dominated"}] * has_front
    _legend(figure, keys)
    text = "One seed per method: there are no intervals."
    if any(len(group.runs) > 1 for _, group in groups):
        text = "Large: median over seeds with its 95 % bootstrap interval. Small: one seed."
    caption = f"Last fifth of training; better is up and to the left.\n{text}"
    figure.suptitle(caption, x=0.01, ha="left", fontsize=8.5, color=SOFT)
    return figure


def input_kind(run: Run) -> str:
    """Return whether a run has the published inputs or features computed from the lidar."""
    features = run.setting("lidar_powers") or run.setting("lidar_positions")
    return "with lidar features" if features else "published inputs"


def not_dominated(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the indices of points (return, violation rate) that no other point dominates, safest first.

    >>> not_dominated([(10.0, 0.2), (5.0, 0.0), (4.0, 0.1)])
    [1, 0]
    """
    known = [index for index, point in enumerate(points) if np.isfinite(point).all()]
    chosen: list[int] = []
    for index in sorted(known, key=lambda index: (points[index][1], -points[index][0])):
        if not chosen or points[index][0] > points[chosen[-1]][0] or points[index] == points[chosen[-1]]:
            chosen.append(index)
    return chosen


def _plot_method(panel: "Axes", group: Group, color: str, marker: str) -> tuple[float, float]:
    """Draw the seeds of a group and their medians; return the medians of return and violation rate."""
    scores = seed_scores(group).values()
    rates, returns = [100.0 * score.violation_rate for score in scores], [score.ret for score in scores]
    panel.scatter(rates, returns, s=16, color=color, marker=marker, alpha=0.45, linewidths=0, zorder=3, clip_on=False)
    y, x = seed_medians(group)
    panel.errorbar(
        100.0 * x.value, y.value, xerr=100.0 * _error_bars(x), yerr=_error_bars(y), color=color, linewidth=1.4,
        marker=marker, markersize=7, markeredgecolor="white", markeredgewidth=0.9, zorder=4, clip_on=False,
    )  # fmt: skip
    return y.value, x.value


def _error_bars(estimate: Estimate) -> Array:
    """Return the lengths of the error bars below and above, 0 for a single seed."""
    lengths = [[estimate.value - estimate.low], [estimate.high - estimate.value]]
    return np.maximum(np.nan_to_num(np.array(lengths)), 0.0)


def _panels(rows: int, columns: int, height: float) -> "tuple[Figure, Any]":
    """Return a figure, narrow enough for a phone, and its panels."""
    from matplotlib.figure import Figure

    if rows == 0:
        raise InputError("There is no run to draw; name folders that hold some.")

    figure = Figure(figsize=(0.8 + 3.2 * columns, rows * height + 0.8), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    for panel in panels.flat:
        panel.set_axisbelow(True)
    return figure, panels


def _legend(figure: "Figure", keys: Sequence[dict[str, Any]]) -> None:
    """Add a legend of lines below the panels, with long labels on several lines, and make room for it."""
    from matplotlib.lines import Line2D

    labels = [fill(key["label"], max(int(11 * figure.get_figwidth()) - 8, 40)) for key in keys]
    handles = [Line2D([], [], **key | {"label": label}) for key, label in zip(keys, labels, strict=True)]
    width = 0.65 + 0.085 * max(len(line) for label in labels for line in label.splitlines())  # of a column, in inches
    columns = max(int(figure.get_figwidth() / width), 1)
    rows = -(-len(labels) // columns)
    lines = [max(label.count("\n") + 1 for label in labels[row::rows]) for row in range(rows)]
    figure.set_figheight(figure.get_figheight() + 0.22 * (sum(lines) - 1))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=9.5)


# Figure of one run


def save_run_figure(run: str | Path, path: str | Path) -> None:
    """Write the figure of a run folder as PNG, SVG or PDF."""
    save_figure(run_figure(run), path)


@styled
def run_figure(run: str | Path) -> "Figure":
    """Return a figure of return, cost, and the number that the gate computes or sets, over environment steps.

    Epochs whose update lowers the cost are shaded.
    """
    from matplotlib.figure import Figure

    found = load_run(run)
    progress, steps = found.progress, found.progress["TotalEnvSteps"]
    gate = [column for column in _GATE if np.isfinite(progress.get(column, np.nan)).any()]
    gate = [column for column in gate if column != "Gate/Bound" or "Gate/DecisionValue" not in gate]
    heights = [2.8, 2.8, *(1.6 for _ in gate)]
    figure = Figure(figsize=(9.5, 1.2 + 1.1 * sum(heights)), layout="constrained")
    panels = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights)
    _plot_episodes(panels[0], found, "EpRet", "return")
    _plot_episodes(panels[1], found, "EpCost", "cost")
    for start, end in np.column_stack([np.append(0.0, steps[:-1]), steps])[found.modes == Mode.RECOVER]:
        panels[1].axvspan(start / 1e6, end / 1e6, color=UNSAFE, alpha=0.12, linewidth=0)
    if Mode.RECOVER in found.modes:
        panels[1].set_title("shaded: recovery", loc="left", fontsize=8, color=SOFT)
    _plot_line(panels[1], found.limit, "limit")
    cost_scale(panels[1], found.limit, float(found.episodes["cost"].max(initial=0.0)))
    for panel, column in zip(panels[2:], gate, strict=True):
        known = np.isfinite(progress[column])
        values, budget = progress[column][known], 0.0
        panel.plot(steps[known] / 1e6, values, color=INK, linewidth=1.2, drawstyle="steps-pre")
        panel.set_ylabel(_GATE[column].replace(", ", ",\n"))
        if column not in SCHEDULES:
            budget = float(np.nan_to_num(progress.get("Gate/Budget", np.zeros(1)))[-1])
            _plot_line(panel, budget, "budget")
        panel.set_ylim(0.0, 1.2 * max(float(np.quantile(values, 0.98)), budget) or 1.0)  # without single peaks
    panels[0].legend(frameon=False, ncols=2, fontsize=8.5, loc="lower right", bbox_to_anchor=(1.0, 1.0))
    panels[-1].set(xlabel="environment steps, millions", xlim=(0.0, float(steps[-1]) / 1e6))
    title = f"{found.algo} on {found.env}, seed {found.seed}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=14, fontweight="bold")
    ret, cost = tail_episodes(found)
    if len(cost):
        violations = np.count_nonzero(cost > found.limit)
        text = (
            f"last fifth, with exploration noise: return {ret.mean():.2f}, cost {cost.mean():.2f}, "
            f"{violations} of {len(cost)} episodes over the limit ({violations / len(cost):.1%})"
        )
        panels[0].set_title(text, loc="left", fontsize=10, color=SOFT, pad=24)  # above the legend
    return figure


def _plot_episodes(panel: "Axes", run: Run, name: str, column: str) -> None:
    """Draw single episodes as dots, the mean of each epoch, and the mean of the last episodes."""
    steps, values = run.progress["TotalEnvSteps"] / 1e6, run.episodes[column]
    color, size = run.color or free_colors(1)[0], float(np.clip(40_000 / max(len(values), 1), 1.5, 14.0))
    panel.scatter(run.episodes["step"] / 1e6, values, s=size, color=color, alpha=0.22, linewidths=0, rasterized=True)
    panel.plot(steps, run.progress[f"Train/{name}"], color=color, linewidth=0.9, alpha=0.9, label="epoch")
    label = f"last {run.window} episodes"
    panel.plot(steps, run.progress[f"Metrics/{name}"], color=INK, linewidth=1.8, label=label)
    panel.set_ylabel(column)
    panel.grid(axis="y", color=FAINT, linewidth=0.6)
    panel.set_axisbelow(True)


def _plot_line(panel: "Axes", value: float, name: str) -> None:
    """Draw a dashed line with its name and value beside the panel."""
    panel.axhline(value, color=LIMIT, linewidth=1.2, linestyle=DASHES)
    place = panel.get_yaxis_transform()
    panel.text(1.005, value, f"{name}\n{value:g}", transform=place, va="center", fontsize=8.5, color=LIMIT)
