"""Fill the tables of docs/learning.md from the files in results/: python docs/make_learning_page.py."""

from pathlib import Path
from statistics import mean, stdev

from blocks import fill
from kept import markdown, rows

from steingate.report.report_tables import task

PAGE = Path(__file__).with_name("learning.md")
RESULTS = Path(__file__).parents[1] / "results"
TASK = "SafetyPointGoal1-v0"


def held_out() -> str:
    """Return the table of predicted and realized changes of cost."""
    lines = [
        [
            f"`{row['algo']}`, {task(row['env'])}", row["predicted"], row["predicted_elsewhere"],
            f"{row['realized']} ± {row['error']}",
        ]
        for row in rows("../learning/held_out.csv")
    ]  # fmt: skip
    return markdown(("policy", "predicted", "by other samples", "realized"), lines)


def endpoints() -> str:
    """Return the table of trained policies on PointGoal1 beside OmniSafe's: means, deviations over seeds."""
    ends = [row for row in rows("endpoints.csv", env=TASK) if row["kind"] != "corrected"]
    lines = []
    for theirs in rows("../omnisafe_endpoints.csv", env=TASK):
        own = [row for row in ends if row["algo"] == theirs["algo"]]
        if own:
            ours = [spread([float(row[name]) for row in own]) for name in ("return", "cost")]
            known = [f"{theirs[name]} ± {theirs[f'{name}_sd']}" for name in ("return", "cost")]
            lines.append([f"`{theirs['algo']}`", str(len(own)), *ours, *known])
    headings = ("method, PointGoal1", "seeds", "return", "cost", "OmniSafe's return", "OmniSafe's cost")
    return markdown(headings, lines)


def spread(values: list[float]) -> str:
    """Return the mean, with the deviation if there are several values."""
    return f"{mean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


def page(text: str) -> str:
    """Return the page with its tables filled."""
    kept = ("corrected", "published", "options")
    tables = {name: (RESULTS / "learning" / f"{name}.md").read_text(encoding="utf-8") for name in kept}
    kept_tables = {name: table.strip() for name, table in tables.items()}
    return fill(text, {**kept_tables, "held_out": held_out(), "endpoints": endpoints()})


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
