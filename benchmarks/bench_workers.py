"""Time of a step of eight Gymnasium environments in one process and in several, by the time of one step.

``python benchmarks/bench_workers.py`` writes results/bench_workers.csv. Times are the shortest of several
alternating runs.
"""

import csv
import os
import time
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from steingate.envs.make import make_vec
from steingate.tasks.validation import usable_cores

OUT = Path(__file__).resolve().parent.parent / "results" / "bench_workers.csv"
ENVS, ROUNDS, SECONDS = 8, 5, 0.5
COMPUTE = (0.0, 1e-4, 3e-4, 1e-3, 5e-3)


class Busy(gymnasium.Env):
    """Environment whose steps take a given processor time."""

    observation_space, action_space = Box(-1.0, 1.0, (8,)), Box(-1.0, 1.0, (2,))

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds

    def reset(self, *, seed=None, options=None):
        """Start an episode."""
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(8), {}

    def step(self, action):
        """Compute for ``seconds``."""
        end = time.thread_time() + self.seconds
        while time.thread_time() < end:
            pass
        self.t += 1
        return np.full(8, self.t / 1000), 1.0, False, self.t >= 1000, {"cost": 0.0}


def seconds_per_step(vec, actions: np.ndarray) -> float:
    """Return the mean time of a vector step over about half a second."""
    count, began = 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        vec.step(actions)
        count += 1
    return (time.perf_counter() - began) / count


def main() -> None:
    count, load = min(ENVS, len(usable_cores())), os.getloadavg()[0]
    print(f"load average {load:.1f} on {os.cpu_count()} processors at the start")
    print(f"{'step':>10}{'one process':>14}{f'{count} processes':>14}{'speedup':>9}")
    rows = []
    for compute in COMPUTE:
        spec = f"{Path(__file__).resolve()}:Busy"
        vecs = [make_vec(spec, ENVS, workers=workers, seconds=compute) for workers in (1, count)]
        actions = np.zeros((ENVS, 2))
        try:
            for vec in vecs:
                vec.reset(seed=0)
            times = [[seconds_per_step(vec, actions) for vec in vecs] for _ in range(ROUNDS)]
        finally:
            for vec in vecs:
                vec.close()
        one, several = np.min(times, axis=0)
        rows.append(
            {
                "step_ms": compute * 1e3,
                "processes": count,
                "load": load,
                "one_ms": one * 1e3,
                "several_ms": several * 1e3,
                "speedup": one / several,
            }
        )
        print(f"{compute * 1e3:>7.1f} ms{one * 1e3:>11.2f} ms{several * 1e3:>11.2f} ms{one / several:>9.2f}")
    OUT.parent.mkdir(exist_ok=True)
    with OUT.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
