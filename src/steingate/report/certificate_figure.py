"""Figures of certificates: costs and limit; reference, risk function and terms of U."""

from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from steingate.certificates.formatting import count, percent, violations_text
from steingate.certificates.io import Costs, check_costs
from steingate.certificates.stein import SteinResult
from steingate.certificates.violation import ViolationResult
from steingate.report.plot_style import INK, SAFE, SOFT, TERM_COLORS, UNSAFE, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COSTS, _RISK = "#9db4c8", "#e08e1b"
_KEYS = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 3, "frameon": False, "fontsize": 9}


@styled
def violation_figure(result: ViolationResult, costs: npt.ArrayLike) -> "Figure":
    """Return a figure of ``certify``: verdict, and histogram of the costs with the limit."""
    from matplotlib.figure import Figure

    values = check_costs(costs)
    figure = Figure(figsize=(11.0, 4.9))
    panel = figure.add_axes((0.06, 0.12, 0.92, 0.66))
    # Bins are closed on the right and end at the limit; the last one has all larger costs.
    below = 20 if result.limit > 0.0 else 1
    width = result.limit / below or result.max_cost / 40.0 or 1.0
    above = int(np.clip(np.ceil((result.max_cost - result.limit) / width), 4, 60))
    edges = result.limit + width * np.arange(-below, above + 1)
    index = np.clip(np.digitize(values, edges, right=True) - 1, 0, edges.size - 2)
    counts = np.bincount(index, minlength=edges.size - 1)
    panel.stairs(counts[:below], edges[: below + 1], fill=True, color=_COSTS, label="within the limit")
    panel.stairs(counts[below:], edges[below:], fill=True, color=UNSAFE, label="violations")
    _limit(panel, result.limit)
    panel.set(xlim=(edges[0], edges[-1]), ylim=(0.0, 1.08 * counts.max()), xlabel="episode cost", ylabel="episodes")
    if result.max_cost > edges[-1]:
        panel.set_xlabel(f"episode cost (last bar: {edges[-2]:g} or more)")
    panel.legend(**_KEYS)
    word, color = ("CERTIFIED", SAFE) if result.certified else ("NOT CERTIFIED", UNSAFE)
    numbers = (result.violations, result.episodes, result.limit, result.bound, result.confidence, result.clusters or 0)
    _title(figure, word, color, violations_text(*numbers), f"accepted risk {percent(result.risk)}")
    return figure


@styled
def stein_figure(result: SteinResult, costs: npt.ArrayLike) -> "Figure":
    """Return a figure of a Stein certificate: atoms, costs over the reference density, terms of U."""
    from matplotlib.figure import Figure

    certificate = result.certificate
    x = certificate.normalize(check_costs(costs))
    figure = Figure(figsize=(11.0, 4.9))
    place = {"left": 0.05, "right": 0.985, "top": 0.80, "bottom": 0.13, "wspace": 0.18}
    left, right = figure.add_gridspec(1, 2, width_ratios=(2.5, 1.0), **place)
    zero, interior, one = left.subgridspec(1, 3, width_ratios=(0.5, 5.0, 0.5), wspace=0.03)
    _plot_atom(figure.add_subplot(zero), "no cost", result.zero_mass, certificate.zero_mass, SAFE)
    _plot_interior(figure.add_subplot(interior), result, x)
    _plot_atom(figure.add_subplot(one), f"≥ {certificate.scale:g}", result.one_mass, certificate.one_mass, UNSAFE)
    _plot_terms(figure.add_subplot(right), result)
    sign = "≤" if result.is_open else ">"
    comparison = f"{_number(result.decision_value)} {sign} budget {result.budget:g}"
    setting = f"{certificate.name}, {count(result.episodes)}, limit {certificate.limit:g}"
    word, color = ("OPEN", SAFE) if result.is_open else ("CLOSED", UNSAFE)
    _title(figure, word, color, comparison, setting)
    return figure


def _title(figure: "Figure", word: str, color: str, text: str, setting: str) -> None:
    badge = {"boxstyle": "round,pad=0.35", "facecolor": color, "edgecolor": color}
    figure.text(0.03, 0.94, word, color="white", fontsize=12, fontweight="bold", va="center", bbox=badge)
    figure.text(0.055 + 0.0108 * len(word), 0.94, fill(text, 90), fontsize=11, fontweight="bold", va="center")
    figure.text(0.985, 0.94, setting, color=SOFT, va="center", ha="right")


def _limit(panel: "Axes", limit: float) -> None:
    panel.axvline(limit, color=INK, linewidth=1.2, linestyle=":")
    panel.text(limit, 0.99, " limit", transform=panel.get_xaxis_transform(), fontsize=9, va="top")


