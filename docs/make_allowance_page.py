"""Fill the table of docs/allowance.md from results/kept and draw its figures.

``python docs/make_allowance_page.py``. The frontier has a panel per task: return against the share of
episodes over the limit, in the last fifth of training, a point per kept run with the 95 % interval.
"""

from pathlib import Path

import numpy as np
from blocks import fill
from kept import KEPT, TASKS, Row, colors_of, markdown, numbers, rows
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from steingate.certificates.bounds import clopper_pearson_upper
from steingate.report.curves_figure import save_curves_figure
from steingate.report.evidence import gather
from steingate.report.published import published_numbers
from steingate.report.report_tables import task
from steingate.report.style import DASHES, STYLE

PAGE = Path(__file__).with_name("allowance.md")
FIGURES = Path(__file__).with_name("figures")
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


def medians() -> dict[str, Row]:
    """Return the medians over the seeds of each task."""
    found = {env: [run | end_of(run) for run in rows(grid="allowance", env=env)] for env in TASKS}
    return {env: median(runs) for env, runs in found.items()}


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


def phases() -> str:
    """Return what the last policies of the Circle tasks earn and cost in parts of an episode."""
    headings = ("task", "seed", "reward of a step: 1st tenth", "2nd", "3rd", "4th", "later", "over")
    headings = (*headings, "their cost: first four tenths", "later")
    lines = []
    for env in TASKS:
        for seed in ("0", "1", "2") if "Circle" in env else ():
            parts = rows("phases.csv", env=env, seed=seed)
            reward, cost = numbers(parts, "reward_per_step"), numbers(parts, "cost_if_over")
            early = "–" if not len(cost) else f"{cost[:4].sum():.0f}"
            late = "–" if not len(cost) else f"{cost[4:].sum():.0f}"
            steps = [f"{value:.3f}" for value in (*reward[:4], reward[4:].mean())]
            over = f"{parts[0]['over']} of {parts[0]['episodes']}"
            lines.append([task(env), seed, *steps, over, early, late])
    return markdown(headings, lines)


def interval(over: int, count: int) -> tuple[float, float]:
    """Return the exact 95 % interval of a share."""
    low = 1.0 - clopper_pearson_upper(count - over, count, 0.025) if over else 0.0
    return low, clopper_pearson_upper(over, count, 0.025)


def draw(path: Path) -> None:
    """Draw return against the share of episodes over the limit, a panel per task."""
    shown = [*rows(grid="table1"), *rows(grid="allowance")]
    colors = colors_of(sorted({row["algo"] for row in shown}))
    with rc_context(STYLE):
        figure = Figure(figsize=(9.6, 6.4), layout="constrained")
        for panel, env in zip(figure.subplots(2, 2).flat, TASKS, strict=True):
            for row in (row for row in shown if row["env"] == env):
                over, count = int(row["over_count"]), int(row["episodes"])
                x, (low, high) = 100.0 * over / count, interval(over, count)
                arms = [[x - 100.0 * low], [100.0 * high - x]]
                y, color = [float(row["return"])], colors[row["algo"]]
                panel.errorbar([x], y, xerr=arms, fmt="o", ms=7, color=color, label=row["algo"])
            paper = published_numbers(env, "steingate")
            assert paper is not None
            name = "return of the paper's SteinGate"
            panel.axhline(paper.ret, color="black", lw=1.0, ls=DASHES, label=name)
            panel.set_title(task(env), loc="left", fontweight="bold", fontsize=11)
            panel.set_xlim(left=0.0)
            panel.margins(y=0.15)
            panel.set_ylim(bottom=min(panel.get_ylim()[0], 0.8 * panel.get_ylim()[1]))
            panel.set_xlabel("episodes over the limit, %")
            panel.set_ylabel("return")
        found = {}
        for panel in figure.axes:
            marks, labels = panel.get_legend_handles_labels()
            found |= dict(zip(labels, marks, strict=True))
        found = dict(sorted(found.items(), key=lambda item: isinstance(item[1], Line2D)))  # the dashes last
        keys = (list(found.values()), list(found))
        figure.legend(*keys, loc="outside lower center", ncols=-(-len(found) // 2), frameon=False)
        figure.savefig(path, dpi=110)


def unseen() -> str:
    """Return the runs on tasks that nothing was chosen on."""
    headings = ("task", "steps", "return", "mean cost", "over the limit", "highest mean cost")
    lines = []
    for run in rows(grid="unseen"):
        over = f"{1.0 - float(run['feasible_by_episode']):.3f}"
        numbers = [f"{float(run[name]):.{digits}f}" for name, digits in (("return", 1), ("cost", 1))]
        steps, highest = f"{int(run['steps']) / 1e6:g}M", f"{float(run['highest_mean_cost']):.0f}"
        lines.append([task(run["env"]), steps, *numbers, over, highest])
    return markdown(headings, lines) if lines else "No runs are kept yet."


def page(text: str) -> str:
    """Return the page with its tables filled."""
    return fill(text, {"allowance": table(), "phases": phases(), "unseen": unseen()})


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    draw(FIGURES / "frontier.png")
    save_curves_figure(gather([KEPT / "allowance"]), FIGURES / "allowance.png")
