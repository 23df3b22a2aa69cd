"""One picture of a run: return, cost, bound and mode over environment steps."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from steingate.errors import MissingExtraError
from steingate.report.look import FAINT, INK, LIMIT, SOFT, STYLE, save_figure
from steingate.runs import read_config, read_episodes, read_progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_RETURN, _COST = "#2f6f9f", "#c7683c"
_MODES = {0: ("improve", "#2a9d8f"), 1: ("balance", "#edae49"), 2: ("recover", "#d1495b")}
_TERMS = {
    "ReferenceRisk": ("reference", "#5b7f9c"),
    "DiscreteTerm": ("atoms", "#d1495b"),
    "InteriorTerm": ("interior", "#edae49"),
}

Array = npt.NDArray[np.float64]


def save_run_figure(run: str | Path, path: str | Path) -> None:
    """Write the figure of a run; the format follows from the suffix (PNG, SVG or PDF)."""
    save_figure(lambda: run_figure(run), path)


def run_figure(run: str | Path) -> "Figure":
    """Return a Matplotlib figure of a run folder: panels that share their steps."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("Plotting", "plot") from None
    folder = Path(run)
    config = read_config(folder).get("config", {})
    progress = {name: _numbers(values) for name, values in read_progress(folder).items()}
    episodes = read_episodes(folder)
    steps = progress["TotalEnvSteps"] / 1e6
    heights = [3.0, 3.0, 0.55]
    certified = "Gate/Bound" in progress and bool(np.isfinite(progress["Gate/Bound"]).any())
    if certified:
        heights.insert(2, 2.2)
    with rc_context(STYLE):
        tall = 0.92 * sum(heights) + 0.14
        figure = Figure(figsize=(9.5, tall))
        grid = figure.add_gridspec(
            len(heights),
            1,
            height_ratios=heights,
            left=0.085,
            right=0.975,
            top=1.0 - 0.78 / tall,
            bottom=0.57 / tall,
            hspace=0.16,
        )
        panels = [figure.add_subplot(grid[i]) for i in range(len(heights))]
        for panel in panels[1:]:
            panel.sharex(panels[0])
        for panel in panels[:-1]:
            panel.tick_params(labelbottom=False)
            panel.grid(axis="y", color=FAINT, linewidth=0.6)
            panel.set_axisbelow(True)
        limit = float(config.get("cost_limit", np.nan))
        _stream(panels[0], steps, progress, episodes, "EpRet", "return", _RETURN, config)
        _stream(panels[1], steps, progress, episodes, "EpCost", "cost", _COST, config)
        _limit(panels[1], limit, episodes["cost"])
        if certified:
            _bound(panels[2], steps, progress)
        _modes(panels[-1], steps, progress)
        panels[0].set_xlim(0.0, float(steps[-1]))
        _headline(figure, config, progress, limit)
    return figure


def _numbers(values: list[Any]) -> Array:
    return np.array([value if isinstance(value, int | float) else np.nan for value in values], np.float64)


def _stream(
    panel: "Axes",
    steps: Array,
    progress: dict[str, Array],
    episodes: dict[str, Array],
    name: str,
    column: str,
    colour: str,
    config: dict[str, Any],
) -> None:
    """Draw single episodes as dots, this epoch's mean, and the mean of the last episodes."""
    size = float(np.clip(40_000 / max(len(episodes["step"]), 1), 1.5, 14.0))
    panel.scatter(
        episodes["step"] / 1e6,
        episodes[column],
        s=size,
        color=colour,
        alpha=0.22,
        linewidths=0,
        rasterized=True,
    )
    panel.plot(steps, progress[f"Epoch/{name}"], color=colour, linewidth=0.9, alpha=0.9, label="epoch")
    window = config.get("window", 100)
    panel.plot(steps, progress[f"Metrics/{name}"], color=INK, linewidth=1.8, label=f"last {window} episodes")
    panel.set_ylabel(column)
    panel.legend(loc="upper left", frameon=False, ncols=2, fontsize=8.5, handlelength=1.4)
    seen = episodes[column][np.isfinite(episodes[column])]
    if len(seen):
        low, high = np.quantile(seen, [0.005, 0.995])
        room = 0.08 * (high - low) or 1.0
        panel.set_ylim(min(low - room, 0.0 if column == "cost" else low - room), high + 3.0 * room)


