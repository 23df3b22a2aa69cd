"""Simulations of ``BudgetSchedule``; ``python -m tests.algorithms.controller_simulations`` writes their results.

``Controllers`` computes the recursion for many runs at once; the tests compare it with the class.
"""

import csv
from pathlib import Path

import numpy as np

from steingate.algorithms.allowance import BudgetSchedule
from steingate.monitoring.wealth import RHO, THETA, WEIGHTS

B = 0.015
OUT = Path(__file__).parents[2] / "results" / "controller_simulations.csv"
NEVER_SHRINKS = {"alarm": 1e9}  # threshold 1


class Controllers:
    """Controllers with the same settings; ``fraction``, ``changes``, ``evidence`` (E) have shape (runs,)."""

    def __init__(self, schedule, runs):
        self.schedule, self.fraction = schedule, np.full(runs, schedule.init_fraction)
        self.below, self.above = np.zeros((runs, len(RHO))), np.zeros((runs, len(THETA)))
        self.updates, self.changes, self.evidence = np.zeros(runs), np.zeros(runs, int), np.zeros(runs)

    def update(self, violations, n, noise=1.0):
        """Return which controllers grew and which shrank after n more episodes."""
        s, c, a = self.schedule, np.array(RHO), np.array(THETA)
        h, b, self.updates = violations[:, None], min(s.alarm * B * noise, 1.0), self.updates + 1
        start = 1 / (self.updates * (self.updates + 1))
        self.below = (self.below + start[:, None]) * c**h * ((1 - c * B) / (1 - B)) ** (n - h)
        self.above = (self.above + n) * (1 + a * (1 - b) / b) ** h * (1 - a) ** (n - h)
        self.evidence = self.below @ np.array(WEIGHTS)
        delta = s.delta * (6 / (np.pi * (self.changes + 1)) ** 2 if s.spend else 1)
        alarm = self.above.mean(axis=1) >= s.run_length
        shrank = alarm & (self.fraction > s.min_fraction)
        grew = ~alarm & (self.evidence >= 1 / delta) & (self.fraction < 1)
        self.fraction = np.where(shrank, np.maximum(s.shrink * self.fraction, s.min_fraction), self.fraction)
        self.fraction = np.where(grew, np.minimum(s.grow * self.fraction, 1.0), self.fraction)
        changed = shrank | grew
        self.above[alarm | changed], self.below[changed], self.updates[changed] = 0.0, 0.0, 0
        self.changes += changed
        return grew, shrank


# Claim 1: for each value of m, wrong growth has a probability of at most delta. A process returns violations and rates.


def constant(rng, t, evidence, n):
    return rng.binomial(n, B, len(evidence)), B


def waves(rng, t, evidence, n):
    p = B * (1.0 + 0.8 * np.sin(2.0 * np.pi * t / 40.0))
    return rng.binomial(n, p, len(evidence)), p


