"""Figures: training curves and return against violation rate of a report, and the figure of one run."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from steingate.algorithms.modes import MODE_NAMES, Mode
from steingate.errors import InputError
from steingate.report.groups import Group
from steingate.report.load import Run, load_run
from steingate.report.plot_style import (
    CAUTION,
    DASHES,
    FAINT,
    INK,
    LIMIT,
    SAFE,
    SOFT,
    TERM_COLORS,
    UNSAFE,
    cost_scale,
    free_colors,
    save_figure,
    styled,
    task_panels,
)
from steingate.report.run_settings import plot_style
from steingate.report.statistics import Estimate
from steingate.report.summary import Report, Summary, seed_scores, tail_episodes
from steingate.report.tables import task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = npt.NDArray[np.float64]

_STEPS = "environment steps, millions"
_MODES = {Mode.IMPROVE: SAFE, Mode.BALANCE: CAUTION, Mode.RECOVER: UNSAFE}
_TERMS = {"ReferenceRisk": "reference", "DiscreteTerm": "atoms", "InteriorTerm": "interior"}
_UNITS = {1e6: ", millions", 1e3: ", thousands", 1.0: ""}


def save_curves_figure(report: Report, path: str | Path) -> None:
    """Write the training curves as PNG, SVG or PDF."""
    save_figure(lambda: curves_figure(report), path)


def save_frontier_figure(report: Report, path: str | Path) -> None:
    """Write the figure of return against violation rate as PNG, SVG or PDF."""
    save_figure(lambda: frontier_figure(report), path)


def save_run_figure(run: str | Path, path: str | Path) -> None:
    """Write the figure of a run folder as PNG, SVG or PDF."""
    save_figure(lambda: run_figure(run), path)


# Figures of a report


@styled
def curves_figure(report: Report) -> "Figure":
    """Return a figure of recent return and cost over steps, with mean and standard deviation of seeds."""
    tasks = report.by_task()
    keys = [*_methods(report), ("limit", LIMIT, DASHES)]
    single = len(tasks) == 1  # one task: return on the left, cost on the right
    figure, panels = task_panels(1, 2, 2.6, keys) if single else task_panels(2, len(tasks), 2.0, keys)
    panels = panels.reshape(2, len(tasks))
    for (top, bottom), (env, members) in zip(panels.T, tasks.items(), strict=True):
        groups = [item.group for item in members]
        top.set_title(task(env), fontsize=11.5, fontweight="bold")
        _plot_curves(top, groups, "return", report)
        highest = _plot_curves(bottom, groups, "cost", report)
        limits = sorted({group.limit for group in groups})
        for limit in limits:
            bottom.axhline(limit, color=LIMIT, linewidth=1.2, linestyle=DASHES)
        cost_scale(bottom, limits[-1], highest)
        bottom.set_xlabel(_STEPS)
    if single:
        panels[0, 0].set_xlabel(_STEPS)
    panels[0, 0].set_ylabel("return")
    panels[1, 0].set_ylabel("cost")
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
    panel.set_axisbelow(True)
    panel.set_xlim(0.0, max(run.steps for group in groups for run in group.runs) / 1e6)
    return highest


@styled
def frontier_figure(report: Report) -> "Figure":
    """Return a Matplotlib figure of return against violation rate in the last fifth of training.

    Small points are seeds, large points medians of methods with 95 % bootstrap intervals. The dotted line
    joins the methods that no other method dominates in both.
    """
    tasks = report.by_task()
    keys = [*_methods(report), ("not dominated", SOFT, ":")]
    figure, panels = task_panels(1, len(tasks), 3.1, keys)
    for panel, (env, members) in zip(panels[0], tasks.items(), strict=True):
        panel.set_title(task(env), fontsize=11.5, fontweight="bold")
        for item in members:
            _plot_method(panel, item, report.colors[item.group.label])
        medians = [(item.seed_return.value, 100.0 * item.seed_violation_rate.value) for item in members]
        front = [medians[index] for index in not_dominated(medians)]
        returns, rates = [ret for ret, _ in front], [rate for _, rate in front]
        panel.plot(rates, returns, color=SOFT, linewidth=1.2, linestyle=":", zorder=2)
        panel.grid(color=FAINT, linewidth=0.6)
        panel.set_axisbelow(True)
        high = max(panel.get_xlim()[1], 5.0)
        panel.set_xlim(-0.02 * high, min(high, 102.0))
        limits = ", ".join(f"{limit:g}" for limit in sorted({item.group.limit for item in members}))
        panel.set_xlabel(f"violation rate (cost > {limits}), %")
    panels[0, 0].set_ylabel("return")
    return figure


def not_dominated(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the indices of points (return, violation rate) that no other point dominates, safest first.

    Examples
    --------
    >>> not_dominated([(10.0, 0.2), (5.0, 0.0), (4.0, 0.1)])
    [1, 0]
    """
    known = [index for index, point in enumerate(points) if np.isfinite(point).all()]
    chosen: list[int] = []
    for index in sorted(known, key=lambda index: (points[index][1], -points[index][0])):
        if not chosen or points[index][0] > points[chosen[-1]][0] or points[index] == points[chosen[-1]]:
            chosen.append(index)
    return chosen


