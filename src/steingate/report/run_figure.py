"""Figure of one run: return, cost, bound and gate mode over environment steps."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from steingate.gates.base import Mode
from steingate.gates.modes import NAMES
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
)
from steingate.report.run_settings import plot_style
from steingate.report.summary import tail_episodes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MODES = {Mode.IMPROVE: SAFE, Mode.BALANCE: CAUTION, Mode.RECOVER: UNSAFE}
_TERMS = {"ReferenceRisk": "reference", "DiscreteTerm": "atoms", "InteriorTerm": "interior"}
_UNITS = {1e6: ", millions", 1e3: ", thousands", 1.0: ""}

Array = npt.NDArray[np.float64]


def save_run_figure(run: str | Path, path: str | Path) -> None:
    """Write the figure of a run folder as PNG, SVG or PDF."""
    save_figure(lambda: run_figure(run), path)


@styled
def run_figure(run: str | Path) -> "Figure":
    """Return a Matplotlib figure of a run folder."""
    from matplotlib.figure import Figure

    found = load_run(run)
    unit = _unit(found.progress["TotalEnvSteps"])
    steps = found.progress["TotalEnvSteps"] / unit
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
    color = plot_style(found.record).color or free_colors(1)[0]
    _plot_episodes(panels[0], steps, found, "EpRet", "return", color, unit)
    _plot_episodes(panels[1], steps, found, "EpCost", "cost", color, unit)
    _plot_limit(panels[1], found.limit, found.episodes["cost"])
    if has_bound:
        _plot_bound(panels[2], steps, found.progress)
    _plot_modes(panels[-1], steps, found.modes)
    panels[-1].set_xlabel(f"environment steps{_UNITS[unit]}", loc="left")
    panels[0].set_xlim(0.0, float(steps[-1]))
    _headline(figure, found)
    return figure


def _unit(steps: Array) -> float:
    """Return the unit of the axis of steps."""
    return next((unit for unit in _UNITS if steps[-1] >= unit), 1.0)


def _plot_episodes(
    panel: "Axes", steps: Array, run: Run, name: str, column: str, color: str, unit: float
) -> None:
    """Draw single episodes as dots, the mean of each epoch, and the mean of the last episodes."""
    progress, episodes = run.progress, run.episodes
    size = float(np.clip(40_000 / max(len(episodes["step"]), 1), 1.5, 14.0))
    panel.scatter(
        episodes["step"] / unit,
        episodes[column],
        s=size,
        color=color,
        alpha=0.22,
        linewidths=0,
        rasterized=True,
    )
    panel.plot(steps, progress[f"Train/{name}"], color=color, linewidth=0.9, alpha=0.9, label="epoch")
    label = f"last {run.setting('window', 100)} episodes"
    panel.plot(steps, progress[f"Metrics/{name}"], color=INK, linewidth=1.8, label=label)
    panel.set_ylabel(column)
    panel.legend(loc="upper left", frameon=False, ncols=2, fontsize=8.5, handlelength=1.4)
    values = episodes[column]
    if len(values):
        low, high = np.quantile(values, [0.005, 0.995])
        room = 0.08 * (high - low) or 1.0
        panel.set_ylim(min(low - room, 0.0 if column == "cost" else low - room), high + 3.0 * room)


def _plot_limit(panel: "Axes", limit: float, costs: Array) -> None:
    panel.axhline(limit, color=LIMIT, linewidth=1.2, linestyle=DASHES)
    cost_scale(panel, limit, float(costs.max(initial=0.0)))
    panel.set_ylim(top=2.2 * max(float(costs.max(initial=0.0)), 2.0 * limit))  # room for the legend
    panel.annotate(
        f"limit {limit:g}", (0.995, limit), xycoords=("axes fraction", "data"), xytext=(0, 3),
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
    budget = progress["Gate/Budget"]
    value = progress.get("Gate/DecisionValue", progress["Gate/Bound"])
    panel.stairs(value, edges, baseline=None, color=INK, linewidth=1.1, label="used")
    panel.stairs(budget, edges, baseline=None, color=LIMIT, linewidth=1.2, linestyle=DASHES)
    shown = np.maximum(base, np.nan_to_num(value))
    top = 1.35 * max(float(np.nanquantile(shown, 0.97)), 2.0 * float(np.nanmax(budget)))
    panel.set_ylim(0.0, top)
    cut = shown > top
    if cut.any():
        middle = (edges[:-1] + edges[1:]) / 2
        panel.plot(
            middle[cut], np.full(cut.sum(), 0.985 * top), "^", color=INK, markersize=3.5, label="higher"
        )
    panel.annotate(
        f"budget {budget[-1]:g}", (0.995, budget[-1]), xycoords=("axes fraction", "data"), xytext=(0, 3),
        textcoords="offset points", ha="right", color=LIMIT, fontsize=8.5,
    )  # fmt: skip
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
        Patch(color=color, label=f"{NAMES[mode]} {np.mean(modes == mode):.0%}")
        for mode, color in _MODES.items()
        if (modes == mode).any()
    ]
    panel.legend(
        handles=keys, loc="upper right", bbox_to_anchor=(1.0, -0.35), ncols=3, frameon=False, fontsize=8.5
    )


def _headline(figure: "Figure", run: Run) -> None:
    ret, cost = tail_episodes(run)
    title = f"{run.algo} on {run.env}, seed {run.seed}"
    figure.text(0.085, 1.0 - 0.29 / figure.get_figheight(), title, fontsize=14, fontweight="bold")
    if len(cost):
        violations = np.count_nonzero(cost > run.limit)
        text = (
            f"last fifth: return {ret.mean():.2f}, cost {cost.mean():.2f}, {violations} violations in "
            f"{len(cost)} episodes ({violations / len(cost):.1%})"
        )
        figure.text(0.085, 1.0 - 0.56 / figure.get_figheight(), text, color=SOFT)
