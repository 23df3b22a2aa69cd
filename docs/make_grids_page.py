"""Fill docs/grids.md with what results/bench_grid.csv says: ``python docs/make_grids_page.py``."""

import csv
from pathlib import Path

from blocks import fill

PAGE = Path(__file__).with_name("grids.md")
MEASURED = Path(__file__).parents[1] / "results" / "bench_grid.csv"


def measured(file: Path = MEASURED) -> str:
    """Return the table of the measurement, or a sentence while there is none."""
    if not file.exists():
        return "It was not measured here yet."
    with open(file, newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    table = [
        "| task, method, steps | runs on cores | one after the other | side by side | faster (rounds) |",
        "|---|---|---:|---:|---:|",
    ]
    for row in rows:
        table.append(
            f"| {row['task']}, {row['algo']}, {int(row['steps']):,} | {row['runs']} on {row['cores']} "
            f"| {float(row['one_after_the_other_s']):.1f} s | {float(row['side_by_side_s']):.1f} s "
            f"| {float(row['ratio']):.2f} ({float(row['ratio_low']):.2f}–{float(row['ratio_high']):.2f}) |"
        )
    return "\n".join(table)


def page(text: str) -> str:
    """Return the page with its table filled."""
    return fill(text, {"side by side": measured()})


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
