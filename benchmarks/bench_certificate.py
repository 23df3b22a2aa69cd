"""Time and memory of certificates, and of the same Stein discrepancy from n x n matrices.

``python benchmarks/bench_certificate.py [--quick]`` writes results/bench_certificate.csv. Each case runs in a process
of its own with one thread, so that its peak memory is its own. The first evaluation with a number of episodes also
computes the null quantile of ``valid``; later ones reuse it. It has a column of its own.
"""

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from steingate.certificates.kernels import Kernel
from steingate.certificates.stein import SteinCertificate
from steingate.certificates.violation import certify

OUT = Path(__file__).resolve().parent.parent / "results" / "bench_certificate.csv"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
PRESETS = ("paper", "released", "valid", "violation")
SIZES = (16, 40, 1_000, 10_000, 100_000, 1_000_000)
LIMIT = 25.0
MATRICES = 10  # n x n arrays that the direct computation has at once


def make_costs(n: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    costs = 2.0 * LIMIT * rng.beta(2, 6, n)
    kind = rng.random(n)
    costs[kind < 0.05] = 0.0
    costs[kind > 0.98] = 3.0 * LIMIT
    return costs


def direct_discrepancy(costs: np.ndarray, certificate: SteinCertificate) -> float:
    """Return the KSD of the costs between the atoms from n x n matrices."""
    x = np.minimum(costs / certificate.scale, 1.0)
    x = x[(x > certificate.atom_tol) & (x < 1 - certificate.atom_tol)]
    kernel = certificate.base_kernel
    if kernel is None:
        squares = np.sort(((x[:, None] - x[None, :]) ** 2)[np.triu_indices(x.size, 1)])
        median = squares[(squares.size - 1) // 2]
        length = max(median / max(np.log(x.size + 1), 1.0), certificate.min_bandwidth**2) ** 0.5
        kernel = Kernel(certificate.kernel, length)
    d = x[:, None] - x[None, :]
    if kernel.name == "rbf":
        k = np.exp(-(d**2) / (2 * kernel.length**2))
        k1 = -d / kernel.length**2 * k
        k2 = (d**2 / kernel.length**4 - 1 / kernel.length**2) * k
    else:  # matern52
        c = 5**0.5 / kernel.length
        r = c * np.abs(d)
        k = (1 + r + r**2 / 3) * np.exp(-r)
        k1 = -c * np.sign(d) * (r + r**2) / 3 * np.exp(-r)
        k2 = c**2 * (r**2 - r - 1) / 3 * np.exp(-r)
    weighted = certificate.operator == "weighted"
    a = x * (1 - x) if weighted else np.ones_like(x)
    b = certificate.interior.score(x) * a + (1 - 2 * x if weighted else 0.0)
    u = b[:, None] * b * k + (a[:, None] * b - b[:, None] * a) * k1 - a[:, None] * a * k2
    return float(u.mean()) ** 0.5


def timed(function: Callable[[], float]) -> tuple[float, float]:
    """Return time and value of one call."""
    start = time.perf_counter()
    value = function()
    return time.perf_counter() - start, value


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_case(preset: str, n: int, how: str) -> dict[str, float]:
    """Return times, memory and discrepancy (or bound) of one case, in this process."""
    costs = make_costs(n)
    certificate = None if preset == "violation" else SteinCertificate.from_name(preset, LIMIT)
    before = peak_mb()

    def call() -> float:
        if certificate is None:
            return certify(costs, LIMIT).bound
        if how == "direct":
            return direct_discrepancy(costs, certificate)
        return certificate.evaluate(costs).interior_discrepancy

    first, value = timed(call)
    seconds = [first] if how == "direct" and first > 2.0 else [timed(call)[0] for _ in range(3)]
    while sum(seconds) < 2.0 and len(seconds) < 5000:
        seconds.append(timed(call)[0])
    return {"value": value, "first": first, "seconds": min(seconds), "added_mb": peak_mb() - before}


def in_process(preset: str, n: int, how: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--case", preset, str(n), how]
    done = subprocess.run(command, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def measure(preset: str, n: int) -> dict[str, Any]:
    found = in_process(preset, n, "library")
    row: dict[str, Any] = {
        "preset": preset,
        "n": n,
        "seconds": found["seconds"],
        "first_seconds": found["first"],
        "added_mb": found["added_mb"],
    }
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if preset != "violation" and MATRICES * 8 * n * n < free:
        direct = in_process(preset, n, "direct")
        row["direct_seconds"] = direct["seconds"]
        row["direct_added_mb"] = direct["added_mb"]
        row["ratio"] = direct["seconds"] / found["seconds"]
        row["relative_difference"] = abs(found["value"] / direct["value"] - 1)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="at most 1,000 episodes")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--case", nargs=3, metavar=("PRESET", "N", "HOW"), help="one case, as JSON")
    options = parser.parse_args()
    if options.case:
        preset, n, how = options.case
        print(json.dumps(run_case(preset, int(n), how)))
        return
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors at the start")
    titles = ("time", "first call", "added", "n x n time", "added", "ratio", "difference")
    print(f"{'preset':12}{'n':>8}" + "".join(f"{title:>13}" for title in titles))
    rows = []
    for preset in PRESETS:
        for n in SIZES[:3] if options.quick else SIZES:
            row = measure(preset, n)
            rows.append(row)
            line = f"{preset:12}{n:8d}{row['seconds'] * 1e3:10.3f} ms{row['first_seconds'] * 1e3:10.3f} ms"
            line += f"{row['added_mb']:10.0f} MB"
            if "ratio" in row:
                line += f"{row['direct_seconds'] * 1e3:10.2f} ms{row['direct_added_mb']:10.0f} MB"
                line += f"{row['ratio']:13.1f}{row['relative_difference']:13.1e}"
            print(line, flush=True)
    options.out.parent.mkdir(exist_ok=True)
    with options.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {name: f"{value:.6g}" if isinstance(value, float) else value for name, value in row.items()} for row in rows
        )


if __name__ == "__main__":
    main()
