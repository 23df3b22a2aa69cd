"""Time of several runs side by side with one core each, relative to one after the other with all cores.

``python benchmarks/bench_grid.py [--steps N] [--rounds N] [TASK...]`` writes results/bench_grid.csv. For each
task, the local engine of ``steingate bench`` trains one run per core. Times are wall-clock, with start and
compilation. Rounds alternate; each way counts its fastest, and the ratios of the single rounds are given as
median, lowest and highest.
"""

import argparse
import csv
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from steingate.experiments.engines import LocalEngine
from steingate.experiments.launch import launch
from steingate.tasks.validation import usable_cores
from steingate.training.config import make_config

OUT = Path(__file__).resolve().parent.parent / "results" / "bench_grid.csv"
TASKS = ("SafetyPointGoal1-v0", "SafetyCarCircle1-v0")


def seconds(task: str, algo: str, steps: int, runs: int, workers: int | None) -> float:
    """Return the time of some runs; ``workers`` of None is one per core."""
    with tempfile.TemporaryDirectory() as out:
        shared = {"env": task, "algo": algo, "variant": "published", "total_steps": steps, "out": out}
        todo = [make_config({**shared, "seed": seed}) for seed in range(runs)]
        start = time.perf_counter()
        with LocalEngine(workers, runs) as engine:
            outcomes = launch(todo, engine)
        spent = time.perf_counter() - start
        for outcome in outcomes:
            if outcome.status != "finished":
                sys.exit(f"{outcome.path}: {outcome.status}. {outcome.message}")
    return spent


def measure(task: str, algo: str, steps: int, rounds: int, load: float) -> dict[str, object]:
    cores = len(usable_cores())
    seconds(task, algo, 20_000, 1, None)  # compiles
    sequential, parallel = [], []
    for _ in range(rounds):
        sequential.append(seconds(task, algo, steps, cores, 1))
        parallel.append(seconds(task, algo, steps, cores, None))
    ratios = [one / both for one, both in zip(sequential, parallel, strict=True)]
    return {
        "task": task,
        "algo": algo,
        "steps": steps,
        "runs": cores,
        "cores": cores,
        "rounds": rounds,
        "load": round(load, 2),
        "sequential_s": round(min(sequential), 2),
        "parallel_s": round(min(parallel), 2),
        "ratio": round(min(sequential) / min(parallel), 3),
        "ratio_median": round(median(ratios), 3),
        "ratio_low": round(min(ratios), 3),
        "ratio_high": round(max(ratios), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", default=TASKS, metavar="TASK")
    parser.add_argument("--algo", default="cpo")
    parser.add_argument("--steps", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"load average {load:.1f} on {os.cpu_count()} processors at the start")
    print(f"{'task':<30}{'runs':>5}{'sequential':>12}{'parallel':>10}{'ratio':>7}{'median':>8}   low-high")
    rows = []
    for task in options.tasks:
        row = measure(task, options.algo, options.steps, options.rounds, load)
        rows.append(row)
        print(
            f"{task:<30}{row['runs']:>5}{row['sequential_s']:>11}s{row['parallel_s']:>9}s"
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
