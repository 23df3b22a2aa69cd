"""Figures of certificates: costs, limit and exact bound; reference, risk function and terms of U."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from steingate.certificates.formatting import count, number, percent, rate, upper
from steingate.certificates.io import Costs, check_costs
from steingate.certificates.stein import SteinResult
from steingate.certificates.violation import ViolationResult
from steingate.report.plot_style import INK, SAFE, SOFT, TERM_COLORS, UNSAFE, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import GridSpec

_COSTS, _REFERENCE, _RISK = "#9db4c8", "#22303c", "#e08e1b"


@styled
def violation_figure(result: ViolationResult, costs: npt.ArrayLike, one_policy: bool = True) -> "Figure":
    """Return a figure of ``certify``: histogram of the costs with the limit; violation rate and its bound.

    If the costs are not of ``one_policy``, it says so and shows no verdict.
    """
    values = check_costs(costs)
    figure, grid = _page()
    panel, bars = figure.add_subplot(grid[0]), figure.add_subplot(grid[1])
    # Bins are closed on the right and end at the limit; the last one has all larger costs.
    below = 20 if result.limit > 0.0 else 1
    width = result.limit / below or result.max_cost / 40.0 or 1.0
    above = int(np.clip(np.ceil((result.max_cost - result.limit) / width), 4, 60))
    edges = result.limit + width * np.arange(-below, above + 1)
    index = np.clip(np.digitize(values, edges, right=True) - 1, 0, edges.size - 2)
    counts = np.bincount(index, minlength=edges.size - 1)
    panel.stairs(counts[:below], edges[: below + 1], fill=True, color=_COSTS, label="within the limit")
    panel.stairs(counts[below:], edges[below:], fill=True, color=UNSAFE, label="violations")
    panel.axvline(result.limit, color=INK, linewidth=1.4)
    panel.text(result.limit, 1.0, " limit", transform=panel.get_xaxis_transform(), fontsize=9, va="top")
    panel.set(xlim=(edges[0], edges[-1]), ylim=(0.0, 1.08 * counts.max()), xlabel="episode cost")
    if result.max_cost > edges[-1]:
        panel.set_xlabel(f"episode cost (last bar: {edges[-2]:g} or more)")
    panel.set_ylabel("episodes")
    panel.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, fontsize=9)
    top = min(1.25 * max(result.bound, result.risk), 1.1)
    heights = (result.violation_rate, result.bound)
    colors = (UNSAFE, SAFE if result.certified else UNSAFE)
    bars.bar([0, 1], heights, width=0.6, color=colors, alpha=0.9)
    for x, height, text in zip((0, 1), heights, (rate(heights[0]), upper(heights[1])), strict=True):
        base = result.risk if 0.0 <= result.risk - height < 0.06 * top else height
        bars.text(x, base + 0.015 * top, text, ha="center", fontsize=9)
    _level(bars, result.risk, f"risk {percent(result.risk)}", 2.2, top)
    bars.set(xlim=(-0.5, 2.2), ylim=(0.0, top), yticks=[], ylabel="P(cost > limit)")
    bars.set_xticks([0, 1], ["violation\nrate", f"bound,\n{percent(result.confidence)} confidence"])
    bars.tick_params(axis="x", length=0)
    word, color = ("CERTIFIED", SAFE) if result.certified else ("NOT CERTIFIED", UNSAFE)
    if not one_policy:
        word, color = "NOT ONE POLICY", SOFT
    clusters = f" in {result.clusters:,} clusters" if result.clusters else ""
    text = f"{result.violations:,} of {count(result.episodes)}{clusters} cost more than {number(result.limit)}"
    _title(figure, word, color, text, f"for a risk of {percent(result.risk)}")
    return figure


@styled
def stein_figure(result: SteinResult, costs: npt.ArrayLike) -> "Figure":
    """Return a figure of a Stein certificate: atoms, costs over the reference density, terms of U."""
    certificate = result.certificate
    x = certificate.normalize(check_costs(costs))
    figure, grid = _page()
    zero, interior, one = grid[0].subgridspec(1, 3, width_ratios=(0.5, 5.0, 0.5), wspace=0.03)
    _atom(figure.add_subplot(zero), "no cost", result.zero_mass, certificate.zero_mass, SAFE)
    _interior(figure.add_subplot(interior), result, x)
    label = f"≥ {certificate.scale:g}"
    _atom(figure.add_subplot(one), label, result.one_mass, certificate.one_mass, UNSAFE)
    _terms(figure.add_subplot(grid[1]), result)
    sign = "≤" if result.is_open else ">"
    comparison = f"{_number(result.decision_value)} {sign} budget {result.budget:g}"
    setting = f"{certificate.name}, {count(result.episodes)}, limit {certificate.limit:g}"
    word, color = ("OPEN", SAFE) if result.is_open else ("CLOSED", UNSAFE)
    _title(figure, word, color, comparison, setting)
    return figure


def _page() -> "tuple[Figure, GridSpec]":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.9))
    grid = figure.add_gridspec(
        1, 2, width_ratios=(2.5, 1.0), left=0.05, right=0.985, top=0.80, bottom=0.13, wspace=0.18
    )
    return figure, grid


def _title(figure: "Figure", word: str, color: str, text: str, setting: str) -> None:
    badge = {"boxstyle": "round,pad=0.35", "facecolor": color, "edgecolor": color}
    figure.text(0.03, 0.94, word, color="white", fontsize=12, fontweight="bold", va="center", bbox=badge)
    figure.text(0.055 + 0.0108 * len(word), 0.94, text, fontsize=13, fontweight="bold", va="center")
    figure.text(0.985, 0.94, setting, color=SOFT, va="center", ha="right")


def _level(axes: "Axes", value: float, label: str, right: float, top: float) -> None:
    """Draw a labeled horizontal line."""
    axes.axhline(value, color=INK, linewidth=1.4)
    axes.text(right - 0.03, value + 0.012 * top, label, fontsize=9, va="bottom", ha="right")


def _atom(axes: "Axes", label: str, mass: float, reference: float, color: str) -> None:
    axes.bar([0], [mass], width=0.7, color=color)
    if reference > 0.0:
        axes.hlines(reference, -0.45, 0.45, color=_REFERENCE, linewidth=1.8)
    text = f"{mass:.0%}" if mass in (0.0, 1.0) else f"{mass:.1%}"
    axes.text(0, max(mass, reference) + 0.02, text, ha="center", fontsize=9)
    axes.set(xlim=(-0.6, 0.6), ylim=(0.0, 1.12), xticks=[0], xticklabels=[label], yticks=[])
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="x", length=0)


def _interior(axes: "Axes", result: SteinResult, x: Costs) -> None:
    certificate = result.certificate
    inside = x[(x > certificate.atom_tol) & (x < 1.0 - certificate.atom_tol)]
    grid = np.linspace(0.0, 1.0, 501)
    mass = certificate.hybrid_reference.interior_mass
    density = mass * certificate.interior.pdf(np.clip(grid, 1e-3, 1.0 - 1e-3))
    bins = np.linspace(0.0, 1.0, 1 + int(np.clip(2.0 * np.sqrt(max(inside.size, 1)), 25, 80)))
    heights = np.histogram(inside, bins)[0] / (result.episodes * np.diff(bins))
    axes.stairs(heights, bins, fill=True, color=_COSTS, label=f"episodes costing 0 to {certificate.scale:g}")
    axes.plot(grid, density, color=_REFERENCE, linewidth=1.8, label=f"reference {certificate.reference_name}")
    # Neither one tall bar nor a density that is infinite at an end sets the height of the axis.
    peak = float(density[5:-5].max())
    top = 1.12 * max(peak, min(float(heights.max()), 4.0 * peak))
    for edge, height in zip(bins, heights, strict=False):
        if height > top:
            text = f"{height * (bins[1] - bins[0]):.0%}"
            axes.text(edge + 0.5 * bins[1], 0.94 * top, text, fontsize=8, ha="center", color=INK)
    axes.set(xlim=(0.0, 1.0), ylim=(0.0, top), yticks=[])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("episode cost")
    ticks = np.linspace(0.0, 1.0, 6)
    axes.set_xticks(ticks, [f"{tick * certificate.scale:g}" for tick in ticks])
    limit = certificate.limit / certificate.scale
    axes.axvline(limit, color=SOFT, linewidth=1.0, linestyle=":")
    side = "right" if limit > 0.5 else "left"
    axes.text(limit, 0.985 * top, " limit ", color=SOFT, fontsize=9, va="top", ha=side)

    risk = axes.twinx()
    values = certificate.risk_function(grid)
    risk.plot(grid, values, color=_RISK, linewidth=1.6, linestyle="--", label="risk function")
    risk.set(ylim=(0.0, 1.12), yticks=[])
    risk.spines[["left", "right"]].set_visible(False)
    handles = [*axes.get_legend_handles_labels()[0], *risk.get_legend_handles_labels()[0]]
    axes.legend(
        handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, fontsize=9,
        handlelength=1.6, columnspacing=1.4,
    )  # fmt: skip


def _terms(axes: "Axes", result: SteinResult) -> None:
    bottom = 0.0
    for name, height in (
        ("reference", result.reference_risk),
        ("atoms", result.discrete_term),
        ("interior", result.interior_term),
    ):
        axes.bar([0], [height], bottom=bottom, width=0.62, color=TERM_COLORS[name], label=name)
        bottom += height
    second = {"noise_corrected": "noise-\ncorrected"}.get(result.decided_by, "mean\nrisk")
    height = result.decision_value if result.decided_by == "noise_corrected" else result.empirical_risk
    decides = result.decided_by != "bound"
    color = _COSTS if not decides else SAFE if result.is_open else UNSAFE
    axes.bar([1], [height], width=0.62, color=color)
    top = 1.14 * max(result.budget, bottom, height)
    for x, value in enumerate((bottom, height)):
        # Labels that the budget line would cross are placed above it.
        base = result.budget if 0.0 <= result.budget - value < 0.06 * top else value
        axes.text(x, base + 0.012 * top, _number(value), ha="center", fontsize=9)
    _level(axes, result.budget, f"budget {result.budget:g}", 2.25, top)
    axes.set(xlim=(-0.5, 2.25), ylim=(0.0, top), ylabel="risk")
    axes.set_xticks([0, 1], ["Stein\nbound U", second])
    for tick, bold in zip(axes.get_xticklabels(), (not decides, decides), strict=True):
        tick.set_fontweight("bold" if bold else "normal")
    axes.tick_params(axis="x", length=0)
    axes.legend(
        loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, fontsize=9, handlelength=1.0,
        columnspacing=1.0, handletextpad=0.4,
    )  # fmt: skip


def _number(value: float) -> str:
    return "≈ 0" if 0.0 < value < 5e-5 else f"{value:.3g}"