def _methods(report: Report) -> list[tuple[str, str, str]]:
    """Return label, color and line style of each method for the legend."""
    if not report.summaries:
        raise InputError("There is no run to draw; name folders that hold some.")
    return [(label, report.colors[label], "-") for label in {item.group.label: 0 for item in report.summaries}]


def _plot_method(panel: "Axes", item: Summary, color: str) -> None:
    scores = seed_scores(item.group).values()
    if not scores:
        return
    rates, returns = [100.0 * score.violation_rate for score in scores], [score.ret for score in scores]
    panel.scatter(rates, returns, s=16, color=color, alpha=0.45, linewidths=0, zorder=3, clip_on=False)
    x, y = item.seed_violation_rate, item.seed_return
    panel.errorbar(
        100.0 * x.value, y.value, xerr=100.0 * _error_bars(x), yerr=_error_bars(y), color=color,
        linewidth=1.4, marker="o", markersize=7.5, markeredgecolor="white", markeredgewidth=0.9, zorder=4,
        clip_on=False,
    )  # fmt: skip


def _error_bars(estimate: Estimate) -> Array:
    """Return the lengths of the error bars below and above, 0 for a single seed."""
    lengths = [[estimate.value - estimate.low], [estimate.high - estimate.value]]
    return np.maximum(np.nan_to_num(np.array(lengths)), 0.0)


# Figure of one run


@styled
def run_figure(run: str | Path) -> "Figure":
    """Return a figure of a run folder: return, cost, bound and gate mode over environment steps."""
    from matplotlib.figure import Figure

    found = load_run(run)
    steps = found.progress["TotalEnvSteps"]
    unit = next((unit for unit in _UNITS if steps[-1] >= unit), 1.0)
    has_bound = bool(np.isfinite(found.progress.get("Gate/Bound", np.nan)).any())
    heights = [3.0, 3.0, 2.2, 0.55] if has_bound else [3.0, 3.0, 0.55]
    figure_height = 0.92 * sum(heights) + 0.14
    figure = Figure(figsize=(9.5, figure_height))
    grid = figure.add_gridspec(
        len(heights), 1, height_ratios=heights, left=0.085, right=0.975,
        top=1.0 - 0.78 / figure_height, bottom=0.57 / figure_height, hspace=0.16,
    )  # fmt: skip
    panels = [figure.add_subplot(grid[i]) for i in range(len(heights))]
    for panel in panels[1:]:
        panel.sharex(panels[0])
    for panel in panels[:-1]:
        panel.tick_params(labelbottom=False)
        panel.grid(axis="y", color=FAINT, linewidth=0.6)
        panel.set_axisbelow(True)
    _plot_episodes(panels[0], found, "EpRet", "return", unit)
    _plot_episodes(panels[1], found, "EpCost", "cost", unit)
    _plot_limit(panels[1], found.limit, found.episodes["cost"])
    if has_bound:
        _plot_bound(panels[2], steps / unit, found.progress)
    _plot_modes(panels[-1], steps / unit, found.modes)
    panels[-1].set_xlabel(f"environment steps{_UNITS[unit]}", loc="left")
    panels[0].set_xlim(0.0, float(steps[-1] / unit))
    title = f"{found.algo} on {found.env}, seed {found.seed}"
    figure.text(0.085, 1.0 - 0.29 / figure_height, title, fontsize=14, fontweight="bold")
    ret, cost = tail_episodes(found)
    if len(cost):
        violations = np.count_nonzero(cost > found.limit)
        text = (
            f"last fifth: return {ret.mean():.2f}, cost {cost.mean():.2f}, {violations} violations in "
            f"{len(cost)} episodes ({violations / len(cost):.1%})"
        )
        figure.text(0.085, 1.0 - 0.56 / figure_height, text, color=SOFT)
    return figure


