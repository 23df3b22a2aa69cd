"""Write the tables and figures of docs/reproduction.md and of the README from results/kept.

``python docs/make_reproduction_page.py`` fills both pages and draws the figures; with ``--text`` the pages
alone. ``python results/keep_grid.py GRID RUNS`` keeps the runs.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from blocks import fill
from kept import KEPT, METHODS, TASKS, Cell, Row, markdown, numbers, rows, table1
from paper_claims import found

from steingate.report.curves_figure import save_curves_figure
from steingate.report.evidence import weigh
from steingate.report.loading import Run, load_runs
from steingate.report.published import published_numbers
from steingate.report.report_tables import task

ROOT = Path(__file__).parents[1]
PAGE, README, FIGURES = ROOT / "docs" / "reproduction.md", ROOT / "README.md", ROOT / "docs" / "figures"
ORDER = (
    "table1", "allowance", "limits", "references", "samples", "circle2", "velocity", "baselines",
    "cpo-variants", "gates", "unseen",
)  # fmt: skip
MILLION = 1_000_000


def differences() -> str:
    """Return, in words, where ours and the paper's are further apart than both intervals."""
    cells = [each for each in table1() if each.paper is not None]
    lines = []
    for each in cells:
        for what in each.differs:
            ours, theirs = (
                (each.epochs.text(3), f"{each.paper_epochs.value:.3f}")
                if what == "feasible epochs"
                else (each.epoch_return.text(1), f"{each.paper_return.value:.1f}")
            )
            lines.append(f"- {task(each.env)}, {each.algo}: {what} {ours}, the paper {theirs}.")
    compared = sum(each.seeds > 1 for each in cells)
    if not lines:
        return f"None of the {compared} rows with at least two seeds."
    rows_that_differ = sum(bool(each.differs) for each in cells)
    return "\n".join([f"{rows_that_differ} of the {compared} rows with at least two seeds:", "", *lines])


def main_table() -> str:
    """Return Table 1 with both readings, intervals, and the paper's numbers."""
    headings = (
        "task", "method", "seeds", "feasible epochs", "paper", "return in them", "paper", "feasible episodes",
        "return in them",
    )  # fmt: skip
    return markdown(headings, [_main_line(each) for each in table1()], left=2)


def _main_line(each: Cell) -> list[str]:
    paper = ("–", "–") if each.paper is None else (f"{each.paper.feasibility:.3f}", f"{each.paper.ret:.2f}")
    marks = ["**" if what in each.differs else "" for what in ("feasible epochs", "return")]
    return [
        task(each.env), each.algo, str(each.seeds), f"{marks[0]}{each.epochs.text(3)}{marks[0]}", paper[0],
        f"{marks[1]}{each.epoch_return.text(1)}{marks[1]}", paper[1], each.episodes.text(3),
        each.episode_return.text(1),
    ]  # fmt: skip


def short_table() -> str:
    """Return the README's table: return and share of episodes over the limit, by method and task."""
    cells = {(each.env, each.algo): each for each in table1()}
    lines = []
    for algo in METHODS:
        own = [cells.get((env, algo)) for env in TASKS]
        counts = sorted({each.seeds for each in own if each is not None})
        seeds = "–".join(map(str, dict.fromkeys((counts[0], counts[-1])))) if counts else "–"
        shown = ["–" if each is None else _pair(each.ret.value, each.over.value) for each in own]
        lines.append([f"**{algo}**" if algo == "allowance" else algo, seeds, *shown])
    paper = [published_numbers(env, "steingate") for env in TASKS]
    returns = ["–" if each is None else f"{each.ret:.1f} · –" for each in paper]
    lines.append(["*the paper's steingate*", "6", *returns])
    return markdown(("return · episodes over the limit", "seeds", *map(task, TASKS)), lines)


def _pair(ret: float, over: float) -> str:
    return f"{ret:.1f} · {100 * over:.1f} %"


def claims() -> str:
    """Return what the paper says of its figures beside what the runs say."""
    words = {True: "yes", False: "**no**", None: "–"}
    lines = [[each.where, each.claim, words[each.holds], each.numbers] for each in found()]
    if not lines:
        return "No grid is complete yet."
    return markdown(("where", "the paper", "ours agrees", "our numbers"), lines, left=4)


