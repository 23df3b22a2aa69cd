"""Figures of a report: training curves, and return against violation rate, with one panel per task."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from steingate.errors import InputError
from steingate.report.groups import Group, mean_and_std
from steingate.report.plot_style import (
    DASHES,
    FAINT,
    LIMIT,
    SOFT,
    cost_scale,
    save_figure,
    styled,
    task_panels,
)
from steingate.report.statistics import Estimate
from steingate.report.summary import Report, Summary, seed_scores
from steingate.report.tables import task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STEPS = "environment steps, millions"


def save_curves_figure(report: Report, path: str | Path) -> None:
    """Write the training curves as PNG, SVG or PDF."""
    save_figure(lambda: curves_figure(report), path)


def save_frontier_figure(report: Report, path: str | Path) -> None:
    """Write the figure of return against violation rate as PNG, SVG or PDF."""
    save_figure(lambda: frontier_figure(report), path)


@styled
def curves_figure(report: Report) -> "Figure":
    """Return a figure of recent return and cost over steps, with mean and standard deviation of seeds."""
    tasks = report.by_task()
    keys = [*_methods(report), ("limit", LIMIT, DASHES)]
    single = len(tasks) == 1  # one task: return on the left, cost on the right
    figure, panels = task_panels(1, 2, 2.6, keys) if single else task_panels(2, len(tasks), 2.0, keys)
    panels = panels.reshape(2, len(tasks))
    for (top, bottom), (env, members) in zip(panels.T, tasks.items(), strict=True):
        groups = [group for group, _ in members]
        top.set_title(task(env), fontsize=11.5, fontweight="bold")
        for group in groups:
            _plot_curve(top, group, "return", report.color(group))
            _plot_curve(bottom, group, "cost", report.color(group))
        for limit in sorted({group.limit for group in groups}):
            bottom.axhline(limit, color=LIMIT, linewidth=1.2, linestyle=DASHES)
        _format_curves(top, bottom, groups)
    if single:
        panels[0, 0].set_xlabel(_STEPS)
    panels[0, 0].set_ylabel("return")
    panels[1, 0].set_ylabel("cost")
    return figure


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
        for group, summary in members:
            _plot_method(panel, group, summary, report.color(group))
        medians = [
            (summary.seed_return.value, 100.0 * summary.seed_violation_rate.value) for _, summary in members
        ]
        front = [medians[index] for index in not_dominated(medians)]
        panel.plot(
            [rate for _, rate in front], [ret for ret, _ in front],
            color=SOFT, linewidth=1.2, linestyle=":", zorder=2,
        )  # fmt: skip
        panel.grid(color=FAINT, linewidth=0.6)
        panel.set_axisbelow(True)
        high = max(panel.get_xlim()[1], 5.0)
        panel.set_xlim(-0.02 * high, min(high, 102.0))
        limits = ", ".join(f"{limit:g}" for limit in sorted({group.limit for group, _ in members}))
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
    if not report.groups:
        raise InputError("There is no run to draw; name folders that hold some.")
    colors = {group.label: report.color(group) for group in report.groups}
    return [(label, color, "-") for label, color in colors.items()]


def _plot_curve(panel: "Axes", group: Group, name: str, color: str) -> None:
    steps, mean, std = mean_and_std(group, name)
    panel.plot(steps / 1e6, mean, color=color, linewidth=1.6)
    if np.isfinite(std).any():
        std = np.nan_to_num(std)
        panel.fill_between(steps / 1e6, mean - std, mean + std, color=color, alpha=0.17, linewidth=0)


def _format_curves(top: "Axes", bottom: "Axes", groups: Sequence[Group]) -> None:
    for panel in (top, bottom):
        panel.grid(axis="y", color=FAINT, linewidth=0.6)
        panel.set_axisbelow(True)
        panel.set_xlim(0.0, max(run.steps for group in groups for run in group.runs) / 1e6)
    costs = [mean_and_std(group, "cost")[1:] for group in groups]
    highest = max(float(np.nanmax(mean + np.nan_to_num(std), initial=0.0)) for mean, std in costs)
    cost_scale(bottom, max(group.limit for group in groups), highest)
    bottom.set_xlabel(_STEPS)


def _plot_method(panel: "Axes", group: Group, summary: Summary, color: str) -> None:
    scores = seed_scores(group).values()
    if not scores:
        return
    rates, returns = [100.0 * score.violation_rate for score in scores], [score.ret for score in scores]
    panel.scatter(rates, returns, s=16, color=color, alpha=0.45, linewidths=0, zorder=3, clip_on=False)
    x, y = summary.seed_violation_rate, summary.seed_return
    panel.errorbar(
        100.0 * x.value, y.value, xerr=100.0 * _error_bars(x), yerr=_error_bars(y), color=color,
        linewidth=1.4, marker="o", markersize=7.5, markeredgecolor="white", markeredgewidth=0.9, zorder=4,
        clip_on=False,
    )  # fmt: skip


def _error_bars(estimate: Estimate) -> npt.NDArray[np.float64]:
    """Return the lengths of the error bars below and above, 0 for a single seed."""
    lengths = [[estimate.value - estimate.low], [estimate.high - estimate.value]]
    return np.maximum(np.nan_to_num(np.array(lengths)), 0.0)
