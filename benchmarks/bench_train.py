"""Whole training epochs over the bare engine steps of the same 20,000 environment steps, with a breakdown.

Run ``python benchmarks/bench_train.py [--quick] [--start] [--memory] [IDS...]``; the table also goes to
results/bench_train.csv. An epoch is collection with 8 environments, one SteinGate policy update and ten
passes over both critics. The engine side is MuJoCo alone on the original's model with every body, random
actions, the same number of threads (see bench_envs.py). Six rounds alternate and each side counts its
fastest, so that other load on the machine disturbs the ratios little; absolute numbers need a quiet machine.
Median, lowest and highest ratio of single rounds stand beside it.
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
from steingate.algorithms.common.backend import configure
from steingate.algorithms.common.base import Algorithm
from steingate.tasks.catalog import TASKS
from steingate.training.assemble import build_algorithm, make_envs
from steingate.training.config import RunConfig
from steingate.training.epoch import run_epoch
from steingate.training.background import background_thread
from steingate.training.state import TrainState, first_state

TO_REACH = {
    "SafetyPointGoal1-v0": 0.33,
    "SafetyPointCircle1-v0": 0.9,
    "SafetyCarGoal1-v0": 0.45,
    "SafetyCarCircle1-v0": 0.35,
    "SafetyHalfCheetahVelocity-v1": 2.2,
    "SafetyAntVelocity-v1": 1.05,
}


class Timed:
    """A vector environment that adds up the seconds spent in its steps."""

    def __init__(self, envs):
        self.envs = envs
        self.num_envs, self.current_env = envs.num_envs, None
        self.single_action_space = envs.single_action_space
        self.seconds = 0.0

    def reset(self, **options):
        """Reset."""
        return self.envs.reset(**options)

    def step(self, actions):
        """Step, and look at the clock."""
        start = time.perf_counter()
        answer = self.envs.step(actions)
        self.seconds += time.perf_counter() - start
        return answer


def epochs(
    algo: Algorithm, cfg: RunConfig, state: TrainState, envs: Timed, pool: Executor, count: int
) -> tuple[TrainState, list[dict[str, float]]]:
    """Return the state after some epochs, and for each the seconds of its parts."""
    rows = []
    for _ in range(count):
        envs.seconds = 0.0
        start = time.perf_counter()
        state, report = run_epoch(algo, cfg, state, envs, pool)
        rows.append({**report.seconds, "epoch": time.perf_counter() - start, "step": envs.seconds})
    return state, rows


def measure(env_id: str, rounds: int) -> dict[str, object]:
    cfg = RunConfig(env=env_id, threads=THREADS)
    task = TASKS[env_id]
    rng = np.random.default_rng(0)
    bound = task.action_bound
    actions = rng.uniform(-bound, bound, (cfg.horizon, cfg.num_envs, task.action_size))
    bare = bare_round(task, cfg.num_envs, actions)
    algo = build_algorithm(cfg)
    envs = Timed(make_envs(cfg, algo))
    state = first_state(cfg, algo, task.observation_size, task.action_size)
    engine, hidden, shown, ratios = [], [], [], []
    with background_thread(True) as pool, background_thread(False) as inline:
        state, _ = epochs(algo, cfg, state, envs, pool, 2)  # compile
        for _ in range(rounds):
            engine.append(bare())
            state, rows = epochs(algo, cfg, state, envs, pool, 3)
            hidden += rows[1:]  # the first one did not begin with critics at work
            ratios.append(min(row["epoch"] for row in rows[1:]) / engine[-1])
            state.critics.result()
            state, rows = epochs(algo, cfg, state, envs, inline, 1)
            shown += rows
    best = min(hidden, key=lambda row: row["epoch"])
    alone = min(shown, key=lambda row: row["epoch"])
    ratio = best["epoch"] / min(engine)
    return {
        "task": env_id,
        "threads": THREADS,
        "engine_s": round(min(engine), 3),
        "epoch_s": round(best["epoch"], 3),
        "ratio": round(ratio, 3),
        "ratio_median": round(float(np.median(ratios)), 3),
        "ratio_low": round(min(ratios), 3),
        "ratio_high": round(max(ratios), 3),
        "to_reach": TO_REACH.get(env_id, ""),
        "reached": "" if env_id not in TO_REACH else ratio <= TO_REACH[env_id],
        "steps_per_s": round(cfg.steps_per_epoch / best["epoch"]),
        "env_step_s": round(best["step"], 3),
        "rest_of_collection_s": round(best["collect"] - best["step"], 3),
        "advantages_s": round(best["advantages"], 3),
        "policy_s": round(best["policy"], 3),
        "wait_for_critics_s": round(best["wait"], 3),
        "epoch_without_overlap_s": round(alone["epoch"], 3),
        "critics_without_overlap_s": round(alone["epoch"] - sum(alone[k] for k in ("collect", "policy")), 3),
    }


def start_to_first_epoch() -> float:
    """Return the seconds from calling the command to the end of the first epoch, caches being warm."""
    for _ in range(2):
        with tempfile.TemporaryDirectory() as out:
            command = [
                sys.executable,
                "-m",
                "steingate",
                "train",
                "--out",
                out,
                "--total-steps",
                "20000",
                "--quiet",
            ]
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds = time.perf_counter() - start
    return seconds


def memory(count: int) -> tuple[float, float]:
    """Return the resident megabytes after a tenth of ``count`` epochs, and after all of them."""
    cfg = RunConfig(env="SafetyPointCircle1-v0", threads=THREADS)
    algo = build_algorithm(cfg)
    envs = Timed(make_envs(cfg, algo))
    task = TASKS[cfg.env]
    state = first_state(cfg, algo, task.observation_size, task.action_size)
    with background_thread(True) as pool:
        state, _ = epochs(algo, cfg, state, envs, pool, count // 10)
        early = resident()
        epochs(algo, cfg, state, envs, pool, count - count // 10)
    return early, resident()


def resident() -> float:
    """Return the resident set of this process in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ids", nargs="*", default=list(TO_REACH))
    parser.add_argument("--quick", action="store_true", help="one round instead of six")
    parser.add_argument("--start", action="store_true", help="also time the start of a run")
    parser.add_argument("--memory", action="store_true", help="also watch memory over 200 epochs")
    parser.add_argument("--out", type=Path, default=Path("results/bench_train.csv"))
    options = parser.parse_args()
    if options.start:
        print(f"start to first epoch, warm caches: {start_to_first_epoch():.1f} s (to reach: 10)", flush=True)
    configure()
    rows = []
    print(
        f"{'task':31}{'engine s':>9}{'epoch s':>9}{'ratio':>7}{'median, rounds':>21}{'reach':>7}"
        f"{'steps/s':>9}   breakdown",
        flush=True,
    )
    for env_id in options.ids:
        row = measure(env_id, 1 if options.quick else 6)
        rows.append(row)
        print(
            f"{env_id:31}{row['engine_s']:9}{row['epoch_s']:9}{row['ratio']:7}"
            f"{row['ratio_median']:>8}{row['ratio_low']:>7}-{row['ratio_high']:<5}{row['to_reach']!s:>7}"
            f"{row['steps_per_s']:9}   step {row['env_step_s']}, rest of collection "
            f"{row['rest_of_collection_s']}, advantages {row['advantages_s']}, policy {row['policy_s']}, "
            f"wait {row['wait_for_critics_s']}; without overlap {row['epoch_without_overlap_s']}",
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
