"""The paper's figures: return and cost, a column per task; mean and one standard deviation over seeds."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steingate.errors import InputError, MissingExtraError
from steingate.report.evidence import Evidence
from steingate.report.groups import Group, mean_and_spread
from steingate.report.report_tables import task
from steingate.report.style import DASHES, FAINT, LIMIT, STYLE, cost_scale, save_figure, task_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def save_curves_figure(evidence: Evidence, path: str | Path) -> None:
    """Write the figure of some runs; the format follows from the suffix (PNG, SVG or PDF)."""
    save_figure(lambda: curves_figure(evidence), path)


def curves_figure(evidence: Evidence) -> "Figure":
    """Return a Matplotlib figure: recent return and cost over steps, one color per method."""
    try:
        from matplotlib import rc_context
    except ImportError:
        raise MissingExtraError("Plotting", "plot") from None
    if not evidence.groups:
        raise InputError("There is no run to draw; name folders that hold some.")
    tasks = evidence.by_task()
    with rc_context(STYLE):
        labels = {group.label: evidence.color(group) for group in evidence.groups}
        keys = [*((label, color, "-") for label, color in labels.items()), ("limit", LIMIT, DASHES)]
        beside = len(tasks) == 1  # one task alone: return on the left, cost on the right
        figure, panels = task_panels(1, 2, 2.6, keys) if beside else task_panels(2, len(tasks), 2.0, keys)
        panels = panels.reshape(2, len(tasks))
        for (top, bottom), (env, members) in zip(panels.T, tasks.items(), strict=True):
            groups = [group for group, _ in members]
            top.set_title(task(env), fontsize=11.5, fontweight="bold")
            for group in groups:
                _curve(top, group, "return", evidence.color(group))
                _curve(bottom, group, "cost", evidence.color(group))
            for limit in sorted({group.limit for group in groups}):
                bottom.axhline(limit, color=LIMIT, linewidth=1.2, linestyle=DASHES)
            _finish(top, bottom, groups)
        if beside:
            panels[0, 0].set_xlabel("environment steps, millions")
        panels[0, 0].set_ylabel("return")
        panels[1, 0].set_ylabel("cost")
    return figure


def _curve(panel: "Axes", group: Group, name: str, color: str) -> None:
    steps, mean, spread = mean_and_spread(group, name)
    panel.plot(steps / 1e6, mean, color=color, linewidth=1.6)
    if np.isfinite(spread).any():
        spread = np.nan_to_num(spread)
        panel.fill_between(steps / 1e6, mean - spread, mean + spread, color=color, alpha=0.17, linewidth=0)


def _finish(top: "Axes", bottom: "Axes", members: Sequence[Group]) -> None:
    for panel in (top, bottom):
        panel.grid(axis="y", color=FAINT, linewidth=0.6)
        panel.set_axisbelow(True)
        panel.set_xlim(0.0, max(run.steps for group in members for run in group.runs) / 1e6)
    costs = [mean_and_spread(group, "cost")[1:] for group in members]
    top = max(float(np.nanmax(mean + np.nan_to_num(spread), initial=0.0)) for mean, spread in costs)
    cost_scale(bottom, max(group.limit for group in members), top)
    bottom.set_xlabel("environment steps, millions")
