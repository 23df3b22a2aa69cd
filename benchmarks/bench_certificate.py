"""Time of a certificate by number of episodes: ``python benchmarks/bench_certificate.py``.

Each time is the best of several calls. The first call also computes the Stein factor and the null quantile of
``corrected``, which later calls reuse. ``n x n`` is the KSD from whole matrices of the same samples.
"""

import csv
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from steingate import SteinCertificate, certify
from steingate.certificates.kernels import Kernel, released_length, stein_kernel

OUT = Path(__file__).resolve().parent.parent / "results" / "bench_certificate.csv"
SIZES = (16, 40, 1_000)
LIMIT = 25.0
LARGEST_MATRIX = 3000


def make_costs(n: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    costs = 2.0 * LIMIT * rng.beta(2, 6, n)
    kind = rng.random(n)
    costs[kind < 0.05] = 0.0
    costs[kind > 0.98] = 3.0 * LIMIT
    return costs


def matrix_ksd(certificate: SteinCertificate, costs: np.ndarray) -> float:
    """Return the KSD of a certificate from n x n matrices."""
    x = np.minimum(costs / certificate.scale, 1.0)
    x = np.clip(x[(x > certificate.atom_tol) & (x < 1 - certificate.atom_tol)], 1e-5, 1 - 1e-5)
    kernel = certificate.base_kernel or Kernel(certificate.kernel, released_length(x))
    return float(stein_kernel(x, x, certificate.interior, kernel, certificate.operator).mean()) ** 0.5


def best_time(function: Callable[[], object]) -> tuple[float, float]:
    """Return the times of the first and of the fastest call."""
    times = []
    while len(times) < 3 or (sum(times) < 1.0 and len(times) < 2000):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return times[0], min(times)


def main() -> None:
    rows = []
    for name in ("violation", "paper", "released", "corrected"):
        for n in SIZES:
            costs = make_costs(n)
            row: dict[str, object] = {"certificate": name, "episodes": n}
            if name == "violation":
                row["first_seconds"], row["seconds"] = best_time(lambda costs=costs: certify(costs, LIMIT).bound)
            else:
                certificate = SteinCertificate.from_name(name, LIMIT)
                evaluate = certificate.evaluate
                row["first_seconds"], row["seconds"] = best_time(lambda costs=costs, f=evaluate: f(costs))
                if n <= LARGEST_MATRIX:
                    found, expected = evaluate(costs).interior_discrepancy, matrix_ksd(certificate, costs)
                    row["matrix_seconds"] = best_time(lambda c=certificate, x=costs: matrix_ksd(c, x))[1]
                    row["relative_difference"] = abs(found / expected - 1)
            rows.append(row)
            print(
                "  ".join(
                    f"{key} {value:.3g}" if isinstance(value, float) else f"{value}" for key, value in row.items()
                )
            )
    with OUT.open("w", newline="") as file:
        names = ("certificate", "episodes", "first_seconds", "seconds", "matrix_seconds", "relative_difference")
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)


if __name__ == "__main__":
    main()
