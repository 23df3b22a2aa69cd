"""Keep small files of the grid ``learning``: ``python results/keep_learning.py [RUNS...]``.

Writes ``results/learning/``: ``epochs.csv`` (a row per epoch of every run), ``summary.csv`` (the last fifth
of every run), a table and a figure of return and cost per variant, and ``README.md`` with the commands.
Without RUNS it writes the tables again, from the ``summary.csv`` that is there.
"""

import csv
import sys
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from rows import read_rows, write_rows

from steingate.gates.base import Mode
from steingate.report.loading import Run, load_runs, setting
from steingate.report.record import look_of
from steingate.report.stats import cvar, exceedance, worst
from steingate.report.style import FAINT, LIMIT, STYLE, free_colors
from steingate.report.summary import tail_episodes

FOLDER = Path(__file__).parent / "learning"
TASKS = {"SafetyPointCircle1-v0": "PointCircle1", "SafetyPointGoal1-v0": "PointGoal1"}
FAMILIES = {
    "reward alone": ("trpo", "ppo"),
    "a price on cost": ("trpo-lag", "ppo-lag", "rcpo"),
    "a price, first order": ("focops", "cup", "p3o"),
    "a limit on the mean": ("cpo", "pcpo", "crpo"),
    "a budget per episode": ("trpo-saute", "trpo-simmer", "ppo-saute", "ppo-simmer"),
    "a limit on the tail": ("cvar-cpo", "evo", "steingate", "steingate-ppo"),
    "an allowance": ("allowance", "allowance-ppo"),
}
VARIANTS = ("corrected", "published")
PUBLISHED = (
    "steingate", "cpo", "pcpo", "cvar-cpo", "evo", "rcpo", "focops", "p3o", "trpo-saute", "ppo-saute",
    "trpo-simmer", "ppo-simmer",
)  # fmt: skip
OPTIONS = {
    "steingate": "recovery=tail",
    "steingate-ppo": "clipped.passes=40",
    "trpo-lag": "multiplier=pid",
}
HELD_OUT = ("cpo", "steingate", "cvar-cpo")
COLUMNS = (
    "Epoch/EpRet",
    "Epoch/EpCost",
    "Epoch/OverLimit",
    "Epoch/WorstCost",
    "Gate/Mode",
    "Gate/Price",
    "Step/Case",
)

ABOUT = """# A million steps of every method

Every method once, one seed, a million steps:

```
steingate bench learning
steingate bench learning --variant published --out runs/published
{more}
python results/keep_learning.py runs/learning runs/published runs/options
python results/held_out.py {held_out}
```

`epochs.csv` has a row per epoch, `summary.csv` a row per run over its last fifth (200,000 steps): mean return
and cost of an episode, the share of episodes over the limit of 25, the mean of the worst tenth, the worst,
and the share of epochs that did more than lower cost. `held_out.csv` tells how much of a predicted drop in
cost is real. One seed says how a method behaves, not how well it does on average. What is to be seen:
docs/learning.md. Of the published variants, SteinGate's is kept and those that take other steps: {published}.
"""


def variant_of(run: Run) -> str:
    """Return the variant of a run, or the option that was tried instead of the method's own."""
    name, _, value = OPTIONS.get(run.algo, "").partition("=")
    tried = setting(run, name)
    return OPTIONS[run.algo] if tried is not None and str(tried) == value else str(setting(run, "variant"))


def place(run: Run) -> tuple[float, str]:
    """Return what sorts methods: the place that a run's folder gives, then the name."""
    order = look_of(run.record).order
    return (np.inf if order is None else order, run.algo)


def colors_of(runs: list[Run]) -> dict[str, str]:
    """Return a color for each method: its own where the folders name one, else one that is free."""
    asked = {run.algo: look_of(run.record).color for run in runs}
    own = {algo: color for algo, color in asked.items() if color is not None}
    rest = [algo for algo in asked if algo not in own]
    return own | dict(zip(rest, free_colors(len(rest), set(own.values())), strict=True))


def summary_row(run: Run) -> dict[str, str]:
    """Return the numbers of one run over the last fifth of its epochs."""
    episode_return, cost = tail_episodes(run)
    numbers = {
        "return": f"{np.mean(episode_return):.1f}",
        "cost": f"{np.mean(cost):.1f}",
        "over_limit": f"{exceedance(cost, run.limit):.2f}",
        "cvar90": f"{cvar(cost, 0.9):.0f}",
        "worst": f"{worst(cost):.0f}",
        "improving_epochs": f"{np.mean(run.modes[-(len(run.modes) // 5) :] != Mode.RECOVER):.2f}",
    }
    names = {"env": run.env, "algo": run.algo, "variant": variant_of(run)}
    return names | numbers


