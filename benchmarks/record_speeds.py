"""Record the speeds that ``steingate bench`` expects, into src/steingate/bench/speeds.csv.

``python benchmarks/record_speeds.py [--keep] [NAMES...]``, some ten minutes on two cores. Processor time is
recorded, not time on the clock, with one recording on each core at a time, as in a grid. Other load disturbs
that less than it would the clock (through caches and memory, not through waiting), but a quiet machine is
better. ``--keep`` records only what the file does not have yet, such as a new task or method, or what an
interrupted recording has left.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from statistics import median
from threading import Lock

from steingate.algorithms import METHODS
from steingate.algorithms.common.recipe import FirstOrder
from steingate.experiments.expected import BASE_METHOD, BASE_TASK, probe_seconds
from steingate.experiments.local import available_cores
from steingate.experiments.process import job_text, start
from steingate.tasks.catalog import TASKS
from steingate.training.config import RunConfig, make_config

OUT = Path(__file__).resolve().parent.parent / "src" / "steingate" / "bench" / "speeds.csv"
MACHINE = ("probe", "start", "epoch")
WARM = 2  # epochs that compile
SMALL, MANY = 2000, 61  # steps and number of small epochs, which tell what an epoch costs whatever its size
MILLION = 1e6
LOCK = Lock()


def epoch_seconds(cfg: RunConfig, epochs: int) -> float:
    """Return the median processor seconds of an epoch in this process, which must keep to one core."""
    from steingate.algorithms.common.backend import configure
    from steingate.training.assemble import build_algorithm, make_envs
    from steingate.training.epoch import run_epoch
    from steingate.training.loop import background_thread
    from steingate.training.state import first_state

    configure()
    algo = build_algorithm(cfg)
    envs = make_envs(cfg, algo)
    observed, acted = envs.single_observation_space.shape[0], envs.single_action_space.shape[0]
    state = first_state(cfg, algo, observed, acted)
    seconds = []
    with background_thread(cfg.overlap) as pool:
        for _ in range(WARM + epochs):
            began = time.process_time()
            state, _ = run_epoch(algo, cfg, state, envs, pool)
            seconds.append(time.process_time() - began)
    envs.close()
    return median(seconds[WARM:])


def run_seconds(core: int, **sizes: int) -> float:
    """Return the processor seconds of the whole process of a run of the base method on the base task."""
    with tempfile.TemporaryDirectory() as out:
        cfg = make_config({"env": BASE_TASK, "algo": BASE_METHOD, "out": out, **sizes})
        process = start(job_text(cfg, [core]), cfg.path)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stdin.close()
        if process.returncode:
            sys.exit(f"{cfg.path} ended with status {process.returncode}.")
    return usage.ru_utime + usage.ru_stime


def machine(core: int, million: float) -> dict[str, float]:
    """Return the probe, and what the start of a run and an epoch cost beside its steps."""
    run_seconds(core, total_steps=SMALL, steps_per_epoch=SMALL)  # fills the caches of compiled code
    one = run_seconds(core, total_steps=SMALL, steps_per_epoch=SMALL)
    many = run_seconds(core, total_steps=MANY * SMALL, steps_per_epoch=SMALL)
    small = (many - one) / (MANY - 1)
    each = max(small - million * SMALL / MILLION, 0.0)
    return {"probe": probe_seconds(), "start": max(one - small, 0.0), "epoch": each}


def recorded(core: int, task: str, method: str, epochs: int) -> float:
    """Return the processor seconds of a million steps, measured in a process of its own on one core."""
    command = [sys.executable, __file__, "--one", task, method, str(core), "--epochs", str(epochs)]
    seconds = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    print(f"{task:<32}{method:<16}{float(seconds):8.1f} s for a million steps", flush=True)
    return float(seconds)


def one(task: str, method: str, core: str, epochs: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [int(core)])
    cfg = make_config({"env": task, "algo": method, "threads": 1})
    print(epoch_seconds(cfg, epochs) * MILLION / cfg.steps_per_epoch)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ids", nargs="*", metavar="NAMES", help="tasks and methods to record (default: all)")
    parser.add_argument("--keep", action="store_true", help="record only what the file does not have")
    parser.add_argument("--epochs", type=int, default=7, help="epochs that count for each figure")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--one", nargs=3, metavar=("TASK", "METHOD", "CORE"), help="one figure, on stdout")
    options = parser.parse_args()
    if options.one:
        one(*options.one, options.epochs)
        return
    points = [("task", task, task, BASE_METHOD) for task in sorted(TASKS, key=lambda task: task != BASE_TASK)]
    points += [("method", method, BASE_TASK, method) for method in METHODS]
    order = [("machine", name) for name in MACHINE]
    order += [("task", task) for task in TASKS] + [("method", method) for method in METHODS]
    rows = read(options.out)
    wanted = [
        point
        for point in points
        if (not options.ids or point[1] in options.ids) and not (options.keep and point[:2] in rows)
    ]
    cores: SimpleQueue[int] = SimpleQueue()
    for core in available_cores():
        cores.put(core)

    def take(point: tuple[str, str, str, str]) -> None:
        kind, name, task, method = point
        core = cores.get()
        try:
            seconds = recorded(core, task, method, options.epochs)
        finally:
            cores.put(core)
        recipe = make_config({"env": task, "algo": method}).algo
        clipped = recipe.clipped if kind == "method" and isinstance(recipe, FirstOrder) else None
        rows[kind, name] = {"seconds": f"{seconds:.4g}", "passes": clipped.passes if clipped else ""}
        write(options.out, rows, order)  # at once, so that nothing is lost when it is stopped

    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors at the start")
    with ThreadPoolExecutor(cores.qsize()) as pool:
        list(pool.map(take, wanted))
    if not options.ids and not (options.keep and all(("machine", name) in rows for name in MACHINE)):
        million = float(rows["task", BASE_TASK]["seconds"])
        for name, seconds in machine(available_cores()[0], million).items():
            rows["machine", name] = {"seconds": f"{seconds:.4g}", "passes": ""}
        write(options.out, rows, order)


def read(path: Path) -> dict[tuple[str, str], dict[str, object]]:
    """Return the rows that were recorded before."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {
            (row["kind"], row["name"]): {"seconds": row["seconds"], "passes": row["passes"]}
            for row in csv.DictReader(file)
        }


def write(path: Path, rows: dict, order: list[tuple[str, str]]) -> None:
    with LOCK, path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ("kind", "name", "seconds", "passes"))
        writer.writeheader()
        writer.writerows({"kind": key[0], "name": key[1], **rows[key]} for key in order if key in rows)


if __name__ == "__main__":
    main()
