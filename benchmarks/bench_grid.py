"""A grid's runs side by side with one core each, against one after the other with all cores.

``python benchmarks/bench_grid.py [--steps N] [--rounds N] [IDS...]``; also written to results/bench_grid.csv.
As many runs as there are cores, each for each task, by the engine of ``steingate bench`` itself: the time on
the clock from the first process to the end of the last, start and compilation included. Rounds alternate
and each way counts its fastest; median, lowest and highest ratio of single rounds stand beside it. Other
load on the machine takes from both ways, but not equally: ratios need a quiet machine, too.
"""

import argparse
import csv
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from steingate.experiments.launch import launch
from steingate.experiments.local import LocalEngine, available_cores
from steingate.training.config import RunConfig, make_config

OUT = Path(__file__).resolve().parent.parent / "results" / "bench_grid.csv"
TASKS = ("SafetyPointGoal1-v0", "SafetyCarCircle1-v0")


class Nobody:
    """Watches nothing."""

    def update(self, running: Sequence[RunConfig]) -> None:
        """Look away."""

    def event(self, cfg: RunConfig, what: str) -> None:
        """Take no note."""


def seconds(task: str, algo: str, steps: int, runs: int, workers: int | None) -> float:
    """Return the time on the clock of so many runs with so many workers; None is the default."""
    with tempfile.TemporaryDirectory() as out:
        shared = {"env": task, "algo": algo, "variant": "published", "total_steps": steps, "out": out}
        todo = [make_config({**shared, "seed": seed}) for seed in range(runs)]
        began = time.perf_counter()
        with LocalEngine(workers, runs) as engine:
            outcomes = launch(todo, engine, Nobody())
        spent = time.perf_counter() - began
        for outcome in outcomes:
            if outcome.status != "finished":
                sys.exit(f"{outcome.path}: {outcome.status}. {outcome.message}")
    return spent


def measure(task: str, algo: str, steps: int, rounds: int, load: float) -> dict[str, object]:
    cores = len(available_cores())
    seconds(task, algo, 20_000, 1, None)  # fills the caches of compiled code
    turns, together = [], []
    for _ in range(rounds):
        turns.append(seconds(task, algo, steps, cores, 1))
        together.append(seconds(task, algo, steps, cores, None))
    ratios = [one / both for one, both in zip(turns, together, strict=True)]
    return {
        "task": task,
        "algo": algo,
        "steps": steps,
        "runs": cores,
        "cores": cores,
        "rounds": rounds,
        "load": round(load, 2),
        "one_after_the_other_s": round(min(turns), 2),
        "side_by_side_s": round(min(together), 2),
        "ratio": round(min(turns) / min(together), 3),
        "ratio_median": round(median(ratios), 3),
        "ratio_low": round(min(ratios), 3),
        "ratio_high": round(max(ratios), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ids", nargs="*", default=TASKS, metavar="IDS")
    parser.add_argument("--algo", default="cpo")
    parser.add_argument("--steps", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"load average {load:.1f} on {os.cpu_count()} processors at the start")
    print(f"{'task':<30}{'runs':>5}{'in turn':>10}{'side by side':>14}{'ratio':>7}{'median':>8}   low-high")
    rows = []
    for task in options.ids:
        row = measure(task, options.algo, options.steps, options.rounds, load)
        rows.append(row)
        print(
            f"{task:<30}{row['runs']:>5}{row['one_after_the_other_s']:>9}s{row['side_by_side_s']:>13}s"
            f"{row['ratio']:>7}{row['ratio_median']:>8}   {row['ratio_low']}-{row['ratio_high']}",
            flush=True,
        )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
