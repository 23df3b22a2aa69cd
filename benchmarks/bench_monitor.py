"""Time of ``Monitor``: one update, a million updates at once, and each query.

``python benchmarks/bench_monitor.py`` writes results/bench_monitor.csv. Times are the shortest of several
runs. Targets: at most 10 us per update, and 0.5 s for a million with ``update_many``.
"""

import csv
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from steingate.monitoring.monitor import Monitor

OUT = Path(__file__).resolve().parent.parent / "results" / "bench_monitor.csv"
LIMIT = 25.0
RATES = (0.0, 0.03, 0.1, 0.5)


def make_costs(n: int, violation_rate: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.where(rng.random(n) < violation_rate, LIMIT + 50.0 * rng.random(n), LIMIT * rng.random(n))


def best(function: Callable[[], object], times: int) -> float:
    """Return the shortest of several runs in seconds."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        found.append(time.perf_counter() - start)
    return min(found)


def one_by_one(costs: list[float]) -> None:
    monitor = Monitor(LIMIT)
    for cost in costs:
        monitor.update(cost)


def main() -> None:
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors at the start")
    titles = ("bound", "tail", "summary", "to_dict")
    print(f"{'rate':>6}{'update':>12}{'10^6 at once':>15}" + "".join(f"{title:>12}" for title in titles))
    rows = []
    for rate in RATES:
        short, long = make_costs(20_000, rate).tolist(), make_costs(1_000_000, rate)
        monitor = Monitor(LIMIT)
        monitor.update_many(long[:10_000])
        row = {
            "violation_rate": rate,
            "update_us": best(lambda s=short: one_by_one(s), 5) / len(short) * 1e6,
            "million_s": best(lambda x=long: Monitor(LIMIT).update_many(x), 3),
            "bound_us": best(lambda m=monitor: m.bound, 50) * 1e6,
            "tail_us": best(monitor.tail, 20) * 1e6,
            "summary_us": best(lambda m=monitor: m.summary, 20) * 1e6,
            "to_dict_us": best(monitor.to_dict, 20) * 1e6,
        }
        rows.append(row)
        print(
            f"{rate:6g}{row['update_us']:9.2f} us{row['million_s']:13.3f} s{row['bound_us']:9.0f} us"
            f"{row['tail_us']:9.0f} us{row['summary_us']:9.0f} us{row['to_dict_us']:9.0f} us",
            flush=True,
        )
    OUT.parent.mkdir(exist_ok=True)
    with OUT.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: f"{value:.4g}" for name, value in row.items()} for row in rows)


if __name__ == "__main__":
    main()
