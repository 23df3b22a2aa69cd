"""Write the tables and figures of docs/reproduction.md and of the README from results/kept.

``python docs/make_reproduction_page.py`` fills both pages and draws the figures; with ``--text`` the pages
alone. ``python results/keep_grid.py GRID RUNS`` keeps the runs.
"""

import sys
from pathlib import Path

from blocks import fill
from claims import Finding
from kept import KEPT, METHODS, TASKS, Cell, Row, markdown, numbers, rows, table1
from paper_claims import found
from paper_settings import settings
from reasons import reasons

from steingate.report.curves_figure import save_curves_figure
from steingate.report.evidence import weigh
from steingate.report.loading import Run, cut, load_runs
from steingate.report.published import published_numbers
from steingate.report.report_tables import task

ROOT = Path(__file__).parents[1]
PAGE, README, FIGURES = ROOT / "docs" / "reproduction.md", ROOT / "README.md", ROOT / "docs" / "figures"
ORDER = (
    "table1", "allowance", "limits", "references", "samples", "circle2", "velocity", "baselines",
    "cpo-variants", "gates", "goal", "passes", "unseen",
)  # fmt: skip
MILLION = 1_000_000


def differences() -> str:
    """Return, in words, where ours and the paper's are further apart than both intervals."""
    cells = [each for each in table1() if each.paper is not None and each.seeds > 1]
    by_epoch = [
        f"- {task(each.env)}, {each.algo}: {what} {ours}, the paper {theirs}."
        for each in cells
        for what, ours, theirs in (
            ("feasible epochs", each.epochs.text(3), f"{each.paper_epochs.value:.3f}"),
            ("return", each.epoch_return.text(1), f"{each.paper_return.value:.2f}"),
        )
        if what in each.differs
    ]
    by_episode = [
        f"- {task(each.env)}, {each.algo}: {each.episodes.text(3)}, the paper {each.paper.feasibility:.3f}."
        for each in cells
        if each.paper is not None and each.differs_by_episode
    ]
    rows_by_epoch = sum(bool(each.differs) for each in cells)
    return "\n\n".join(
        [
            _counted("by epoch, as the paper's table seems to be", rows_by_epoch, len(cells), by_epoch),
            _counted(
                "by episode, as its text defines tail feasibility", len(by_episode), len(cells), by_episode
            ),
        ]
    )


def _counted(how: str, count: int, of: int, lines: list[str]) -> str:
    if not lines:
        return f"Counted {how}, none of its {of} rows."
    return "\n".join([f"Counted {how}, {count} of its {of} rows:", "", *lines])


def main_table() -> str:
    """Return Table 1 with both readings, intervals, and the paper's numbers, the tasks one below another."""
    headings = (
        "method", "seeds", "feasible epochs", "paper", "feasible return", "paper", "feasible episodes",
        "feasible return",
    )  # fmt: skip
    lines = []
    for env in TASKS:
        lines.append([f"**{task(env)}**", *[""] * (len(headings) - 1)])
        lines += [_main_line(each) for each in table1() if each.env == env]
    return markdown(headings, lines)


def _main_line(each: Cell) -> list[str]:
    paper = ("–", "–") if each.paper is None else (f"{each.paper.feasibility:.3f}", f"{each.paper.ret:.2f}")
    marks = ["**" if what in each.differs else "" for what in ("feasible epochs", "return")]
    return [
        each.algo, str(each.seeds), f"{marks[0]}{each.epochs.text(3)}{marks[0]}", paper[0],
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
    returns = ["–" if each is None else f"{each.ret:.2f} · –" for each in paper]
    lines.append(["*the paper's steingate, feasible return*", "6", *returns])
    return markdown(("return · episodes over the limit", "seeds", *map(task, TASKS)), lines)


def _pair(ret: float, over: float) -> str:
    return f"{ret:.1f} · {100 * over:.1f} %"


def claims() -> str:
    """Return what the paper says of its figures beside what the runs say."""
    lines = [
        [each.where, each.claim, _verdict(each), each.numbers, "" if each.holds == "yes" else each.why]
        for each in found()
    ]
    if not lines:
        return "No grid is complete yet."
    return markdown(("where", "the paper", "ours agrees", "our numbers", "why not"), lines, left=5)


def _verdict(each: Finding) -> str:
    counted = f"in part ({sum(each.parts)} of {len(each.parts)})"
    return {"yes": "yes", "in part": counted, "no": "**no**"}[each.holds]


def settings_table() -> str:
    """Return the paper's tables of settings beside ours."""
    lines = [
        [each.method, f"`{each.paper}`", _plain(each.theirs), f"`{each.name}`", _plain(each.ours)]
        for each in settings()
    ]
    return markdown(("method", "the paper", "its value", "here", "value"), lines, left=2)


def _plain(value: float) -> str:
    return str(value) if isinstance(value, bool) else f"{value:g}"


def grid_table(*grids: str, more: list[Row] | None = None) -> str:
    """Return the kept runs of some grids, a line each, and further rows."""
    headings = (
        "grid", "what", "task", "method", "seed", "steps", "return", "cost", "over the limit",
        "feasible epochs",
    )  # fmt: skip
    found = [row for grid in grids for row in rows(grid=grid)]
    lines = [_grid_line(row) for row in [*found, *(more or [])]]
    return markdown(headings, lines, left=4) if lines else "Not run yet."


def first_million() -> list[Row]:
    """Return what SteinGate has done on the navigation tasks after a million of its ten."""
    return [row | {"kind": "first million"} for row in rows("first_million.csv")]


def _grid_line(row: Row) -> list[str]:
    over = 100.0 * (1.0 - float(row["feasible_by_episode"]))
    return [
        row["grid"], row["kind"] or "–", task(row["env"]), row["algo"], row["seed"],
        f"{int(row['steps']) / 1e6:g}M", f"{float(row['return']):.1f}", f"{float(row['cost']):.1f}",
        f"{over:.1f} %", f"{float(row['feasible_by_epoch']):.2f}",
    ]  # fmt: skip


def hours() -> str:
    """Return how long the runs took."""
    grids = [*ORDER, *sorted({row["grid"] for row in rows()} - set(ORDER))]
    lines = []
    for name, group in [*((grid, rows(grid=grid)) for grid in grids), ("all", rows())]:
        spent = float(numbers(group, "minutes").sum()) / 60.0
        steps = sum(int(row["steps"]) for row in group) / 1e6
        lines.append([name, str(len(group)), f"{steps:,.0f}M", f"{spent:.1f}", f"{spent / 2:.1f}"])
    return markdown(("grid", "runs", "steps", "hours of runs", "hours on the clock, two at a time"), lines)


BLOCKS = {
    "differences": differences,
    "reasons": reasons,
    "table1": main_table,
    "claims": claims,
    "ablations": lambda: grid_table("limits", "references", "samples", "circle2"),
    "short grids": lambda: grid_table("velocity", "baselines", "cpo-variants", more=first_million()),
    "gates": lambda: grid_table("gates"),
    "settings": settings_table,
    "hours": hours,
}


def page(text: str) -> str:
    """Return docs/reproduction.md with its blocks filled."""
    return fill(text, {name: write() for name, write in BLOCKS.items()})


def readme(text: str) -> str:
    """Return the README with its table filled."""
    return fill(text, {"results": short_table()})


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
