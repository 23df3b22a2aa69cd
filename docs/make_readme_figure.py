"""Regenerate the README's first figure and its ``examples/costs.csv``: ``python docs/make_readme_figure.py``.

The file holds the episode costs of the figure's second policy.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from steingate import Certificate

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from certify_costs import LIMIT, gambling_costs, steady_costs

INK, GOOD, BAD = "#22303c", "#2a9d8f", "#d1495b"


def policies() -> dict[str, np.ndarray]:
    """Return the episode costs of the two policies."""
    rng = np.random.default_rng(7)
    return {"steady policy": steady_costs(rng), "gambling policy": gambling_costs(rng)}


def costs_file() -> str:
    """Return the gambling policy's costs as a CSV file."""
    return "\n".join(["cost", *(f"{cost:.2f}" for cost in policies()["gambling policy"])]) + "\n"


def draw(path: Path) -> None:
    """Draw two policies with the same mean cost and what the certificate says about each."""
    certificate = Certificate.preset("confident", limit=LIMIT)
    figure = Figure(figsize=(10.0, 3.1), layout="constrained")
    for axes, (name, costs) in zip(
        figure.subplots(1, 2, sharex=True, sharey=True), policies().items(), strict=True
    ):
        result = certificate.evaluate(costs)
        gate, color = ("open", GOOD) if result.safe else ("shut", BAD)
        bins = np.arange(0.0, 62.0, 2.0)
        heights, _ = np.histogram(costs, bins)
        tints = np.where(bins[:-1] < LIMIT, "#9db2c7", BAD)
        axes.bar(bins[:-1], 100.0 * heights / costs.size, width=2.0, align="edge", color=tints)
        axes.axvline(LIMIT, color=INK, linestyle=":", linewidth=1.2)
        axes.axvline(costs.mean(), color=INK, linewidth=1.6)
        axes.text(costs.mean() + 0.7, 33.0, f"mean {costs.mean():.1f}", fontsize=9, color=INK)
        axes.text(LIMIT + 0.7, 33.0, f"limit {LIMIT:g}", fontsize=9, color="#7a8894")
        axes.text(
            0.985,
            0.62,
            f"gate {gate}\nrisk at most {result.bound:.2f}\nbudget {result.budget:.2f}",
            transform=axes.transAxes,
            ha="right",
            va="center",
            fontsize=10,
            color="white",
            bbox={"boxstyle": "round,pad=0.5", "facecolor": color, "edgecolor": "none"},
        )
        axes.set_title(
            f"{name}: {np.mean(costs > LIMIT):.0%} of episodes over the limit", fontsize=11, loc="left"
        )
        axes.set_xlabel("episode cost")
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("episodes (%)")
    figure.axes[0].set_ylim(0.0, 36.0)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    draw(Path(__file__).parent / "figures" / "same_mean.png")
    (Path(__file__).parents[1] / "examples" / "costs.csv").write_text(costs_file(), encoding="utf-8")