def grid_table(*grids: str) -> str:
    """Return the kept runs of some grids, a line each."""
    headings = (
        "grid", "what", "task", "method", "seed", "steps", "return", "cost", "over the limit",
        "feasible epochs",
    )  # fmt: skip
    lines = [_grid_line(row) for grid in grids for row in rows(grid=grid)]
    return markdown(headings, lines, left=4) if lines else "Not run yet."


def _grid_line(row: Row) -> list[str]:
    over = 100.0 * (1.0 - float(row["feasible_by_episode"]))
    return [
        row["grid"], row["kind"] or "–", task(row["env"]), row["algo"], row["seed"],
        f"{int(row['steps']) / 1e6:g}M", f"{float(row['return']):.1f}", f"{float(row['cost']):.1f}",
        f"{over:.1f} %", f"{float(row['feasible_by_epoch']):.2f}",
    ]  # fmt: skip


def hours() -> str:
    """Return how long the runs took."""
    lines = []
    total = 0.0
    for grid in ORDER:
        group = rows(grid=grid)
        if not group:
            continue
        spent = float(numbers(group, "minutes").sum()) / 60.0
        total += spent
        steps = sum(int(row["steps"]) for row in group) / 1e6
        lines.append([grid, str(len(group)), f"{steps:,.0f}M", f"{spent:.1f}", f"{spent / 2:.1f}"])
    runs = len(rows())
    steps = sum(int(row["steps"]) for row in rows()) / 1e6
    lines.append(["all", str(runs), f"{steps:,.0f}M", f"{total:.1f}", f"{total / 2:.1f}"])
    return markdown(("grid", "runs", "steps", "hours of runs", "hours of two cores"), lines)


BLOCKS = {
    "differences": differences,
    "table1": main_table,
    "claims": claims,
    "ablations": lambda: grid_table("limits", "references", "samples", "circle2"),
    "short grids": lambda: grid_table("velocity", "baselines", "cpo-variants"),
    "gates": lambda: grid_table("gates"),
    "hours": hours,
}


def page(text: str) -> str:
    """Return docs/reproduction.md with its blocks filled."""
    return fill(text, {name: write() for name, write in BLOCKS.items()})


def readme(text: str) -> str:
    """Return the README with its table filled."""
    return fill(text, {"results": short_table()})


def cut(run: Run, steps: int) -> Run:
    """Return the first steps of a run."""
    epochs = int(np.sum(run.progress["TotalEnvSteps"] <= steps))
    config = {**run.config, "total_steps": steps}
    return replace(
        run,
        record=run.record | {"config": config},
        progress={name: cells[:epochs] for name, cells in run.progress.items()},
        episodes={name: cells[run.episodes["epoch"] < epochs] for name, cells in run.episodes.items()},
        recent={name: cells[:epochs] for name, cells in run.recent.items()},
        modes=run.modes[:epochs],
    )


def draw() -> None:
    """Draw the figures of the grids that have runs."""
    main = _runs("table1") + _runs("allowance")
    save_curves_figure(weigh(main), FIGURES / "main_results.png")
    stein = [run for run in main if run.algo == "steingate" and run.seed == 0]
    for grid, env in (("limits", TASKS[0]), ("references", TASKS[0]), ("samples", TASKS[2])):
        if own := _runs(grid):
            save_curves_figure(weigh(own + [run for run in stein if run.env == env]), FIGURES / f"{grid}.png")
    for grid in ("circle2", "velocity", "gates"):
        if own := _runs(grid):
            save_curves_figure(weigh(own), FIGURES / f"{grid}.png")
    for grid in ("baselines", "cpo-variants"):
        if own := _runs(grid):
            save_curves_figure(weigh(own + [cut(run, MILLION) for run in stein]), FIGURES / f"{grid}.png")


def _runs(grid: str) -> list[Run]:
    return load_runs([KEPT / grid])[0] if (KEPT / grid).is_dir() else []


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    README.write_text(readme(README.read_text(encoding="utf-8")), encoding="utf-8")
    if "--text" not in sys.argv[1:]:
        draw()
