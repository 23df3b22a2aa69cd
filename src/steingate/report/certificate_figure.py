"""Figure of a certificate: episode costs, reference distribution, risk function and terms of the bound."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from steingate.certificates.certificate import Certificate
from steingate.certificates.costs import Costs, check_costs, normalized
from steingate.certificates.result import Result
from steingate.report.plot_style import INK, SAFE, SOFT, TERM_COLORS, UNSAFE, save_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COSTS, _REFERENCE, _RISK = "#9db4c8", "#22303c", "#e08e1b"
_STEIN = "Stein\nbound"


def save_certificate_figure(
    certificate: Certificate, costs: npt.ArrayLike, path: str | Path, result: Result | None = None
) -> None:
    """Write the figure of a certificate as PNG, SVG or PDF."""
    save_figure(lambda: certificate_figure(certificate, costs, result), path)


@styled
def certificate_figure(
    certificate: Certificate, costs: npt.ArrayLike, result: Result | None = None
) -> "Figure":
    """Return a figure: atoms as bars, interior histogram over the reference density, terms of the bound."""
    from matplotlib.figure import Figure

    values = check_costs(costs)
    result = result or certificate.evaluate(values)
    x = normalized(values, result.scale)
    figure = Figure(figsize=(11.0, 4.9))
    grid = figure.add_gridspec(
        1, 2, width_ratios=(2.5, 1.0), left=0.03, right=0.985, top=0.80, bottom=0.13, wspace=0.18
    )
    zero, interior, one = grid[0].subgridspec(1, 3, width_ratios=(0.5, 5.0, 0.5), wspace=0.03)
    _atom(figure.add_subplot(zero), "no cost", result.zero_mass, certificate.zero_mass, SAFE)
    _interior(figure.add_subplot(interior), certificate, result, x)
    _atom(figure.add_subplot(one), f"≥ {result.scale:g}", result.one_mass, certificate.one_mass, UNSAFE)
    _terms(figure.add_subplot(grid[1]), result)
    _headline(figure, result)
    return figure


def _headline(figure: "Figure", result: Result) -> None:
    word, color = ("OPEN", SAFE) if result.safe else ("CLOSED", UNSAFE)
    sign = "≤" if result.safe else ">"
    badge = {"boxstyle": "round,pad=0.35", "facecolor": color, "edgecolor": color}
    figure.text(0.03, 0.94, word, color="white", fontsize=12, fontweight="bold", va="center", bbox=badge)
    comparison = f"{_number(result.decision_value)} {sign} budget {result.budget:g}"
    figure.text(0.095, 0.94, comparison, fontsize=13, fontweight="bold", va="center")
    setting = f"preset {result.preset}, {result.samples} episodes, limit {result.limit:g}"
    figure.text(0.985, 0.94, setting, color=SOFT, va="center", ha="right")


def _atom(axes: "Axes", label: str, mass: float, reference: float, color: str) -> None:
    axes.bar([0], [mass], width=0.7, color=color)
    if reference > 0.0:
        axes.hlines(reference, -0.45, 0.45, color=_REFERENCE, linewidth=1.8)
    text = f"{mass:.0%}" if mass in (0.0, 1.0) else f"{mass:.1%}"
    axes.text(0, max(mass, reference) + 0.02, text, ha="center", fontsize=9)
    axes.set(xlim=(-0.6, 0.6), ylim=(0.0, 1.12), xticks=[0], xticklabels=[label], yticks=[])
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="x", length=0)


def _interior(axes: "Axes", certificate: Certificate, result: Result, x: Costs) -> None:
    inside = x[(x > certificate.zero_tol) & (x < 1.0 - certificate.one_tol)]
    grid = np.linspace(0.0, 1.0, 501)
    mass = 1.0 - certificate.zero_mass - certificate.one_mass
    density = mass * certificate.interior.pdf(np.clip(grid, 1e-3, 1.0 - 1e-3))
    bins = np.linspace(0.0, 1.0, 1 + int(np.clip(2.0 * np.sqrt(max(inside.size, 1)), 25, 80)))
    heights = np.histogram(inside, bins)[0] / (result.samples * np.diff(bins))
    axes.stairs(heights, bins, fill=True, color=_COSTS, label="episodes between the atoms")
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
    axes.set_xticks(ticks, [f"{tick * result.scale:g}" for tick in ticks])
    limit = result.limit / result.scale
    axes.axvline(limit, color=SOFT, linewidth=1.0, linestyle=":")
    side = "right" if limit > 0.5 else "left"
    axes.text(limit, 0.985 * top, " limit ", color=SOFT, fontsize=9, va="top", ha=side)

    risk = axes.twinx()
    label = f"risk function (0.5 at {_threshold(certificate, result):g})"
    risk.plot(grid, certificate.risk(grid), color=_RISK, linewidth=1.6, linestyle="--", label=label)
    risk.set(ylim=(0.0, 1.12), yticks=[])
    risk.spines[["left", "right"]].set_visible(False)
    handles = [*axes.get_legend_handles_labels()[0], *risk.get_legend_handles_labels()[0]]
    axes.legend(
        handles=handles,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=3,
        frameon=False,
        fontsize=9,
        handlelength=1.6,
        columnspacing=1.4,
    )


def _terms(axes: "Axes", result: Result) -> None:
    bars = _others(result)
    if result.interior_term is not None:
        bottom = 0.0
        for name, height in (
            ("reference", result.reference_risk),
            ("atoms", result.discrete_term),
            ("interior", result.interior_term),
        ):
            axes.bar([0], [height], bottom=bottom, width=0.62, color=TERM_COLORS[name], label=name)
            bottom += height
        bars = [(_STEIN, bottom, result.decided_by == "stein_bound"), *bars]
    top = 1.14 * max(result.budget, *(height for _, height, _ in bars))
    for position, (name, height, decides) in enumerate(bars):
        if name != _STEIN:
            color = (SAFE if result.safe else UNSAFE) if decides else _COSTS
            axes.bar([position], [height], width=0.62, color=color)
        # Labels that the budget line would cross are placed above it.
        base = result.budget if 0.0 <= result.budget - height < 0.06 * top else height
        axes.text(position, base + 0.012 * top, _number(height), ha="center", fontsize=9)
    axes.axhline(result.budget, color=INK, linewidth=1.4)
    label = f"budget {result.budget:g}"
    axes.text(len(bars) + 0.22, result.budget + 0.012 * top, label, fontsize=9, va="bottom", ha="right")
    axes.set(xlim=(-0.5, len(bars) + 0.25), ylim=(0.0, top), ylabel="risk")
    axes.set_xticks(range(len(bars)), [name for name, _, _ in bars])
    for tick, (_, _, decides) in zip(axes.get_xticklabels(), bars, strict=True):
        tick.set_fontweight("bold" if decides else "normal")
    axes.tick_params(axis="x", length=0)
    if result.interior_term is None:
        return
    axes.legend(
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=3,
        frameon=False,
        fontsize=9,
        handlelength=1.0,
        columnspacing=1.0,
        handletextpad=0.4,
    )


def _others(result: Result) -> list[tuple[str, float, bool]]:
    """Return the bars beside the Stein bound: name, height, and whether the gate used it."""
    if result.delta is not None:
        return [("direct\nbound", result.bound, True)]
    if result.decided_by == "mean_risk":
        return [("mean\nrisk", result.empirical_risk, True)]
    if result.null_quantile is not None:
        return [("minus\nnoise", result.decision_value, True)]
    return [("mean\nrisk", result.empirical_risk, result.guarded)]


def _number(value: float) -> str:
    return "≈ 0" if 0.0 < value < 5e-5 else f"{value:.3g}"


def _threshold(certificate: Certificate, result: Result) -> float:
    """Return the cost at which the risk function passes one half."""
    grid = np.linspace(0.0, 1.0, 2001)
    crossing = int(np.searchsorted(np.asarray(certificate.risk(grid)), 0.5))
    return float(f"{grid[min(crossing, grid.size - 1)] * result.scale:.4g}")
