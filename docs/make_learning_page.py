"""Fill the tables of docs/learning.md from the files in results/: python docs/make_learning_page.py."""

import csv
from pathlib import Path

from blocks import fill

PAGE = Path(__file__).with_name("learning.md")
RESULTS = Path(__file__).parents[1] / "results"


def rows(path: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file of the results."""
    with open(RESULTS / path, newline="") as file:
        return list(csv.DictReader(file))


def held_out() -> str:
    """Return the table of predicted and realised changes of cost."""
    lines = [
        "| policy | predicted | by other samples | realised |",
        "|---|---:|---:|---:|",
    ]
    for row in rows("learning/held_out.csv"):
        cells = (row["predicted"], row["predicted_elsewhere"], f"{row['realised']} ± {row['error']}")
        lines.append(f"| `{row['algo']}`, {row['env'][6:-3]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def endpoints() -> str:
    """Return the table of trained policies beside OmniSafe's."""
    lines = [
        "| method, PointGoal1 | return | cost | OmniSafe's return | OmniSafe's cost |",
        "|---|---:|---:|---:|---:|",
    ]
    for row in rows("paper_runs/endpoints.csv"):
        if row["omnisafe_return"]:
            theirs = (
                f"{row['omnisafe_return']} ± {row['omnisafe_return_sd']}",
                f"{row['omnisafe_cost']} ± {row['omnisafe_cost_sd']}",
            )
            lines.append(f"| `{row['algo']}` | {row['return']} | {row['cost']} | {' | '.join(theirs)} |")
    return "\n".join(lines)


def page(text: str) -> str:
    """Return the page with its tables filled."""
    kept = ("corrected", "published", "options")
    tables = {name: (RESULTS / "learning" / f"{name}.md").read_text(encoding="utf-8") for name in kept}
    kept_tables = {name: table.strip() for name, table in tables.items()}
    return fill(text, {**kept_tables, "held_out": held_out(), "endpoints": endpoints()})


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