def within_updates(rng, t, evidence, n):
    return rng.binomial(n // 2, 2.0 * B, len(evidence)), B  # rate 0, then twice B


def bad_luck(rng, t, evidence, n):
    """Rates far above B whenever the evidence for growing is small."""
    p = np.where((t % 20 == 10) & (evidence < 1.0), 0.2, B)
    return rng.binomial(n, p), p


PROCESSES = {
    "at the risk": constant,
    "0 in half of each update, twice the risk in the other": within_updates,
    "at the risk; 20 % at times when the evidence is small": bad_luck,
    "waves of 80 % around the risk, every 40 updates": waves,
}


def wrong_growth(process, runs=3_000, updates=600, n=32, seed=0):
    """Fraction of runs whose first growth is at an update at which every window of the last ones has mean >= B."""
    rng, many = np.random.default_rng(seed), Controllers(BudgetSchedule(**NEVER_SHRINKS), runs)
    excess, open_, wrong = np.full(runs, -np.inf), np.ones(runs, bool), 0
    for t in range(updates):
        violations, p = process(rng, t, many.evidence, n)
        excess = np.maximum(excess, 0.0) + (B - p)  # largest sum of B - p over a window that ends now
        grew, _ = many.update(violations, n)
        wrong += int((open_ & grew & (excess <= 1e-12)).sum())
        open_ &= ~grew
    return wrong / runs


def growth_per_value(runs=500, updates=400, n=32, seed=7, **options):
    """Mean number of growths per value of m, where p = B always, and fraction of runs with one or more."""
    schedule = BudgetSchedule(init_fraction=1e-3, min_fraction=1e-3, **NEVER_SHRINKS, **options)
    rng, many = np.random.default_rng(seed), Controllers(schedule, runs)
    while not many.changes.all():  # m grows rightly once, in all runs at the same time; after it the rate is B
        many.update(np.zeros(runs, int), n)
    before = many.changes.copy()
    for _ in range(updates):
        many.update(rng.binomial(n, B, runs), n)
    return (many.changes - before).sum() / many.changes.sum(), (many.changes > before).mean()


# Claim 2: while p_t <= b, alarms are at least run_length episodes apart on average.


def episodes_to_alarm(n, noise=1.0, rate=None, run_length=1000.0, runs=400, seed=3):
    """Episodes until m first shrinks in each run; by default with the violation rate at the threshold."""
    schedule = BudgetSchedule(run_length=run_length, delta=1e-12)
    rng, many, found, t = np.random.default_rng(seed), Controllers(schedule, runs), np.zeros(runs), 0
    while not found.all():
        t += n
        _, shrank = many.update(rng.binomial(n, 0.67 * B * noise if rate is None else rate, runs), n, noise)
        found[(found == 0) & shrank] = t
    return found


# Where it settles.


def linear(m, t):
    return 0.03 * m


def logistic(m, t):
    return 0.04 / (1.0 + np.exp(-8.0 * (m - 0.45)))


def logistic_waves(m, t):
    return logistic(m, t) * (1.0 + 0.4 * np.sin(2.0 * np.pi * t / 5000.0))


RATES = {"0.03 m": (linear, 0), "logistic in m": (logistic, 0), "logistic, lagging, in waves": (logistic_waves, 1000)}


def settled(rate, n, lag=0, runs=100, episodes=40_000, seed=5, **options):
    """Mean violation rate in multiples of B, mean m, and fraction of time above B, over the second half of runs.

    The rate is that of a fraction that follows m with a time constant of ``lag`` episodes.
    """
    rng, many, found = np.random.default_rng(seed), Controllers(BudgetSchedule(**options), runs), []
    follower = many.fraction
    for t in range(0, episodes, n):
        follower = many.fraction if not lag else follower + (many.fraction - follower) * (1 - np.exp(-n / lag))
        p = rate(follower, t)
        if t >= episodes // 2:
            found.append((p / B, many.fraction, p > B))
        many.update(rng.binomial(n, p), n)
    return tuple(np.mean(found, axis=(0, 2)))


def table():
    """Yield rows of (claim, setting, value)."""
    for setting, process in PROCESSES.items():
        yield "wrong growth", setting, wrong_growth(process)
    for name, spend in (("for each value of m", False), ("in the run, with spend", True)):
        yield "growth at the risk", name, growth_per_value(spend=spend)[int(spend)]
    for n in (1, 20, 40, 128):
        yield "episodes to a false alarm", str(n), episodes_to_alarm(n).mean()
    for setting, (rate, lag) in RATES.items():
        for n in (20, 40, 128, 160):
            for spend in (False, True):
                values = settled(rate, n, lag, spend=spend)
                for claim, value in zip(("rate at rest", "m at rest", "time above the risk"), values, strict=True):
                    yield claim, f"{setting}; {n}" + "; spend" * spend, value


def main():
    """Write the table."""
    with OUT.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(("claim", "setting", "value"))
        for claim, setting, value in table():
            print(claim, setting, f"{value:.3g}", flush=True)
            out.writerow((claim, setting, f"{value:.3g}"))


if __name__ == "__main__":
    main()