def _limit(panel: "Axes", limit: float, costs: Array) -> None:
    if not np.isfinite(limit):
        return
    panel.axhline(limit, color=LIMIT, linewidth=1.2, linestyle=(0, (5, 3)))
    # Linear where it matters, logarithmic where single episodes run far away.
    panel.set_yscale("symlog", linthresh=2.0 * limit, linscale=1.6)
    top = max(float(costs.max(initial=0.0)), 2.0 * limit)
    panel.set_ylim(-0.06 * limit, 2.2 * top)
    ticks = [
        0.0,
        limit,
        2.0 * limit,
        *(2.0 * limit * 2.0**k for k in range(1, 12) if 2.0 * limit * 2.0**k <= top),
    ]
    panel.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    panel.minorticks_off()
    panel.annotate(
        f"limit {limit:g}", (0.995, limit), xycoords=("axes fraction", "data"), xytext=(0, 3),
        textcoords="offset points", ha="right", color=LIMIT, fontsize=8.5,
    )  # fmt: skip


def _bound(panel: "Axes", steps: Array, progress: dict[str, Array]) -> None:
    """Draw the Stein bound as a stack of its terms, the number that decided, and the budget."""
    panel.set_ylabel("bound")
    edges = np.concatenate([[0.0], steps])
    base = np.zeros(len(steps))
    for column, (label, colour) in _TERMS.items():
        term = np.nan_to_num(progress.get(f"Gate/{column}", np.zeros(len(steps))))
        panel.stairs(
            base + term, edges, baseline=base, fill=True, color=colour, alpha=0.35, label=label, linewidth=0
        )
        base = base + term
    budget = progress["Gate/Budget"]
    value = progress.get("Gate/DecisionValue", progress["Gate/Bound"])
    panel.stairs(value, edges, baseline=None, color=INK, linewidth=1.1, label="decides")
    panel.stairs(budget, edges, baseline=None, color=LIMIT, linewidth=1.2, linestyle=(0, (5, 3)))
    top = float(np.nanquantile(np.maximum(base, np.nan_to_num(value)), 0.97))
    panel.set_ylim(0.0, 1.35 * max(top, 2.0 * float(np.nanmax(budget))))
    panel.annotate(
        f"budget {budget[-1]:g}", (0.995, budget[-1]), xycoords=("axes fraction", "data"), xytext=(0, 3),
        textcoords="offset points", ha="right", color=LIMIT, fontsize=8.5,
    )  # fmt: skip
    panel.legend(loc="upper left", frameon=False, ncols=4, fontsize=8.5, handlelength=1.2, columnspacing=1.2)


def _modes(panel: "Axes", steps: Array, progress: dict[str, Array]) -> None:
    """Draw what each epoch's step was for as one coloured strip."""
    from matplotlib.patches import Patch

    starts = np.concatenate([[0.0], steps[:-1]])
    modes = effective_modes(progress)
    colours = [_MODES[int(mode)][1] for mode in modes]
    panel.bar(starts, 1.0, width=steps - starts, align="edge", color=colours, linewidth=0)
    panel.set_ylim(0.0, 1.0)
    panel.set_yticks([])
    panel.set_ylabel("mode", rotation=0, ha="right", va="center")
    panel.set_xlabel("environment steps, millions", loc="left")
    panel.spines["left"].set_visible(False)
    keys = [
        Patch(color=colour, label=f"{name} {np.mean(modes == mode):.0%}")
        for mode, (name, colour) in _MODES.items()
        if (modes == mode).any()
    ]
    panel.legend(
        handles=keys, loc="upper right", bbox_to_anchor=(1.0, -0.35), ncols=3, frameon=False, fontsize=8.5
    )


def effective_modes(progress: dict[str, Array]) -> npt.NDArray[np.int64]:
    """Return what each step did: a balanced one far from the limit improves, or recovers."""
    modes = progress["Gate/Mode"].astype(np.int64)
    case = progress.get("Step/Case")
    if case is None:
        return modes
    free, lost = (modes == 1) & (case >= 3), (modes == 1) & (case == 0)
    return np.where(free, 0, np.where(lost, 2, modes))


def _headline(figure: "Figure", config: dict[str, Any], progress: dict[str, Array], limit: float) -> None:
    tail = max(len(progress["TotalEnvSteps"]) // 5, 1)
    cost = progress["Metrics/EpCost"][-tail:]
    known = cost[np.isfinite(cost)]
    title = f"{config.get('algo', 'run')} on {config.get('env', '?')}, seed {config.get('seed', '?')}"
    figure.text(0.085, 1.0 - 0.29 / figure.get_figheight(), title, fontsize=14, fontweight="bold")
    if len(known):
        text = (
            f"last fifth: return {np.nanmean(progress['Metrics/EpRet'][-tail:]):.2f}, "
            f"cost {known.mean():.2f}; within the limit in {np.mean(known <= limit):.0%} of its epochs"
        )
        figure.text(0.085, 1.0 - 0.56 / figure.get_figheight(), text, color=SOFT)
