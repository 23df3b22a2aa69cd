"""The paper's figure: a column per task, returns above costs, mean and one standard deviation over seeds."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from steingate.errors import InputError, MissingExtraError
from steingate.report.groups import Group, mean_and_spread
from steingate.report.look import FAINT, LIMIT, STYLE, label_colours, save_figure
from steingate.report.summary_table import task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def save_curves_figure(groups: Sequence[Group], path: str | Path) -> None:
    """Write the figure of some groups; the format follows from the suffix (PNG, SVG or PDF)."""
    save_figure(lambda: curves_figure(groups), path)


def curves_figure(groups: Sequence[Group]) -> "Figure":
    """Return a Matplotlib figure: the logged return and cost over steps, one colour per label."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("Plotting", "plot") from None
    if not groups:
        raise InputError("There is no run to draw; name folders that hold some.")
    envs = list(dict.fromkeys(group.env for group in groups))
    colours = label_colours([group.label for group in groups])
    with rc_context(STYLE):
        wide = 0.7 + 3.3 * len(envs)
        columns = min(len(colours) + 1, max(int(wide / 1.6), 2))
        legend = 0.25 * -(-(len(colours) + 1) // columns)
        tall = 5.1 + legend
        figure = Figure(figsize=(wide, tall))
        figure.subplots_adjust(
            left=0.75 / wide, right=1 - 0.28 / wide, top=1 - 0.38 / tall, bottom=(0.72 + legend) / tall,
            hspace=0.13, wspace=0.24,
        )  # fmt: skip
        panels = figure.subplots(2, len(envs), sharex="col", squeeze=False)
        for column, env in enumerate(envs):
            members = [group for group in groups if group.env == env]
            top, bottom = panels[:, column]
            top.set_title(task(env), fontsize=11.5, fontweight="bold")
            for group in members:
                _curve(top, group, "Metrics/EpRet", colours[group.label])
                _curve(bottom, group, "Metrics/EpCost", colours[group.label])
            for limit in sorted({group.limit for group in members}):
                bottom.axhline(limit, color=LIMIT, linewidth=1.2, linestyle=(0, (5, 3)))
            _finish(top, bottom, members)
        panels[0, 0].set_ylabel("return")
        panels[1, 0].set_ylabel("cost")
        _legend(figure, colours, columns)
    return figure


def _curve(panel: "Axes", group: Group, column: str, colour: str) -> None:
    steps, mean, spread = mean_and_spread(group, column)
    panel.plot(steps / 1e6, mean, color=colour, linewidth=1.6)
    if np.isfinite(spread).any():
        spread = np.nan_to_num(spread)
        panel.fill_between(steps / 1e6, mean - spread, mean + spread, color=colour, alpha=0.17, linewidth=0)


def _finish(top: "Axes", bottom: "Axes", members: Sequence[Group]) -> None:
    for panel in (top, bottom):
        panel.grid(axis="y", color=FAINT, linewidth=0.6)
        panel.set_axisbelow(True)
        panel.set_xlim(0.0, max(run.steps for group in members for run in group.runs) / 1e6)
    high = max(bottom.get_ylim()[1], 1.15 * max(group.limit for group in members))
    bottom.set_ylim(-0.03 * high, high)
    bottom.set_xlabel("environment steps, millions")


def _legend(figure: "Figure", colours: dict[str, str], columns: int) -> None:
    from matplotlib.lines import Line2D

    keys = [Line2D([], [], color=colour, linewidth=2.0, label=label) for label, colour in colours.items()]
    keys.append(Line2D([], [], color=LIMIT, linewidth=1.2, linestyle=(0, (5, 3)), label="limit"))
    figure.legend(handles=keys, loc="lower center", ncols=columns, frameon=False, fontsize=9.5)
