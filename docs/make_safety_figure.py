"""Regenerate the README's figure of results: ``python docs/make_safety_figure.py [FOLDER] [OUT.png]``.

FOLDER (default: results/paper_runs) holds a ``summary.csv`` with a row per run, as ``results/keep_runs.py``
writes it: env, algo, return and over_limit, the share of episodes above the limit in the last fifth of
training. A bar is the mean over the seeds of a method, a ring one seed. The safest methods stand on top.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from steingate.algos.methods import METHODS
from steingate.report.report_tables import task
from steingate.report.style import FAINT, INK, SOFT, STYLE, free_colours

DOCS = Path(__file__).parent
SOURCE = DOCS.parent / "results" / "paper_runs"
TARGET = DOCS / "figures" / "safety.png"
OURS = ("steingate", "allowance")

Scores = dict[str, list[tuple[float, float]]]  # method: (share over the limit, return) of each seed


def scores_by_task(folder: Path) -> dict[str, Scores]:
    """Return what each seed of each method did, by task; tasks with the most methods first."""
    tasks: dict[str, Scores] = defaultdict(lambda: defaultdict(list))
    with open(folder / "summary.csv", newline="") as file:
        for row in csv.DictReader(file):
            tasks[row["env"]][row["algo"]].append((float(row["over_limit"]), float(row["return"])))
    return dict(sorted(tasks.items(), key=lambda item: (-len(item[1]), item[0])))


def colours_of(algos: list[str]) -> dict[str, str]:
    """Return the colour of each method, its own or one that is free."""
    own = {algo: METHODS[algo].about.colour for algo in algos if algo in METHODS}
    known = {algo: colour for algo, colour in own.items() if colour is not None}
    rest = [algo for algo in algos if algo not in known]
    return known | dict(zip(rest, free_colours(len(rest), set(known.values())), strict=True))


def draw(folder: Path, path: Path) -> None:
    """Draw a row per task: episodes over the limit on the left, return on the right."""
    tasks = scores_by_task(folder)
    colours = colours_of(sorted({algo for scores in tasks.values() for algo in scores}))
    sizes = [len(scores) for scores in tasks.values()]
    with rc_context(STYLE):
        tall = 0.30 * sum(sizes) + 0.62 * len(sizes) + 0.35
        figure = Figure(figsize=(9.6, tall), layout="constrained")
        panels = figure.subplots(len(sizes), 2, squeeze=False, gridspec_kw={"height_ratios": sizes})
        for (left, right), (env, scores) in zip(panels, tasks.items(), strict=True):
            order = sorted(scores, key=lambda algo: (np.mean(scores[algo], axis=0)[0], algo))
            bars(left, order, [[100.0 * over for over, _ in scores[algo]] for algo in order], colours, "%")
            bars(right, order, [[ret for _, ret in scores[algo]] for algo in order], colours, "")
            left.set_title(task(env), loc="left", fontweight="bold", fontsize=11)
            right.tick_params(labelleft=False)
        panels[-1, 0].set_xlabel("episodes over the limit, last fifth of training (less is safer)")
        panels[-1, 1].set_xlabel("return (more is better)")
        for panel in panels[:, 0]:
            panel.set_xlim(0.0, max(other.get_xlim()[1] for other in panels[:, 0]))
    figure.savefig(path, dpi=150, facecolor="white")


def bars(panel, names: list[str], values: list[list[float]], colours: dict[str, str], unit: str) -> None:
    """Draw a bar per method with its number behind it, ours in bold, and a ring per seed of several."""
    means = [float(np.mean(value)) for value in values]
    ends = [max([mean, *value]) for mean, value in zip(means, values, strict=True)]
    high = 1.14 * max(ends)
    for place, (name, mean, end, value) in enumerate(zip(names, means, ends, values, strict=True)):
        panel.barh(place, mean, height=0.68, color=colours[name])
        if len(value) > 1:
            rings = {"facecolors": "white", "edgecolors": INK, "linewidths": 0.9, "zorder": 3}
            panel.scatter(value, [place] * len(value), s=18, **rings)
        text = f"{mean:.0f} {unit}" if unit else f"{mean:.1f}"
        weight = "bold" if name.startswith(OURS) else "normal"
        panel.text(end + 0.016 * high, place, text, va="center", fontsize=9.5, fontweight=weight, color=INK)
    panel.set_yticks(range(len(names)), names)
    for label in panel.get_yticklabels():
        label.set_fontweight("bold" if label.get_text().startswith(OURS) else "normal")
    panel.set_ylim(len(names) - 0.45, -0.55)
    panel.set_xlim(min(0.0, *map(min, values)), high)
    panel.grid(axis="x", color=FAINT, linewidth=0.6)
    panel.set_axisbelow(True)
    panel.tick_params(axis="y", length=0)
    panel.tick_params(axis="x", colors=SOFT, labelsize=8.5)


if __name__ == "__main__":
    given = [Path(word) for word in sys.argv[1:3]]
    draw(given[0] if given else SOURCE, given[1] if len(given) > 1 else TARGET)
