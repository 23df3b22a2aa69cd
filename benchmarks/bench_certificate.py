"""Time and memory of a certificate against the plain n x n sum, and the accuracy of the fast sums.

Every figure comes from one run: ``python benchmarks/bench_certificate.py``. Each case runs in a process
of its own on one thread, so that its peak memory is its own. The first evaluation at a sample size also
simulates the null quantile of ``certified`` and answers what the configuration can promise; later ones reuse
both. The column "first call" states it apart.
"""

import csv
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np

from steingate.certificates.certificate import Certificate
from steingate.certificates.kernels import Kernel, KernelName, ksd_squared
from steingate.certificates.reference import Beta

OUT = Path(__file__).resolve().parent.parent / "results" / "bench_certificate.csv"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
PRESETS = ("paper", "released", "certified", "confident", "confident-soft")  # the last with a sigmoid risk
SIZES = (16, 40, 1_000, 10_000, 100_000, 1_000_000)
LIMIT = 25.0
MATRICES = 10  # n x n arrays alive at once in the plain computation, at most


def make_certificate(preset: str) -> Certificate:
    name, _, soft = preset.partition("-")
    return Certificate.preset(name, limit=LIMIT, **({"risk": "sigmoid"} if soft else {}))


def make_costs(n: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    costs = 2.0 * LIMIT * rng.beta(2, 6, n)
    kind = rng.random(n)
    costs[kind < 0.05] = 0.0
    costs[kind > 0.98] = 3.0 * LIMIT
    return costs


def plain_ksd_squared(x: np.ndarray, interior: Any, kernel: Kernel, operator: str) -> float:
    """Return KSD² as one would first write it: whole matrices, no symmetry, no blocks."""
    d, length = x[:, None] - x[None, :], kernel.length
    if kernel.name == "rbf":
        k = np.exp(-(d**2) / (2 * length**2))
        k1 = -d / length**2 * k
        k2 = (d**2 / length**4 - 1 / length**2) * k
    elif kernel.name == "imq":
        k = (1 + d**2 / length**2) ** -0.5
        k1 = -d / length**2 * k**3
        k2 = 3 * d**2 / length**4 * k**5 - k**3 / length**2
    else:
        c = 5**0.5 / length
        r = c * np.abs(d)
        k = (1 + r + r**2 / 3) * np.exp(-r)
        k1 = -c * np.sign(d) * (r + r**2) / 3 * np.exp(-r)
        k2 = c**2 * (r**2 - r - 1) / 3 * np.exp(-r)
    a = x * (1 - x) if operator == "weighted" else np.ones_like(x)
    b = interior.score(x) * a + (1 - 2 * x if operator == "weighted" else 0.0)
    u = b[:, None] * b * k + (a[:, None] * b - b[:, None] * a) * k1 - a[:, None] * a * k2
    return float(u.mean())


def plain_discrepancy(costs: np.ndarray, certificate: Certificate) -> float:
    """Return the interior discrepancy of a certificate from n x n matrices."""
    x = np.minimum(costs / (LIMIT * certificate.scale_multiplier), 1.0)
    inside = x[(x > certificate.zero_tol) & (x < 1 - certificate.one_tol)]
    length = certificate.kernel_length
    if length is None:
        squares = np.sort(((inside[:, None] - inside[None, :]) ** 2)[np.triu_indices(inside.size, 1)])
        median = squares[(squares.size - 1) // 2]
        length = max(median / max(np.log(inside.size + 1), 1.0), certificate.min_bandwidth**2) ** 0.5
    kernel = Kernel(certificate.kernel, length)
    square = plain_ksd_squared(inside, certificate.interior, kernel, certificate.operator)
    certificate.risk(x).mean()  # part of every evaluation, though not of the discrepancy
    return square**0.5 if certificate.interior_statistic == "ksd" else square


def timed(function: Callable[[], float]) -> tuple[float, float, float]:
    """Return elapsed time, processor time and value of one call."""
    start, start_busy = time.perf_counter(), time.process_time()
    value = function()
    return time.perf_counter() - start, time.process_time() - start_busy, value


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def worker(preset: str, n: int, how: str) -> dict[str, float]:
    """Return times, memory and the bound of one case, in this process."""
    certificate = make_certificate(preset)
    costs = make_costs(n)
    at_start = peak_mb()

    def run() -> float:
        if how == "plain":
            return plain_discrepancy(costs, certificate)
        return certificate.evaluate(costs).interior_discrepancy

    first, first_cpu, discrepancy = timed(run)
    calls = [(first, first_cpu)] if how == "plain" and first > 2.0 else [timed(run)[:2] for _ in range(3)]
    while sum(elapsed for elapsed, _ in calls) < 2.0 and len(calls) < 5000:
        calls.append(timed(run)[:2])
    seconds = min(elapsed for elapsed, _ in calls)
    cpu = float(np.median([busy for _, busy in calls]))  # its clock may stand still during one short call
    memory = {"at_start": at_start, "peak": peak_mb()}
    return {"discrepancy": discrepancy, "first": first, "seconds": seconds, "cpu": cpu, **memory}


def run_worker(preset: str, n: int, how: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--worker", preset, str(n), how]
    done = subprocess.run(command, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def case(preset: str, n: int) -> dict[str, Any]:
    ours = run_worker(preset, n, "ours")
    row: dict[str, Any] = {
        "preset": preset,
        "n": n,
        "seconds": ours["seconds"],
        "cpu_seconds": ours["cpu"],
        "first_seconds": ours["first"],
        "cpu_ns_per_sample": ours["cpu"] / n * 1e9,
        "peak_mb": ours["peak"],
        "peak_above_start_mb": ours["peak"] - ours["at_start"],
    }
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if MATRICES * 8 * n * n < free:
        plain = run_worker(preset, n, "plain")
        row |= {
            "plain_seconds": plain["seconds"],
            "plain_cpu_seconds": plain["cpu"],
            "plain_peak_mb": plain["peak"],
            "cpu_ratio": plain["cpu"] / ours["cpu"],
            "relative_difference": abs(ours["discrepancy"] / plain["discrepancy"] - 1),
        }
    return row


def accuracy(n: int = 5000) -> list[tuple[str, str, str, float]]:
    """Return relative errors of the fast KSD² against the plain sum on easy and awkward samples."""
    rng = np.random.default_rng(0)
    plain = np.clip(rng.beta(2, 5, n), 1e-5, 1 - 1e-5)
    clipped = plain.copy()
    clipped[: n // 5], clipped[n // 5 : n // 2] = 1e-5, 1 - 1e-5
    ties = np.clip(np.round(plain * 50) / 50, 1e-5, 1 - 1e-5)
    rows = []
    for label, x in (("plain", plain), ("clipped", clipped), ("ties", ties)):
        for name in get_args(KernelName):
            kernel = Kernel(name, 0.05 if name == "rbf" else 0.2)
            for operator in ("langevin", "weighted"):
                fast = ksd_squared(x, Beta(2, 5), kernel, operator, "V", "fast")
                direct = plain_ksd_squared(x, Beta(2, 5), kernel, operator)
                rows.append((label, name, operator, abs(fast / direct - 1)))
    return rows


def main() -> None:
    rows = []
    load = os.getloadavg()[0]
    print(f"one thread each, load average {load:.1f} on {os.cpu_count()} processors at the start;")
    print("times: best of several calls, processor time: their median; ratio: of processor times;")
    print("memory: peak of the whole process, and what the evaluation added")
    titles = ("time", "processor", "first call", "ns/sample", "MB", "added", "plain n x n", "processor", "MB")
    print(f"{'preset':14} {'n':>8}" + "".join(f"{title:>12}" for title in (*titles, "ratio", "rel. diff")))
    for preset in PRESETS:
        for n in SIZES:
            row = case(preset, n)
            rows.append(row)
            line = f"{preset:14} {n:8d}" + "".join(
                f"{row[name] * 1e3:9.3f} ms" for name in ("seconds", "cpu_seconds", "first_seconds")
            )
            line += (
                f"{row['cpu_ns_per_sample']:12.0f}{row['peak_mb']:12.0f}{row['peak_above_start_mb']:12.0f}"
            )
            if "plain_seconds" in row:
                line += f"{row['plain_seconds'] * 1e3:9.2f} ms{row['plain_cpu_seconds'] * 1e3:9.2f} ms"
                line += (
                    f"{row['plain_peak_mb']:12.0f}{row['cpu_ratio']:12.1f}{row['relative_difference']:12.1e}"
                )
            else:
                line += f"{'does not fit':>14}"
            print(line, flush=True)
    OUT.parent.mkdir(exist_ok=True)
    names = list(dict.fromkeys(name for row in rows for name in row))
    with OUT.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(
            {name: f"{value:.6g}" if isinstance(value, float) else value for name, value in row.items()}
            for row in rows
        )
    print("\nrelative error of the fast KSD² against the plain sum, n = 5000")
    for label, name, operator, error in accuracy():
        print(f"{label:10} {name:10} {operator:10} {error:9.1e}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        print(json.dumps(worker(sys.argv[2], int(sys.argv[3]), sys.argv[4])))
    else:
        main()
