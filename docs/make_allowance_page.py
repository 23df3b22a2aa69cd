"""Fill the table of docs/allowance.md from results/ and draw its figure: python docs/make_allowance_page.py.

The figure has a panel per task: return against the share of episodes over the limit, in the last fifth of
training, a point per kept run with the 95 % interval of the share.
"""

import csv
from pathlib import Path

from blocks import fill
from make_safety_figure import colours_of
from matplotlib import rc_context
from matplotlib.figure import Figure

from steingate.core.bounds import clopper_pearson_upper
from steingate.report.report_tables import task
from steingate.report.style import STYLE

PAGE = Path(__file__).with_name("allowance.md")
FIGURE = Path(__file__).with_name("figures") / "frontier.png"
RESULTS = Path(__file__).parents[1] / "results"
PAPER = {
    "PointGoal1": 9.77,
    "PointCircle1": 46.15,
    "CarGoal1": 12.65,
    "CarCircle1": 16.77,
}  # SteinGate's return
LENGTH = {"PointGoal1": 1000, "PointCircle1": 500, "CarGoal1": 1000, "CarCircle1": 500}  # steps of an episode


def rows(path: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file of the results."""
    with open(RESULTS / path, newline="") as file:
        return list(csv.DictReader(file))


def interval(row: dict[str, str]) -> tuple[float, float]:
    """Return the exact 95 % interval of the share of episodes over the limit in a run's last fifth."""
    count = int(row["steps"]) // 5 // LENGTH[task(row["env"])]
    over = round(float(row["over_limit"]) * count)
    low = 1.0 - clopper_pearson_upper(count - over, count, 0.025) if over else 0.0
    return low, clopper_pearson_upper(over, count, 0.025)


def table() -> str:
    """Return the runs of the allowance beside the paper's return."""
    ends = {(row["env"], row["seed"]): row for row in rows("allowance_runs/endpoints.csv")}
    names = ("task", "seed", "return", "paper's SteinGate", "mean cost", "over the limit", "feasible epochs")
    names = (*names, "without noise: return", "over", "at most")
    lines = [f"| {' | '.join(names)} |", "|---" + "|---:" * (len(names) - 1) + "|"]
    kept = sorted(rows("allowance_runs/summary.csv"), key=lambda row: list(PAPER).index(task(row["env"])))
    for row in kept:
        end = ends[row["env"], row["seed"]]
        cells = [
            task(row["env"]), row["seed"], f"{float(row['return']):.1f}", f"{PAPER[task(row['env'])]:.2f}",
            f"{float(row['cost']):.1f}", f"{float(row['over_limit']):.3f}",
            f"{float(row['feasible_by_epoch']):.2f}", f"{float(end['return']):.1f}", end["over_limit"],
            end["over_bound"],
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(path: Path) -> None:
    """Draw return against the share of episodes over the limit, a panel per task."""
    kept = [*rows("paper_runs/summary.csv"), *rows("allowance_runs/summary.csv")]
    colours = colours_of(sorted({row["algo"] for row in kept}))
    with rc_context(STYLE):
        figure = Figure(figsize=(9.6, 6.4), layout="constrained")
        for panel, (name, ret) in zip(figure.subplots(2, 2).flat, PAPER.items(), strict=True):
            for row in kept:
                if task(row["env"]) != name:
                    continue
                over, (low, high) = 100.0 * float(row["over_limit"]), interval(row)
                arms = [[over - 100.0 * low], [100.0 * high - over]]
                x, y, colour = [over], [float(row["return"])], colours[row["algo"]]
                panel.errorbar(x, y, xerr=arms, fmt="o", ms=7, color=colour, label=row["algo"])
            panel.axhline(ret, color="black", lw=1.0, ls=(0, (5, 3)))
            panel.annotate(
                "return of the paper's SteinGate", (1.0, ret), xycoords=("axes fraction", "data"),
                xytext=(-4, 3), textcoords="offset points", ha="right", fontsize=8,
            )  # fmt: skip
            panel.set_title(name, loc="left", fontweight="bold", fontsize=11)
            panel.set_xlim(left=0.0)
            panel.margins(y=0.15)
            panel.set_ylim(bottom=min(panel.get_ylim()[0], 0.8 * panel.get_ylim()[1]))
            panel.set_xlabel("episodes over the limit, %")
            panel.set_ylabel("return")
        found = {}
        for panel in figure.axes:
            marks, labels = panel.get_legend_handles_labels()
            found |= dict(zip(labels, marks, strict=True))
        shown = (list(found.values()), list(found))
        figure.legend(*shown, loc="outside lower center", ncols=len(found), frameon=False)
        figure.savefig(path, dpi=110)


def page(text: str) -> str:
    """Return the page with its table filled."""
    return fill(text, {"allowance": table()})


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    draw(FIGURE)
