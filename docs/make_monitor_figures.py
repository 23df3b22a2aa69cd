"""Write the numbers (results/monitor_*.csv), the figure and the tables of the page about monitoring.

``python docs/make_monitor_figures.py`` computes everything anew (about a minute); ``--check`` only compares
the tables on the page with the stored numbers. Nothing is simulated: the chance that a rule has ever been
wrong is summed over all numbers of violations, step by step.
"""

import csv
import sys
from collections.abc import Sequence
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from blocks import fill
from scipy.stats import binom

from steingate.monitoring.bets import below

DOCS = Path(__file__).resolve().parent
RESULTS = DOCS.parent / "results"
PAGE = DOCS / "monitoring.md"
PEEKING, PRICE = RESULTS / "monitor_peeking.csv", RESULTS / "monitor_price.csv"

DELTA, EPISODES = 0.05, 10_000
RISKS = (0.02, 0.1, 0.3)
LOOKS = sorted({100, 1000, *(round(float(t)) for t in np.geomspace(1, EPISODES, 60))})
PRICES = ((0.1, (0.0, 0.01, 0.03, 0.05)), (0.05, (0.0, 0.01, 0.03)))

Array = npt.NDArray[np.float64]


def ever(p: float, first: npt.NDArray[np.int64], episodes: int) -> Array:
    """Return the chance of having stopped by each time, if a rule stops at ``first[t]`` violations or fewer.

    ``first[t]`` is the largest number of violations among t episodes at which the rule stops, or -1.
    """
    alive, done = np.zeros(episodes + 2), np.zeros(episodes + 1)
    alive[0] = 1.0
    for t in range(1, episodes + 1):
        alive[1 : t + 1] = alive[1 : t + 1] * (1 - p) + alive[:t] * p
        alive[0] *= 1 - p
        reach = int(first[t]) + 1
        done[t] = done[t - 1] + alive[:reach].sum()
        alive[:reach] = 0.0
    return done


def fixed_rule(budget: float, episodes: int) -> npt.NDArray[np.int64]:
    """Return, for each n, the most violations at which Clopper-Pearson's bound is below the budget."""
    n = np.arange(episodes + 1)
    return np.asarray(binom.ppf(DELTA, n, budget), dtype=np.int64) - 1


def monitor_rule(budget: float, episodes: int) -> npt.NDArray[np.int64]:
    """Return, for each n, the most violations at which the monitor's bound is below the budget."""
    mixture, threshold = below(budget), -log(DELTA)
    rule = np.full(episodes + 1, -1)
    over = 0
    for t in range(1, episodes + 1):  # one violation more is allowed at a time, if at all
        while mixture.level(over, t - over) >= threshold:
            rule[t], over = over, over + 1
        if over:
            over -= 1
            rule[t] = over if mixture.level(over, t - over) >= threshold else rule[t]
    return rule


def peeking() -> list[dict[str, Any]]:
    """Return how often each rule has been wrong by some times, when it is looked at after every episode."""
    rows = []
    for p in RISKS:
        fixed = ever(p, fixed_rule(p, EPISODES), EPISODES)
        watched = ever(p, monitor_rule(p, EPISODES), EPISODES)
        rows += [{"risk": p, "episodes": t, "fixed_n": fixed[t], "monitor": watched[t]} for t in LOOKS]
    return rows


def price() -> list[dict[str, Any]]:
    """Return how many episodes each rule needs: the monitor's quantiles, and n chosen for the same chance."""
    rows = []
    for budget, risks in PRICES:
        episodes = 2500
        watched, fixed = monitor_rule(budget, episodes), fixed_rule(budget, episodes)
        for risk in risks:
            done = ever(risk, watched, episodes)
            power = binom.cdf(fixed, np.arange(episodes + 1), risk) * (fixed >= 0)
            row: dict[str, Any] = {"budget": budget, "risk": risk}
            for name, level in (("median", 0.5), ("q90", 0.9)):
                row[f"monitor_{name}"] = int(np.searchsorted(done, level))
                row[f"fixed_{name}"] = int(np.argmax(power >= level))
            rows.append(row)
    return rows


def write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows as CSV with four digits."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})


