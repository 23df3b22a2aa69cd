"""Figure of a monitor: bound on the violation probability over time, and bounds on the whole tail."""

from typing import TYPE_CHECKING, Any

import numpy as np

from steingate.certificates.formatting import percent
from steingate.monitoring.monitor import Monitor
from steingate.monitoring.monitors import Monitors, by_name
from steingate.monitoring.wealth import upper_bound
from steingate.report.plot_style import DASHES, FAINT, INK, LIMIT, SAFE, SOFT, UNSAFE, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BOUND, _DRIFT, _BUDGET = "#2f6f9f", "#e08e1b", "#7b3294"


def bound_trace(monitor: Monitor) -> list[tuple[int, float, float]]:
    """Return (episodes, observed violation rate, bound) at the episodes that the monitor stores."""
    points = list(monitor.trace)
    if monitor.episodes and points[-1][0] < monitor.episodes:
        points.append((monitor.episodes, monitor.violations, monitor.bound))
    return [
        (n, over / n, upper_bound(over, n - over, monitor.delta) if bound is None else bound)
        for n, over, bound in points
    ]


@styled
def monitor_figure(monitor: Monitor | Monitors) -> "Figure":
    """Return a figure with one row per cost: bound over time on the left, the whole tail on the right."""
    from matplotlib.figure import Figure

    monitors = by_name(monitor, "")
    figure = Figure(figsize=(11.0, 4.4 * len(monitors)), layout="constrained")
    axes = figure.subplots(len(monitors), 2, squeeze=False, width_ratios=(1.5, 1.0))
    for (left, right), (name, single) in zip(axes, monitors.items(), strict=True):
        _over_time(left, single, name)
        _tail(right, single)
    return figure


def _over_time(axes: Any, monitor: Monitor, name: str) -> None:
    from matplotlib.ticker import LogLocator

    trace = bound_trace(monitor)
    if trace:
        episodes, observed, bounds = (np.array(column) for column in zip(*trace, strict=True))
        label = f"bound ({percent(1 - monitor.delta)} confidence)"
        axes.plot(episodes, bounds, color=_BOUND, linewidth=2.0, label=label)
        axes.plot(episodes, observed, color=SOFT, linewidth=1.2, label="observed rate")
    axes.axhline(monitor.budget, color=_BUDGET, linewidth=1.4, linestyle="-.", label=f"budget {monitor.budget:g}")
    if monitor.baseline != monitor.budget:
        label = f"baseline {monitor.baseline:.3g}"
        axes.axhline(monitor.baseline, color=SOFT, linewidth=1.0, linestyle=":", label=label)
    marks = [(monitor.certified_at, "certified", SAFE), (monitor.unsafe_at, "unsafe", UNSAFE)]
    marks += [(at, "drift", _DRIFT) for at in monitor.drift_alarms]
    for at, event, color in marks:
        if at is not None:
            axes.axvline(at, color=color, linewidth=1.4, linestyle="--", label=f"{event} at {at:,}")
    low = min([monitor.budget, monitor.baseline, *(bound for *_, bound in trace)])
    axes.set(xscale="log", yscale="log", ylim=(0.3 * low, 1.15), xlabel="episodes", ylabel="P(cost > limit)")
    axes.set_xlim(1, max(monitor.episodes, 2) * 1.1)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=40))
        axis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.minorticks_off()
    axes.grid(color=FAINT, linewidth=0.6)
    clusters = f", {monitor.counted:,} clusters" if monitor.counted < monitor.episodes else ""
    axes.set_title(f"{name}: " * bool(name) + f"limit {monitor.limit:g}{clusters}", loc="left", fontsize=11)
    axes.legend(fontsize=9, loc="lower left", framealpha=0.9, edgecolor="white")


def _tail(axes: Any, monitor: Monitor) -> None:
    thresholds, bounds = monitor.tail()
    observed, band = monitor.tail_rates(), {"step": "post", "color": _BOUND, "alpha": 0.22, "linewidth": 0}
    axes.fill_between(thresholds, observed, bounds, label="up to the bound", **band)
    axes.step(thresholds, bounds, where="post", color=_BOUND, linewidth=1.6)
    axes.step(thresholds, observed, where="post", color=INK, linewidth=1.2, label="observed")
    axes.axvline(monitor.limit, color=LIMIT, linewidth=1.2, linestyle=DASHES, label=f"limit {monitor.limit:g}")
    axes.set(xlabel="c", ylabel="P(cost > c)", ylim=(0.0, 1.03), xlim=(0.0, monitor.cap))
    axes.set_title(f"mean ≤ {monitor.mean_bound:.3g}, CVaR 10 % ≤ {monitor.cvar_bound():.3g}", loc="left", fontsize=11)
    axes.grid(color=FAINT, linewidth=0.6)
    axes.legend(frameon=False, fontsize=9, loc="upper right")
