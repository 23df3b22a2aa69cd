"""The frontier: return against the share of episodes over the limit, a point per seed, medians of methods."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from steingate.errors import InputError, MissingExtraError
from steingate.report.evidence import Evidence
from steingate.report.groups import Group
from steingate.report.report_tables import task
from steingate.report.seeds import Estimate
from steingate.report.style import FAINT, SOFT, STYLE, save_figure, task_panels
from steingate.report.summary import Point, Summary, tail_point

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def save_frontier_figure(evidence: Evidence, path: str | Path) -> None:
    """Write the figure of some runs; the format follows from the suffix (PNG, SVG or PDF)."""
    save_figure(lambda: frontier_figure(evidence), path)


def frontier_figure(evidence: Evidence) -> "Figure":
    """Return a Matplotlib figure, a panel per task: small points are seeds, large ones medians of methods.

    Bars are 95 % bootstrap intervals of the medians over seeds. The line joins the methods that no other
    beats in both return and safety.
    """
    try:
        from matplotlib import rc_context
    except ImportError:
        raise MissingExtraError("Plotting", "plot") from None
    if not evidence.groups:
        raise InputError("There is no run to draw; name folders that hold some.")
    tasks = evidence.by_task()
    with rc_context(STYLE):
        labels = {group.label: evidence.color(group) for group in evidence.groups}
        keys = [
            *((label, color, "-") for label, color in labels.items()),
            ("not beaten in both", SOFT, ":"),
        ]
        figure, panels = task_panels(1, len(tasks), 3.1, keys)
        for panel, (env, members) in zip(panels[0], tasks.items(), strict=True):
            panel.set_title(task(env), fontsize=11.5, fontweight="bold")
            for group, summary in members:
                _method(panel, group, summary, evidence.color(group))
            _line(panel, [summary for _, summary in members])
            _finish(panel, members)
        panels[0, 0].set_ylabel("return")
    return figure


def seed_points(group: Group) -> list[tuple[int, Point]]:
    """Return each seed and where it stands, without those that finished no episode in the last fifth."""
    points = [(run.seed, tail_point(run)) for run in group.runs]
    return [(seed, point) for seed, point in points if np.isfinite(point).all()]


def unbeaten(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return which points (return, exceedance) none is as good as in both and better in one, safest first.

    Examples
    --------
    >>> unbeaten([(10.0, 0.2), (5.0, 0.0), (4.0, 0.1)])
    [1, 0]
    """
    known = [index for index, point in enumerate(points) if np.isfinite(point).all()]
    best = -np.inf
    chosen: list[int] = []
    for index in sorted(known, key=lambda index: (points[index][1], -points[index][0])):
        ret = points[index][0]
        if ret > best or (chosen and points[index] == points[chosen[-1]]):
            chosen.append(index)
            best = ret
    return chosen


def _method(panel: "Axes", group: Group, summary: Summary, color: str) -> None:
    points = [point for _, point in seed_points(group)]
    if not points:
        return
    over, ret = [100.0 * point.exceedance for point in points], [point.ret for point in points]
    panel.scatter(over, ret, s=16, color=color, alpha=0.45, linewidths=0, zorder=3, clip_on=False)
    x, y = summary.seed_exceedance, summary.seed_return
    panel.errorbar(
        100.0 * x.value, y.value, xerr=100.0 * _arms(x), yerr=_arms(y), color=color, linewidth=1.4,
        marker="o", markersize=7.5, markeredgecolor="white", markeredgewidth=0.9, zorder=4, clip_on=False,
    )  # fmt: skip


def _arms(estimate: Estimate) -> npt.NDArray[np.float64]:
    """Return the lengths of the bars below and above; none where one seed says nothing of its spread."""
    arms = [[estimate.value - estimate.low], [estimate.high - estimate.value]]
    return np.maximum(np.nan_to_num(np.array(arms)), 0.0)


def _line(panel: "Axes", summaries: Sequence[Summary]) -> None:
    points = [(item.seed_return.value, item.seed_exceedance.value) for item in summaries]
    chosen = unbeaten(points)
    x, y = [100.0 * points[index][1] for index in chosen], [points[index][0] for index in chosen]
    panel.plot(x, y, color=SOFT, linewidth=1.2, linestyle=":", zorder=2)


def _finish(panel: "Axes", members: Sequence[tuple[Group, Summary]]) -> None:
    panel.grid(color=FAINT, linewidth=0.6)
    panel.set_axisbelow(True)
    high = max(panel.get_xlim()[1], 5.0)
    panel.set_xlim(-0.02 * high, min(high, 102.0))
    limits = ", ".join(f"{limit:g}" for limit in sorted({group.limit for group, _ in members}))
    panel.set_xlabel(f"episodes over the limit of {limits}, %")
