"""Exact probabilities of what a monitor will report, by a walk over counts instead of simulation.

``python -m tests.monitoring.walks`` writes results/monitor_peeking.csv and results/monitor_price.csv.
"""

import csv
from math import log
from pathlib import Path

import numpy as np
from scipy.special import logsumexp
from scipy.stats import binom

from steingate.monitoring.wealth import bets_below

RESULTS = Path(__file__).parents[2] / "results"
RATES, DELTA = (0.02, 0.1, 0.3), 0.05
BUDGETS = {0.1: (0.0, 0.01, 0.03, 0.05), 0.05: (0.0, 0.01, 0.03)}


def log_wealths(mixture, violations, safe):
    """``BetMixture.log_wealth`` for arrays of counts."""
    terms = np.multiply.outer(mixture.log_violation, violations) + np.multiply.outer(mixture.log_safe, safe)
    return logsumexp(terms + np.array(mixture.log_weights)[:, None], axis=0)


def critical(budget, delta, most):
    """Fewest safe episodes that certify after 0, 1, 2, ... violations (``most + 1``: never)."""
    over = np.arange(most + 1)
    low, high = np.zeros(most + 1, np.int64), np.full(most + 1, most + 1)
    while (high - low > 1).any():
        middle = (low + high) // 2
        enough = log_wealths(bets_below(budget), over, middle) >= -log(delta)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


def chance_certified(p, budget, delta, episodes):
    """Probability that the policy has been certified by each time up to ``episodes`` if the true rate is p."""
    needed = critical(budget, delta, episodes)
    return chance_stopped(p, [int((t - np.arange(t + 1) >= needed[: t + 1]).sum()) - 1 for t in range(episodes + 1)])


def chance_stopped(p, largest):
    """Probability of having stopped by each time t: at most ``largest[t]`` violations (-1: never) at a true rate p."""
    alive, stopped = np.zeros(len(largest) + 1), np.zeros(len(largest))
    alive[0] = 1.0
    for t in range(1, len(largest)):
        alive[1 : t + 1] = alive[1 : t + 1] * (1 - p) + alive[:t] * p
        alive[0] *= 1 - p
        reach = largest[t] + 1
        stopped[t] = stopped[t - 1] + alive[:reach].sum()
        alive[:reach] = 0.0
    return stopped


def fixed_sample_rule(budget, episodes):
    """Most violations among n = 0, 1, ... episodes whose Clopper-Pearson bound is below the budget."""
    return binom.ppf(DELTA, np.arange(episodes + 1), budget).astype(int) - 1


def peeking(episodes=10_000):
    """Probability that each bound, computed after every episode, was below the true rate at some time so far."""
    looks = sorted({100, 1000, *(round(float(n)) for n in np.geomspace(1, 10_000, 60))})
    for p in RATES:
        fixed = chance_stopped(p, fixed_sample_rule(p, episodes))
        monitor = chance_certified(p, p, DELTA, episodes)
        for n in (n for n in looks if n <= episodes):
            yield {"risk": f"{p:g}", "episodes": str(n), "fixed_n": f"{fixed[n]:.4g}", "monitor": f"{monitor[n]:.4g}"}


def prices(episodes=2500):
    """Episodes that the monitor and the best fixed-sample test need."""
    for budget, rates in BUDGETS.items():
        fixed = fixed_sample_rule(budget, episodes)
        for p in rates:
            monitor = chance_certified(p, budget, DELTA, episodes)
            power = binom.cdf(fixed, np.arange(episodes + 1), p) * (fixed >= 0)
            row = {"budget": f"{budget:g}", "risk": f"{p:g}"}
            for name, level in (("median", 0.5), ("q90", 0.9)):
                row[f"monitor_{name}"] = str(int(np.searchsorted(monitor, level)))
                row[f"fixed_{name}"] = str(int(np.argmax(power >= level)))
            yield row


if __name__ == "__main__":
    for name, table in (("monitor_peeking", list(peeking())), ("monitor_price", list(prices()))):
        with open(RESULTS / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)
