"""One picture of a monitor: the bound over time against the budget, the tail, and what was found when."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steingate.errors import MissingExtraError
from steingate.monitoring.monitor import Monitor
from steingate.monitoring.several import Monitors
from steingate.monitoring.upper import count_upper
from steingate.report.style import ALARM, FAINT, INK, LIMIT, SOFT, STYLE, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BOUND, _SEEN, _SAFE, _ALARM = "#2f6f9f", "#7b8794", "#2a9d8f", "#e08e1b"


def bound_trace(monitor: Monitor) -> list[tuple[int, float, float]]:
    """Return (episodes, share over the limit, bound) along the way, as far as the monitor keeps it."""
    points = list(monitor.trace)
    if monitor.episodes and (not points or points[-1][0] < monitor.episodes):
        points.append((monitor.episodes, monitor.over))
    return [(n, over / n, count_upper(over, n - over, monitor.delta)) for n, over in points]


def save_monitor_figure(monitor: Monitor | Monitors, path: str | Path) -> None:
    """Write the figure of a monitor; the format follows from the suffix (PNG, SVG or PDF)."""
    save_figure(lambda: monitor_figure(monitor), path)


def monitor_figure(monitor: Monitor | Monitors) -> "Figure":
    """Return a figure with one row per cost: bound over time on the left, the whole tail on the right."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("Plotting", "plot") from None
    parts = dict(monitor) if isinstance(monitor, Monitors) else {"": monitor}
    with rc_context(STYLE):
        figure = Figure(figsize=(11.0, 4.4 * len(parts)), layout="constrained")
        axes = figure.subplots(len(parts), 2, squeeze=False, width_ratios=(1.5, 1.0))
        for (left, right), (name, part) in zip(axes, parts.items(), strict=True):
            _over_time(left, part, name)
            _tail(right, part)
    return figure


def _over_time(axes: Any, monitor: Monitor, name: str) -> None:
    trace = bound_trace(monitor)
    if trace:
        episodes, seen, bounds = (np.array(column) for column in zip(*trace, strict=True))
        axes.plot(episodes, bounds, color=_BOUND, linewidth=2.0, label=f"bound ({1 - monitor.delta:.4g})")
        axes.plot(episodes, seen, color=_SEEN, linewidth=1.2, label="share seen")
    axes.axhline(monitor.budget, color=LIMIT, linewidth=1.4, label=f"budget {monitor.budget:g}")
    if monitor.baseline != monitor.budget:
        axes.axhline(
            monitor.baseline,
            color=SOFT,
            linewidth=1.0,
            linestyle=":",
            label=f"baseline {monitor.baseline:.3g}",
        )
    marks = [(monitor.certified_at, "certified", _SAFE), (monitor.unsafe_at, "unsafe", ALARM)]
    marks += [(at, "drift", _ALARM) for at in monitor.detector.alarms]
    for at, what, color in marks:
        if at is not None:
            axes.axvline(at, color=color, linewidth=1.4, linestyle="--", label=f"{what} at {at}")
    low = min([monitor.budget, monitor.baseline, *(bound for *_, bound in trace)])
    axes.set(xscale="log", yscale="log", ylim=(0.3 * low, 1.15), xlabel="episodes", ylabel="P(cost > limit)")
    axes.set_xlim(1, max(monitor.episodes, 2) * 1.1)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
    axes.grid(color=FAINT, linewidth=0.6)
    axes.set_title(f"{name}: " * bool(name) + f"limit {monitor.limit:g}", loc="left", fontsize=11)
    axes.legend(fontsize=9, loc="lower left", framealpha=0.9, edgecolor="white")


def _tail(axes: Any, monitor: Monitor) -> None:
    thresholds, bounds = monitor.tail()
    above = monitor.grid.above(np.array(monitor.cells, dtype=np.int64))
    seen = above / max(monitor.episodes, 1)
    axes.fill_between(
        thresholds, seen, bounds, step="post", color=_BOUND, alpha=0.22, linewidth=0, label="up to the bound"
    )
    axes.step(thresholds, bounds, where="post", color=_BOUND, linewidth=1.6)
    axes.step(thresholds, seen, where="post", color=INK, linewidth=1.2, label="seen")
    axes.axvline(monitor.limit, color=LIMIT, linewidth=1.4, label=f"limit {monitor.limit:g}")
    axes.set(xlabel="c", ylabel="P(cost > c)", ylim=(0.0, 1.03), xlim=(0.0, monitor.cap))
    axes.set_title(
        f"mean ≤ {monitor.mean_bound:.3g}, CVaR 10 % ≤ {monitor.cvar_bound():.3g}", loc="left", fontsize=11
    )
    axes.grid(color=FAINT, linewidth=0.6)
    axes.legend(frameon=False, fontsize=9, loc="upper right")