def read(path: Path) -> list[dict[str, float]]:
    """Return the rows of a CSV file as numbers."""
    with path.open(newline="") as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def numbers() -> dict[str, str]:
    """Return the tables of the page, from the stored numbers."""
    rows = read(PEEKING)
    wrong = [
        "| true risk | rule | 100 looks | 1000 looks | 10,000 looks |",
        "| --- | --- | --- | --- | --- |",
    ]
    for risk in RISKS:
        for rule, title in (("fixed_n", "bound for fixed n"), ("monitor", "monitor")):
            cells = []
            for t in (100, 1000, 10_000):
                near = [row for row in rows if row["risk"] == risk and row["episodes"] <= t]
                cells.append(f"{near[-1][rule]:.1%}")
            wrong.append(f"| {risk:g} | {title} | {' | '.join(cells)} |")
    cost = [
        "| budget | true risk | monitor, median / 90 % | fixed n, power 50 / 90 % |",
        "| --- | --- | --- | --- |",
    ]
    for row in read(PRICE):
        cost.append(
            f"| {row['budget']:g} | {row['risk']:g} | {row['monitor_median']:.0f} / {row['monitor_q90']:.0f} "
            f"| {row['fixed_median']:.0f} / {row['fixed_q90']:.0f} |"
        )
    return {"peeking": "\n".join(wrong), "price": "\n".join(cost)}


def with_numbers(page: str) -> str:
    """Return the page with its tables replaced by the stored numbers."""
    return fill(page, numbers())


def draw(path: Path) -> None:
    """Draw the error of repeated looks, and what the monitor costs."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from steingate.report.style import FAINT, LIMIT, STYLE

    colors = dict(zip(RISKS, ("#9db4c8", "#2f6f9f", "#22303c"), strict=True))
    with rc_context(STYLE):
        figure = Figure(figsize=(11.0, 4.3), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.5, 1.0))
        rows = read(PEEKING)
        for risk in RISKS:
            mine = [row for row in rows if row["risk"] == risk]
            episodes = [row["episodes"] for row in mine]
            left.plot(
                episodes, [row["fixed_n"] for row in mine], color=colors[risk], linewidth=2.0,
                label=f"bound for fixed n, risk {risk:g}",
            )  # fmt: skip
            left.plot(
                episodes, [row["monitor"] for row in mine], color="#2a9d8f", linewidth=1.6, alpha=0.9,
                linestyle={0.02: ":", 0.1: "-", 0.3: "--"}[risk], label=f"monitor, risk {risk:g}",
            )  # fmt: skip
        left.axhline(DELTA, color=LIMIT, linewidth=1.2)
        left.text(1.1, DELTA + 0.008, f"promised: {DELTA:g}", fontsize=9, color=LIMIT)
        left.set(xscale="log", xlabel="episodes, with a look after each", xlim=(1, EPISODES), ylim=(0, None))
        left.set_ylabel("chance that some bound was wrong")
        left.legend(fontsize=9, loc="upper left", framealpha=1.0, edgecolor="white")
        left.set_title("Looking again and again", loc="left", fontsize=11)
        left.grid(color=FAINT, linewidth=0.6)
        rows = [row for row in read(PRICE) if row["budget"] == 0.1]
        place = np.arange(len(rows))
        for shift, rule, color in ((-0.2, "fixed", "#9db4c8"), (0.2, "monitor", "#2a9d8f")):
            heights = [row[f"{rule}_median"] for row in rows]
            label = "fixed n, chosen beforehand" if rule == "fixed" else "monitor"
            right.bar(place + shift, heights, 0.38, color=color, label=label)
            for x, height in zip(place, heights, strict=True):
                right.text(x + shift, height + 2, f"{height:.0f}", ha="center", fontsize=9)
        right.set_xticks(place, [f"{row['risk']:g}" for row in rows])
        right.set(xlabel="true risk", ylabel="episodes, median")
        right.legend(frameon=False, fontsize=9, loc="upper left")
        right.set_title("What it costs, for a budget of 0.1", loc="left", fontsize=11)
        figure.savefig(path, dpi=150)


def main() -> int:
    """Write numbers, figure and tables, or compare the tables when asked to check."""
    if "--check" in sys.argv[1:]:
        page = PAGE.read_text()
        return int(with_numbers(page) != page)
    write(PEEKING, peeking())
    write(PRICE, price())
    draw(DOCS / "figures" / "monitor_peeking.png")
    if PAGE.exists():
        PAGE.write_text(with_numbers(PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
