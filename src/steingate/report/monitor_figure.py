"""Figure of a monitor: bound on the violation probability over time, and bounds on the whole tail."""

from typing import TYPE_CHECKING, Any

from steingate.certificates.formatting import percent
from steingate.monitoring.monitor import Monitor
from steingate.monitoring.monitors import Monitors, by_name
from steingate.monitoring.wealth import upper_bound
from steingate.report.plot_style import DASHES, FAINT, INK, LIMIT, SAFE, SOFT, UNSAFE, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BOUND, _DRIFT, _BUDGET = "#2f6f9f", "#e08e1b", "#7b3294"


@styled
def monitor_figure(monitor: Monitor | Monitors) -> "Figure":
    """Return a figure with one row per cost: bound over time on the left, the whole tail on the right."""
    from matplotlib.figure import Figure

    monitors = by_name(monitor, "")
    figure = Figure(figsize=(11.0, 4.4 * len(monitors)), layout="constrained")
    axes = figure.subplots(len(monitors), 2, squeeze=False, width_ratios=(1.5, 1.0))
    for (left, right), (name, single) in zip(axes, monitors.items(), strict=True):
        _plot_bound(left, single, name)
        _plot_tail(right, single)
    return figure


def _plot_bound(panel: Any, monitor: Monitor, name: str) -> None:
    from matplotlib.ticker import LogLocator

    points = [*monitor.trace, (monitor.episodes, monitor.violations, monitor.bound)] if monitor.episodes else []
    bounds = [upper_bound(over, n - over, monitor.delta) if bound is None else bound for n, over, bound in points]
    episodes = [n for n, _, _ in points]
    panel.plot(episodes, bounds, color=_BOUND, linewidth=2.0, label=f"bound ({percent(1 - monitor.delta)} confidence)")
    panel.plot(episodes, [over / n for n, over, _ in points], color=SOFT, linewidth=1.2, label="observed rate")
    panel.axhline(monitor.budget, color=_BUDGET, linewidth=1.4, linestyle="-.", label=f"budget {monitor.budget:g}")
    if monitor.baseline != monitor.budget:
        panel.axhline(monitor.baseline, color=SOFT, linestyle=":", label=f"baseline {monitor.baseline:.3g}")
    marks = [(monitor.certified_at, "certified", SAFE), (monitor.unsafe_at, "unsafe", UNSAFE)]
    for at, event, color in marks + [(at, "drift", _DRIFT) for at in monitor.drift_alarms]:
        if at is not None:
            panel.axvline(at, color=color, linewidth=1.4, linestyle="--", label=f"{event} at {at:,}")
    low = min([monitor.budget, monitor.baseline, *bounds])
    panel.set(xscale="log", yscale="log", ylim=(0.3 * low, 1.15), xlabel="episodes", ylabel="P(cost > limit)")
    panel.set_xlim(1, max(monitor.episodes, 2) * 1.1)
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=40))
        axis.set_major_formatter(lambda value, _: f"{value:,g}")
    panel.minorticks_off()
    panel.grid(color=FAINT, linewidth=0.6)
    clusters = f", {monitor.counted:,} clusters" if monitor.counted < monitor.episodes else ""
    panel.set_title(f"{name}: " * bool(name) + f"limit {monitor.limit:g}{clusters}", loc="left", fontsize=11)
    panel.legend(fontsize=9, loc="lower left", framealpha=0.9, edgecolor="white")


def _plot_tail(panel: Any, monitor: Monitor) -> None:
    thresholds, bounds = monitor.tail()
    observed, band = monitor.tail_rates(), {"step": "post", "color": _BOUND, "alpha": 0.22, "linewidth": 0}
    panel.fill_between(thresholds, observed, bounds, label="up to the bound", **band)
    panel.step(thresholds, bounds, where="post", color=_BOUND, linewidth=1.6)
    panel.step(thresholds, observed, where="post", color=INK, linewidth=1.2, label="observed")
    panel.axvline(monitor.limit, color=LIMIT, linewidth=1.2, linestyle=DASHES, label=f"limit {monitor.limit:g}")
    panel.set(xlabel="c", ylabel="P(cost > c)", ylim=(0.0, 1.03), xlim=(0.0, monitor.cap))
    panel.set_title(f"mean ≤ {monitor.mean_bound:.3g}, CVaR 10 % ≤ {monitor.cvar_bound():.3g}", loc="left", fontsize=11)
    panel.grid(color=FAINT, linewidth=0.6)
    panel.legend(frameon=False, fontsize=9, loc="upper right")