def figure(runs: list[Run], path: Path) -> None:
    """Draw a row per family; return and cost of each task; thin: an epoch, bold: the last 100 episodes."""
    families = {
        name: [run for run in runs if run.algo in algos]
        for name, algos in FAMILIES.items()
        if any(run.algo in algos for run in runs)
    }
    with plt.rc_context(STYLE):
        shown, panels = plt.subplots(
            len(families), 4, figsize=(15, 2.5 * len(families)), sharex=True, squeeze=False
        )
        for row, (name, members) in zip(panels, families.items(), strict=True):
            colors = colors_of(members)
            for start, env in enumerate(TASKS):
                for offset, column in enumerate(("EpRet", "EpCost")):
                    draw(row[2 * start + offset], members, env, column, colors)
            row[0].set_ylabel(name)
            row[0].legend(frameon=False, fontsize=9, loc="lower right", handlelength=1.2)
        for start, task in enumerate(TASKS.values()):
            panels[0, 2 * start].set_title(f"{task}: return")
            panels[0, 2 * start + 1].set_title(f"{task}: cost")
        for panel in panels[-1]:
            panel.set_xlabel("environment steps, thousands")
        shown.tight_layout()
        shown.savefig(path, dpi=100)
        plt.close(shown)
    shrink(path)


def shrink(path: Path) -> None:
    """Save a picture again with a small palette: a quarter of the size, no visible difference."""
    Image.open(path).convert("RGB").quantize(96).save(path, optimize=True)


def table(rows: list[dict[str, str]]) -> str:
    """Return rows of the summary as a Markdown table, a line per method and both tasks side by side."""
    columns = ("return", "cost", "over_limit", "cvar90")
    heads = [f"{task} {name}" for task in TASKS.values() for name in ("return", "cost", "over", "CVaR 0.9")]
    lines = ["| method | " + " | ".join(heads) + " |", "|---|" + "---:|" * len(heads)]
    for algo, variant in dict.fromkeys((row["algo"], row["variant"]) for row in rows):
        found = {row["env"]: row for row in rows if (row["algo"], row["variant"]) == (algo, variant)}
        name = f"`{algo}`" if variant in VARIANTS else f"`{algo}` with `{variant}`"
        cells = [found[env][column] if env in found else "" for env in TASKS for column in columns]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def draw(panel: plt.Axes, members: list[Run], env: str, column: str, colors: dict[str, str]) -> None:
    """Draw one quantity of the runs on one task."""
    for run in members:
        if run.env != env:
            continue
        steps = run.progress["TotalEnvSteps"] / 1e3
        panel.plot(steps, run.progress[f"Epoch/{column}"], color=colors[run.algo], alpha=0.35, linewidth=0.8)
        panel.plot(
            steps, run.progress[f"Metrics/{column}"], color=colors[run.algo], linewidth=1.7, label=run.algo
        )
    panel.grid(axis="y", color=FAINT, linewidth=0.6)
    if column == "EpCost":
        panel.axhline(25.0, color=LIMIT, linewidth=1.2, linestyle=(0, (5, 3)))
        unconstrained = any(run.algo == "trpo" for run in members)
        panel.set_ylim(0.0, None if unconstrained else 120.0)


def write_tables(rows: list[dict[str, str]]) -> None:
    """Write a table per variant, and one of the options."""
    others = [row for row in rows if row["variant"] not in VARIANTS]
    (FOLDER / "options.md").write_text(table(others), encoding="utf-8")
    for variant in VARIANTS:
        chosen = [row for row in rows if row["variant"] == variant]
        (FOLDER / f"{variant}.md").write_text(table(chosen), encoding="utf-8")


def keep(roots: list[str]) -> None:
    """Write the folder."""
    FOLDER.mkdir(exist_ok=True)
    runs, skipped = load_runs(roots)
    for item in skipped:
        print(f"skipped {item}", file=sys.stderr)
    runs = [run for run in runs if variant_of(run) != "published" or run.algo in PUBLISHED]
    runs.sort(key=lambda run: (run.env, *place(run), variant_of(run)))
    with open(FOLDER / "epochs.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["env", "algo", "variant", "steps", *COLUMNS])
        for run in runs:
            for epoch, steps in enumerate(run.progress["TotalEnvSteps"]):
                found = [run.progress[name][epoch] if name in run.progress else np.nan for name in COLUMNS]
                cells = ["" if np.isnan(value) else f"{value:.4g}" for value in found]
                writer.writerow([run.env, run.algo, variant_of(run), int(steps), *cells])
    rows = [summary_row(run) for run in runs]
    counts = Counter((row["env"], row["algo"], row["variant"]) for row in rows)
    if twice := [key for key, count in counts.items() if count > 1]:
        raise SystemExit(f"There is more than one run of {', '.join(twice[0])}; name folders of one of them.")
    others = [row["algo"] for row in rows if row["variant"] == "published" and row["algo"] != "steingate"]
    published = ", ".join(dict.fromkeys(others))
    write_rows(FOLDER / "summary.csv", rows)
    write_tables(rows)
    for variant in VARIANTS:
        figure([run for run in runs if variant_of(run) == variant], FOLDER / f"{variant}.png")
    more = "\n".join(
        f"steingate train --env {env} --algo {algo} --{option.replace('=', ' ')} "
        "--total-steps 1000000 --out runs/options"
        for algo, option in OPTIONS.items()
        for env in TASKS
    )
    checked = [f"runs/learning/{algo}/{env}/seed-0" for algo in HELD_OUT for env in TASKS]
    (FOLDER / "README.md").write_text(
        ABOUT.format(more=more, published=published, held_out=" ".join(checked)),
        encoding="utf-8",
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        keep(sys.argv[1:])
    else:
        write_tables(read_rows(FOLDER / "summary.csv"))