def _plot_episodes(panel: "Axes", run: Run, name: str, column: str, unit: float) -> None:
    """Draw single episodes as dots, the mean of each epoch, and the mean of the last episodes."""
    progress, values = run.progress, run.episodes[column]
    color = plot_style(run.record)[1] or free_colors(1)[0]
    steps, size = progress["TotalEnvSteps"] / unit, float(np.clip(40_000 / max(len(values), 1), 1.5, 14.0))
    panel.scatter(run.episodes["step"] / unit, values, s=size, color=color, alpha=0.22, linewidths=0, rasterized=True)
    panel.plot(steps, progress[f"Train/{name}"], color=color, linewidth=0.9, alpha=0.9, label="epoch")
    label = f"last {run.setting('window', 100)} episodes"
    panel.plot(steps, progress[f"Metrics/{name}"], color=INK, linewidth=1.8, label=label)
    panel.set_ylabel(column)
    panel.legend(loc="upper left", frameon=False, ncols=2, fontsize=8.5, handlelength=1.4)
    if len(values):
        low, high = np.quantile(values, [0.005, 0.995])
        room = 0.08 * (high - low) or 1.0
        panel.set_ylim(min(low - room, 0.0 if column == "cost" else low - room), high + 3.0 * room)


def _plot_limit(panel: "Axes", limit: float, costs: Array) -> None:
    _plot_line(panel, limit, f"limit {limit:g}")
    highest = float(costs.max(initial=0.0))
    cost_scale(panel, limit, highest)
    panel.set_ylim(top=2.2 * max(highest, 2.0 * limit, 1.0))  # room for the legend


def _plot_line(panel: "Axes", value: float, text: str) -> None:
    panel.axhline(value, color=LIMIT, linewidth=1.2, linestyle=DASHES)
    panel.annotate(
        text, (0.995, value), xycoords=("axes fraction", "data"), xytext=(0, 3),
        textcoords="offset points", ha="right", color=LIMIT, fontsize=8.5,
    )  # fmt: skip


def _plot_bound(panel: "Axes", steps: Array, progress: dict[str, Array]) -> None:
    """Draw the terms of the Stein bound as a stack, the value that the gate used, and the budget."""
    panel.set_ylabel("bound")
    edges = np.concatenate([[0.0], steps])
    base = np.zeros(len(steps))
    for column, label in _TERMS.items():
        term = np.nan_to_num(progress.get(f"Gate/{column}", np.zeros(len(steps))))
        panel.stairs(
            base + term, edges, baseline=base, fill=True, color=TERM_COLORS[label], alpha=0.35, label=label,
            linewidth=0,
        )  # fmt: skip
        base = base + term
    budget = float(np.nan_to_num(progress.get("Gate/Budget", np.zeros(1)))[-1])
    value = progress.get("Gate/DecisionValue", progress["Gate/Bound"])
    panel.stairs(value, edges, baseline=None, color=INK, linewidth=1.1, label="used")
    _plot_line(panel, budget, f"budget {budget:g}")
    shown = np.maximum(base, np.nan_to_num(value))
    top = 1.35 * max(float(np.nanquantile(shown, 0.97)), 2.0 * budget, 1e-9)
    panel.set_ylim(0.0, top)
    cut = shown > top
    if cut.any():
        middle = (edges[:-1] + edges[1:]) / 2
        height = np.full(cut.sum(), 0.985 * top)
        panel.plot(middle[cut], height, "^", color=INK, markersize=3.5, label="higher")
    panel.legend(loc="upper left", frameon=False, ncols=5, fontsize=8.5, handlelength=1.2, columnspacing=1.2)


def _plot_modes(panel: "Axes", steps: Array, modes: npt.NDArray[np.int64]) -> None:
    """Draw the mode of each epoch as a colored strip."""
    from matplotlib.patches import Patch

    starts = np.concatenate([[0.0], steps[:-1]])
    colors = [_MODES[Mode(mode)] for mode in modes]
    panel.bar(starts, 1.0, width=steps - starts, align="edge", color=colors, linewidth=0)
    panel.set_ylim(0.0, 1.0)
    panel.set_yticks([])
    panel.set_ylabel("mode", rotation=0, ha="right", va="center")
    panel.spines["left"].set_visible(False)
    keys = [
        Patch(color=color, label=f"{MODE_NAMES[mode]} {np.mean(modes == mode):.0%}")
        for mode, color in _MODES.items()
        if (modes == mode).any()
    ]
    place = {"loc": "upper right", "bbox_to_anchor": (1.0, -0.35)}
    panel.legend(handles=keys, ncols=3, frameon=False, fontsize=8.5, **place)
