"""Keep small files of the Car's runs under both kinds of physics: ``python results/keep_car.py [RUNS]``.

With run folders, writes ``results/car_runs/epochs.csv``. From that file alone it then writes ``summary.csv``
(the last fifth of each run), ``table.md`` and ``curves.png``.
"""

import csv
import sys
from pathlib import Path

import matplotlib
import matplotlib.figure
import numpy as np

from steingate.report.loading import load_runs, setting
from steingate.report.style import STYLE, save_figure

HOME = Path(__file__).with_name("car_runs")
COLUMNS = ("TotalEnvSteps", "Epoch/EpRet", "Epoch/EpCost", "Epoch/OverLimit", "Time/FPS")
NAMES = ("task", "algo", "physics", "seed", "steps", "return", "cost", "over_limit", "steps_per_s")
COLORS = {"auto": "#1f8a7d", "mujoco": "#c7683c"}
LABELS = {"auto": "own motion", "mujoco": "engine alone"}


def keep_epochs(root: str) -> None:
    """Write one row per epoch of every run below ``root``."""
    runs, _ = load_runs([root])
    with open(HOME / "epochs.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(NAMES)
        for run in runs:
            name = [run.env, run.algo, setting(run, "env_options.physics"), run.seed]
            for numbers in zip(*(run.progress[column] for column in COLUMNS), strict=True):
                table.writerow([*name, int(numbers[0]), *(f"{number:.4g}" for number in numbers[1:])])


def kept() -> dict[tuple[str, str, str, int], np.ndarray]:
    """Return the kept epochs of each run: (epochs, 5)."""
    found: dict[tuple[str, str, str, int], list[list[float]]] = {}
    with open(HOME / "epochs.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = row["task"], row["algo"], row["physics"], int(row["seed"])
            found.setdefault(key, []).append([float(row[name]) for name in NAMES[4:]])
    return {key: np.array(rows) for key, rows in sorted(found.items())}


def summarize() -> str:
    """Write ``summary.csv``, and return the table: mean of the last fifth, ± the deviation over seeds."""
    ends = {key: rows[-(len(rows) // 5) :].mean(axis=0)[1:] for key, rows in kept().items()}
    with open(HOME / "summary.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([*NAMES[:4], *NAMES[5:]])
        table.writerows([*key, *(f"{number:.4g}" for number in end)] for key, end in ends.items())
    lines = [
        "| task | method | physics | seeds | return | cost | over the limit |",
        "|---|---|---|---|---|---|---|",
    ]
    for task, algo, physics in sorted({key[:3] for key in ends}):
        numbers = np.array([end for key, end in ends.items() if key[:3] == (task, algo, physics)])
        cells = [
            f"{mean:.2f} ± {spread:.2f}"
            for mean, spread in zip(numbers.mean(0)[:3], _spread(numbers)[:3], strict=True)
        ]
        told = LABELS[physics]
        lines.append(f"| {task[6:-3]} | {algo} | {told} | {len(numbers)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _spread(numbers: np.ndarray) -> np.ndarray:
    return numbers.std(0, ddof=1) if len(numbers) > 1 else np.full(numbers.shape[1], np.nan)


def draw() -> "matplotlib.figure.Figure":
    """Return return and cost over training, a line per seed."""
    runs = kept()
    kinds = sorted({key[:2] for key in runs})
    with matplotlib.rc_context(STYLE):
        figure = matplotlib.figure.Figure(figsize=(11, 5.2), layout="constrained")
        axes = figure.subplots(2, len(kinds), sharex=True)
        for column, kind in enumerate(kinds):
            for row, name in ((0, "return"), (1, "cost")):
                axis = axes[row, column]
                for key, rows in runs.items():
                    if key[:2] == kind:
                        label = LABELS[key[2]] if key[3] == 0 else None
                        color = COLORS[key[2]]
                        axis.plot(
                            rows[:, 0] / 1e6, rows[:, row + 1], color=color, lw=1.1, alpha=0.8, label=label
                        )
                axis.set_ylabel(name if column == 0 else "")
            axes[0, column].set_title(f"{kind[0][6:-3]}, {kind[1]}", fontsize=10)
            axes[1, column].axhline(25.0, color="#d1495b", lw=0.8, ls="--")
            axes[1, column].set_ylim(0, 160)
            axes[1, column].set_xlabel("million steps")
        axes[0, 0].legend(frameon=False)
    return figure


if __name__ == "__main__":
    if len(sys.argv) > 1:
        keep_epochs(sys.argv[1])
    (HOME / "table.md").write_text(summarize(), encoding="utf-8")
    save_figure(draw, HOME / "curves.png")
