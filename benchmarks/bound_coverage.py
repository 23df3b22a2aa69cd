"""Simulate how often the bounds at a fixed number of episodes are wrong: writes results/bound_coverage.csv.

``python benchmarks/bound_coverage.py`` (a minute). Confidence 95 %, so at most 5 % may be wrong; every distribution is
at its boundary or hard for the bound. ``typical`` is the median of the bound.
"""

import csv
from pathlib import Path

import numpy as np

from steingate import certify
from steingate.certificates.tail import cvar_bound, mean_bound, smallest_limit

REPEATS = 2000
TARGET = Path(__file__).parents[1] / "results" / "bound_coverage.csv"


def main() -> None:
    """Write one row per bound and setting: truth, median of the bound, fraction of wrong bounds."""
    rng, rows = np.random.default_rng(0), []

    def add(bound: str, setting: str, truth: float, found: list[float]) -> None:
        wrong = float(np.mean(np.array(found) < truth))
        rows.append([bound, setting, f"{truth:.4g}", f"{np.median(found):.4g}", f"{wrong:.4f}"])

    for n in (100, 500):
        # Costs: Gamma with mean 8 (limit 25 is exceeded in 1.4 %), in one of twenty episodes 60.
        costs = np.where(rng.random((REPEATS, n)) < 0.05, 60.0, rng.gamma(2.0, 4.0, (REPEATS, n)).clip(max=100.0))
        many = np.where(rng.random(2_000_000) < 0.05, 60.0, rng.gamma(2.0, 4.0, 2_000_000).clip(max=100.0))
        top = np.sort(many)[-200_000:]
        add("smallest limit (10 %)", f"{n} episodes", float(top[0]), [smallest_limit(c) or np.inf for c in costs])
        add("mean, cap 100", f"{n} episodes", float(many.mean()), [mean_bound(c, 100.0) for c in costs])
        cvar = [cvar_bound(c, 0.1, 25.0, 100.0) for c in costs]
        add("CVaR 10 %, threshold 25, cap 100", f"{n} episodes", float(top.mean()), cvar)
    for correlation in (0.0, 0.09, 0.33):
        found: dict[str, list[float]] = {"certify": [], "certify_clusters": []}
        for _ in range(REPEATS):
            total = 1.0 / correlation - 1.0 if correlation else np.inf
            risk = rng.beta(0.1 * total, 0.9 * total, 50) if correlation else np.full(50, 0.1)
            labels = np.repeat(np.arange(50), 10)
            episode_costs = np.where(rng.random(500) < risk[labels], 30.0, 3.0)
            found["certify"].append(certify(episode_costs, 25.0).bound)
            found["certify_clusters"].append(certify(episode_costs, 25.0, clusters=labels).bound)
        for name, bounds in found.items():
            add(f"{name}, risk 0.1", f"50 clusters of 10, correlation {correlation:g}", 0.1, bounds)
    with open(TARGET, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["bound", "setting", "truth", "typical", "wrong"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
