"""Fill the table of docs/allowance.md from results/kept: python docs/make_allowance_page.py.

Its figures are drawn by docs/make_reproduction_page.py.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from kept import TASKS, Row, fill, markdown, numbers, rows

from steingate.report.published import published_numbers
from steingate.report.report_tables import task

PAGE = Path(__file__).with_name("allowance.md")
HEADINGS = (
    "task", "seed", "return", "paper's SteinGate", "mean cost", "over the limit", "feasible epochs",
    "highest mean cost", "without noise: return", "over", "at most",
)  # fmt: skip


def table() -> str:
    """Return the runs of the allowance, the median of each task in bold, beside the paper's return."""
    lines = []
    for env in TASKS:
        runs = [run | end_of(run) for run in rows(grid="allowance", env=env)]
        if not runs:
            continue
        lines += [cells(run) for run in runs]
        if len(runs) > 1:
            lines.append([f"**{cell}**" for cell in cells(median(runs))])
    return markdown(HEADINGS, lines)


def end_of(run: Row) -> Row:
    """Return what the last policy of a run does without noise."""
    (end,) = rows("endpoints.csv", grid="allowance", env=run["env"], seed=run["seed"])
    share = int(end["over"]) / int(end["episodes"])
    return {"end_return": end["return"], "end_over": str(share), "end_at_most": end["at_most"]}


def median(runs: list[Row]) -> Row:
    """Return the medians over seeds."""
    names = [name for name in runs[0] if name not in ("grid", "kind", "env", "algo", "seed")]
    medians = {name: str(np.median(numbers(runs, name))) for name in names}
    return runs[0] | medians | {"seed": "median"}


def cells(run: Row) -> list[str]:
    """Return one line of the table."""
    paper = published_numbers(run["env"], "steingate")
    return [
        task(run["env"]),
        run["seed"],
        f"{float(run['return']):.1f}",
        "–" if paper is None else f"{paper.ret:.2f}",
        f"{float(run['cost']):.1f}",
        f"{1.0 - float(run['feasible_by_episode']):.3f}",
        f"{float(run['feasible_by_epoch']):.2f}",
        f"{float(run['highest_mean_cost']):.0f}",
        f"{float(run['end_return']):.1f}",
        f"{float(run['end_over']):.3f}",
        f"{float(run['end_at_most']):.3f}",
    ]


def page(text: str) -> str:
    """Return the page with its table filled."""
    return fill(text, {"allowance": table})


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
