"""Time of a training epoch, relative to bare MuJoCo steps of the same 20,000 environment steps.

``python benchmarks/bench_train.py [--quick] [--start] [--memory] [TASK...]`` writes results/bench_train.csv. An epoch
of SteinGate is a rollout of 8 environments, one policy update and ten passes over both critics. The bare steps use
the original's model with every body and random actions, on the same number of threads (see bench_envs.py). Rounds of
both alternate and each counts its fastest, so the ratio depends little on other load; absolute times do.
"""

import argparse
import csv
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import Executor
from pathlib import Path

import numpy as np

from bench_envs import THREADS, bare_round
from steingate.algorithms.common.jax_setup import configure
from steingate.tasks.catalog import TASKS
from steingate.training.background import background_thread
from steingate.training.config import RunConfig, make_config
from steingate.training.environment import make_envs
from steingate.training.epoch import run_epoch
from steingate.training.state import TrainState, first_state

TARGETS = {
    "SafetyPointGoal1-v0": 0.33,
    "SafetyPointCircle1-v0": 0.9,
    "SafetyCarGoal1-v0": 0.45,
    "SafetyCarCircle1-v0": 0.35,
    "SafetyHalfCheetahVelocity-v1": 2.2,
    "SafetyAntVelocity-v1": 1.05,
}


class TimedEnvs:
    """Vector environment that sums the time of its steps."""

    def __init__(self, envs):
        self.envs = envs
        self.num_envs, self.current_env = envs.num_envs, None
        self.single_action_space = envs.single_action_space
        self.single_observation_space = envs.single_observation_space
        self.seconds = 0.0

    def reset(self, **options):
        """Reset."""
        return self.envs.reset(**options)

    def step(self, actions):
        """Step and add the time."""
        start = time.perf_counter()
        answer = self.envs.step(actions)
        self.seconds += time.perf_counter() - start
        return answer


class Training:
    """A SteinGate run whose epochs are timed."""

    def __init__(self, task: str) -> None:
        self.cfg: RunConfig = make_config({"env": task, "algo": "steingate", "threads": THREADS})
        self.algorithm = self.cfg.algo
        self.envs = TimedEnvs(make_envs(self.cfg))
        self.state: TrainState = first_state(self.cfg, self.algorithm, self.envs)

    def epochs(self, count: int, pool: Executor) -> list[dict[str, float]]:
        """Train some epochs and return the seconds of the parts of each."""
        rows = []
        for _ in range(count):
            self.envs.seconds = 0.0
            start = time.perf_counter()
            self.state, report = run_epoch(self.algorithm, self.cfg, self.state, self.envs, pool)
            rows.append({**report.seconds, "epoch": time.perf_counter() - start, "step": self.envs.seconds})
        return rows


def measure(task: str, rounds: int) -> dict[str, object]:
    training = Training(task)
    cfg, spec = training.cfg, TASKS[task]
    actions = np.random.default_rng(0).uniform(
        -spec.action_bound, spec.action_bound, (cfg.horizon, cfg.num_envs, spec.action_size)
    )
    bare = bare_round(spec, cfg.num_envs, actions)
    engine, overlapping, separate, ratios = [], [], [], []
    with background_thread(True) as pool, background_thread(False) as inline:
        training.epochs(2, pool)  # compiles
        for _ in range(rounds):
            engine.append(bare())
            rows = training.epochs(3, pool)[1:]  # during the first, no critics are fitted in parallel
            overlapping += rows
            ratios.append(min(row["epoch"] for row in rows) / engine[-1])
            training.state.critics.result()
            separate += training.epochs(1, inline)
    best = min(overlapping, key=lambda row: row["epoch"])
    alone = min(separate, key=lambda row: row["epoch"])
    ratio = best["epoch"] / min(engine)
    return {
        "task": task,
        "threads": THREADS,
        "engine_s": round(min(engine), 3),
        "epoch_s": round(best["epoch"], 3),
        "ratio": round(ratio, 3),
        "ratio_median": round(float(np.median(ratios)), 3),
        "ratio_low": round(min(ratios), 3),
        "ratio_high": round(max(ratios), 3),
        "target": TARGETS.get(task, ""),
        "steps_per_s": round(cfg.steps_per_epoch / best["epoch"]),
        "env_step_s": round(best["step"], 3),
        "rest_of_rollout_s": round(best["collect"] - best["step"], 3),
        "advantages_s": round(best["advantages"], 3),
        "policy_s": round(best["policy"], 3),
        "wait_for_critics_s": round(best["wait"], 3),
        "epoch_without_overlap_s": round(alone["epoch"], 3),
        "critics_without_overlap_s": round(alone["epoch"] - alone["collect"] - alone["policy"], 3),
    }


def start_to_first_epoch() -> float:
    """Return the seconds from calling the command to the end of the first epoch, with warm caches."""
    for _ in range(2):
        with tempfile.TemporaryDirectory() as out:
            command = [sys.executable, "-m", "steingate", "train", "--quiet", "--out", out, "--total-steps", "20000"]
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds = time.perf_counter() - start
    return seconds


def memory(count: int) -> tuple[float, float]:
    """Return the resident megabytes after a tenth of ``count`` epochs, and after all of them."""
    training = Training("SafetyPointCircle1-v0")
    with background_thread(True) as pool:
        training.epochs(count // 10, pool)
        early = resident()
        training.epochs(count - count // 10, pool)
    return early, resident()


def resident() -> float:
    """Return the resident set size of this process in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", default=list(TARGETS), metavar="TASK")
    parser.add_argument("--quick", action="store_true", help="one round instead of six")
    parser.add_argument("--start", action="store_true", help="also time the start of a run")
    parser.add_argument("--memory", action="store_true", help="also measure memory over 200 epochs")
    parser.add_argument("--out", type=Path, default=Path("results/bench_train.csv"))
    options = parser.parse_args()
    if options.start:
        print(f"start to first epoch, warm caches: {start_to_first_epoch():.1f} s (target: 10)", flush=True)
    configure()
    rows = []
    print(
        f"{'task':31}{'engine s':>9}{'epoch s':>9}{'ratio':>7}{'median, rounds':>21}{'target':>7}"
        f"{'steps/s':>9}   parts",
        flush=True,
    )
    for task in options.tasks:
        row = measure(task, 1 if options.quick else 6)
        rows.append(row)
        print(
            f"{task:31}{row['engine_s']:9}{row['epoch_s']:9}{row['ratio']:7}"
            f"{row['ratio_median']:>8}{row['ratio_low']:>7}-{row['ratio_high']:<5}{row['target']!s:>7}"
            f"{row['steps_per_s']:9}   step {row['env_step_s']}, rest of rollout {row['rest_of_rollout_s']}, "
            f"advantages {row['advantages_s']}, policy {row['policy_s']}, wait {row['wait_for_critics_s']}; "
            f"without overlap {row['epoch_without_overlap_s']}",
            flush=True,
        )
    if options.memory:
        early, late = memory(200)
        print(f"resident memory after 20 and 200 epochs: {early:.0f} and {late:.0f} MB")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