def _plot_atom(panel: "Axes", label: str, mass: float, reference: float, color: str) -> None:
    """Draw the fraction of episodes at one end of the costs, and the reference's probability as a line."""
    panel.bar([0], [mass], width=0.7, color=color)
    if reference > 0.0:
        panel.hlines(reference, -0.45, 0.45, color=INK, linewidth=1.8)
    panel.text(0, max(mass, reference) + 0.02, f"{100.0 * mass:.3g}%", ha="center", fontsize=9)
    panel.set(xlim=(-0.6, 0.6), ylim=(0.0, 1.12), xticks=[0], xticklabels=[label], yticks=[])
    panel.spines["left"].set_visible(False)
    panel.tick_params(axis="x", length=0)


def _plot_interior(panel: "Axes", result: SteinResult, x: Costs) -> None:
    """Draw the histogram of the costs between the atoms, the reference density, and the risk function."""
    certificate = result.certificate
    inside = x[(x > certificate.atom_tol) & (x < 1.0 - certificate.atom_tol)]
    grid = np.linspace(0.0, 1.0, 501)
    density = certificate.hybrid_reference.interior_mass * certificate.interior.pdf(np.clip(grid, 1e-3, 1.0 - 1e-3))
    bins = np.linspace(0.0, 1.0, 1 + int(np.clip(2.0 * np.sqrt(max(inside.size, 1)), 25, 80)))
    heights = np.histogram(inside, bins)[0] / (result.episodes * np.diff(bins))
    # Neither one tall bar nor a density that is infinite at an end sets the height of the axis.
    peak = float(density[5:-5].max())
    top = 1.12 * max(peak, min(float(heights.max()), 4.0 * peak))
    panel.stairs(heights, bins, fill=True, color=_COSTS, label=f"episodes costing 0 to {certificate.scale:g}")
    panel.plot(grid, density, color=INK, linewidth=1.8, label=f"reference {certificate.reference_name}")
    risk = certificate.risk_function(grid) * top / 1.12
    panel.plot(grid, risk, color=_RISK, linewidth=1.6, linestyle="--", label="risk function")
    for edge, height in zip(bins, heights, strict=False):
        if height > top:
            text = f"{height * (bins[1] - bins[0]):.0%}"
            panel.text(edge + 0.5 * bins[1], 0.94 * top, text, fontsize=8, ha="center")
    ticks = np.linspace(0.0, 1.0, 6)
    panel.set(xlim=(0.0, 1.0), ylim=(0.0, top), yticks=[], xlabel="episode cost")
    panel.set_xticks(ticks, [f"{tick * certificate.scale:g}" for tick in ticks])
    panel.spines["left"].set_visible(False)
    _limit(panel, certificate.limit / certificate.scale)
    panel.legend(**_KEYS, handlelength=1.6, columnspacing=1.4)


def _plot_terms(panel: "Axes", result: SteinResult) -> None:
    """Draw the terms of U as a stack, beside the number that the gate or the mean risk has."""
    terms = {"reference": result.reference_risk, "atoms": result.discrete_term, "interior": result.interior_term}
    total = 0.0
    for name, height in terms.items():
        panel.bar([0], [height], bottom=total, width=0.62, color=TERM_COLORS[name], label=name)
        total += height
    corrected, decides = result.decided_by == "noise_corrected", result.decided_by != "bound"
    second = result.decision_value if corrected else result.empirical_risk
    color = _COSTS if not decides else SAFE if result.is_open else UNSAFE
    panel.bar([1], [second], width=0.62, color=color)
    top = 1.14 * max(result.budget, total, second)
    for x, value in enumerate((total, second)):
        # Labels that the budget line would cross are placed above it.
        base = result.budget if 0.0 <= result.budget - value < 0.06 * top else value
        panel.text(x, base + 0.012 * top, _number(value), ha="center", fontsize=9)
    panel.axhline(result.budget, color=INK, linewidth=1.4)
    panel.text(2.22, result.budget + 0.012 * top, f"budget {result.budget:g}", fontsize=9, ha="right")
    panel.set(xlim=(-0.5, 2.25), ylim=(0.0, top), ylabel="risk")
    panel.set_xticks([0, 1], ["Stein\nbound U", "noise-\ncorrected" if corrected else "mean\nrisk"])
    panel.get_xticklabels()[int(decides)].set_fontweight("bold")
    panel.tick_params(axis="x", length=0)
    panel.legend(**_KEYS, handlelength=1.0, columnspacing=1.0, handletextpad=0.4)


def _number(value: float) -> str:
    return "≈ 0" if 0.0 < value < 5e-5 else f"{value:.3g}"
