"""Simulations of the monitor's claims; ``python -m tests.monitoring.simulations`` writes their results.

Each simulation computes a recursion of ``steingate.monitoring`` for many runs at once; the tests compare it with the
classes. Random episodes are rows of shape (runs,).
"""

import csv
from bisect import bisect_left
from collections import Counter
from pathlib import Path

import numpy as np
from scipy.special import betainc, betaln
from scipy.stats import binom, norm
from tests.monitoring.walks import chance_certified

from steingate.monitoring.compare import BETS
from steingate.monitoring.drift import CostDriftDetector
from steingate.monitoring.monitor import Monitor
from steingate.monitoring.wealth import BLOCK, RHO, THETA, WEIGHTS

DELTA, BUDGET = 0.05, 0.1
OUT = Path(__file__).parents[2] / "results" / "monitor_simulations.csv"


def simulate_unsafe(rows, budget, delta):
    """Return the episode at which each run is shown unsafe (0: never)."""
    theta, wealth, found = np.array(THETA), 0.0, None
    for t, x in enumerate(rows):
        found = np.zeros(len(x), int) if found is None else found
        block = t // BLOCK + 1
        start = 1 / (block * (block + 1)) if t % BLOCK == 0 else 0.0
        wealth = np.minimum((wealth + start) * (1 + theta * (np.asarray(x)[:, None] - budget) / budget), 1e300)
        found[(found == 0) & (wealth.mean(axis=1) >= 1 / delta)] = t + 1
        if found.all():
            break
    return found


def false_unsafe(runs=2_000, looks=20_000, seed=0):
    """Share of runs at the budget that are ever called unsafe."""
    rng = np.random.default_rng(seed)
    return (simulate_unsafe((rng.random(runs) < BUDGET for _ in range(looks)), BUDGET, DELTA) > 0).mean()


def unsafe_delay(rate, restart, runs=50, seed=0, good=5_000):
    """Median delay of ``unsafe`` after a jump from 2 % to ``rate``; without ``restart``: evidence over all episodes."""
    rng = np.random.default_rng(seed)
    if restart:
        rows = (rng.random(runs) < (0.02 if t < good else rate) for t in range(10 * good))
        return float(np.median(simulate_unsafe(rows, BUDGET, DELTA) - good))
    x = np.where(np.arange(3 * good) < good, rng.random((runs, 3 * good)) < 0.02, rng.random((runs, 3 * good)) < rate)
    over = np.cumsum(x, axis=1)[:, :, None]
    safe = np.arange(1, 3 * good + 1)[:, None] - over
    theta = np.array(THETA)
    logs = over * np.log1p(theta * (1 - BUDGET) / BUDGET) + safe * np.log1p(-theta)
    reached = np.logaddexp.reduce(logs, axis=2) - np.log(len(theta)) >= -np.log(DELTA)
    return float(np.median(reached.argmax(axis=1) + 1 - good))


def certified_at(shares, budget, delta):
    """Return the cluster at which each run is certified (0: never); shares of violations, shape (runs, clusters)."""
    c, log_weights = 1 - np.array(RHO)[:, None], np.log(WEIGHTS)[:, None]
    found = np.zeros(len(shares), int)
    for run, share in enumerate(shares):
        logs = log_weights + np.cumsum(np.log1p(c * (budget - share) / (1 - budget)), axis=1)
        reached = np.logaddexp.reduce(logs, axis=0) >= -np.log(delta)
        found[run] = reached.argmax() + 1 if reached.any() else 0
    return found


def beta_clusters(rng, runs, clusters, size, rate, correlation):
    """Return violations of shape (runs, clusters, size), with this correlation within each cluster."""
    scale = 1 / correlation - 1
    chance = rng.beta(rate * scale, (1 - rate) * scale, (runs, clusters, 1))
    return rng.random((runs, clusters, size)) < chance


def markov_episodes(rng, runs, episodes, rate, correlation):
    """Return violations of shape (runs, episodes): a two-state chain with this correlation of neighbors."""
    x = np.empty((runs, episodes), bool)
    x[:, 0] = rng.random(runs) < rate
    for t in range(1, episodes):
        x[:, t] = np.where(rng.random(runs) < correlation, x[:, t - 1], rng.random(runs) < rate)
    return x


def wrong_certificates(x):
    """Return the share of runs that are certified when each episode counts once, and when each cluster does.

    x has the violations at the budget, shape (runs, clusters, size).
    """
    single = certified_at(x.reshape(len(x), -1).astype(float), BUDGET, DELTA) > 0
    clusters = certified_at(x.mean(axis=2), BUDGET, DELTA) > 0
    return single.mean(), clusters.mean()


def cluster_price(rate=0.03, size=10, runs=2_000, seed=0):
    """Median number of episodes until certified: independent episodes in clusters, and one by one."""
    rng = np.random.default_rng(seed)
    x = (rng.random((runs, 400, size)) < rate).mean(axis=2)
    y = (rng.random((runs, 1_200)) < rate).astype(float)
    return float(np.median(size * certified_at(x, BUDGET, DELTA))), float(np.median(certified_at(y, BUDGET, DELTA)))


def pair_probabilities(p_a, p_b, correlation):
    """Return P(only A), P(only B) when both violations come from normal scores with this correlation."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    weights = weights / weights.sum()
    root, rest = np.sqrt(correlation), np.sqrt(1 - correlation)
    a, b = (norm.cdf((norm.ppf(p) - root * nodes) / rest) for p in (p_a, p_b))
    both = weights @ (a * b)
    return p_a - both, p_b - both


def log_e(a, b):
    """Return the logarithm of the e-value of ``ComparisonMonitor`` for arrays of counts."""
    with np.errstate(divide="ignore"):
        return (a + b + 1) * np.log(2.0) + betaln(a + 1, b + 1) + np.log(betainc(a + 1, b + 1, 0.5))


def pairs_until_safer(p_a, p_b, correlation, most=900):
    """Median number of pairs until A is shown to be safer than B; exact, from the law of the pairs that count."""
    alone_a, alone_b = pair_probabilities(p_a, p_b, correlation)
    q, found, a = alone_a / (alone_a + alone_b), np.zeros(most + 1), np.arange(most + 1)
    going = np.zeros(most + 1)  # probability of a pairs with A alone over, not shown yet
    going[0] = 1.0
    for t in range(1, most + 1):
        going = (1 - q) * going + q * np.concatenate([[0.0], going[:-1]])
        reached = log_e(a[: t + 1], t - a[: t + 1]) >= -np.log(DELTA)
        found[t] = going[: t + 1][reached].sum()
        going[: t + 1][reached] = 0.0
    return int(bisect_left(range(10 * most), 0.5, key=lambda n: found @ binom.sf(a - 1, n, alone_a + alone_b)))


def wrong_comparison(runs=4_000, pairs=2_000, rate=0.1, seed=0):
    """Share of runs in which A is ever called safer, although both violate equally often in every pair.

    The dependence is chosen by an adversary who sees the evidence: violations exclude each other when a pair that
    counts could reach the threshold, else they fall together with a probability that alternates.
    """
    rng = np.random.default_rng(seed)
    a, b, wrong = np.zeros(runs, int), np.zeros(runs, int), np.zeros(runs, bool)
    for t in range(pairs):
        near = log_e(a, b + 1) >= -np.log(DELTA)
        together = np.where(near, 0.0, rate * (t % 3) / 2)
        u = rng.random(runs)
        a += u < rate - together
        b += (u >= rate - together) & (u < 2 * (rate - together))
        wrong |= log_e(a, b) >= -np.log(DELTA)
    return wrong.mean()


def return_decisions(rows, delta=DELTA):
    """Return the pair at which A is shown to have the higher mean return in each run (0: never).

    Rows have the differences of the returns over their range, shape (runs,).
    """
    bets, wealth, found = np.array(BETS), 0.0, None
    for t, row in enumerate(rows, start=1):
        found = np.zeros(len(row), int) if found is None else found
        wealth = wealth + np.log1p(bets * np.clip(row, -1.0, 1.0)[:, None])
        reached = np.logaddexp.reduce(wealth, axis=1) - np.log(len(bets)) >= -np.log(delta)
        found[(found == 0) & reached] = t
        if found.all():
            break
    return found


def wrong_higher_return(runs=2_000, pairs=2_000, seed=0):
    """Share of runs in which A is ever shown to have the higher return, although the mean difference is always 0.

    The differences are skewed to alternating sides, as rare accidents of one policy would cause.
    """
    rng = np.random.default_rng(seed)
    rows = (np.where(rng.random(runs) < 0.1, -0.9, 0.1) * (1 if t % 100 < 50 else -1) for t in range(pairs))
    return (return_decisions(rows) > 0).mean()


def pairs_until_higher_return(same_seeds, runs=500, most=4_000, seed=0):
    """Median number of pairs until the higher of two mean returns is shown.

    The means differ by 1; the standard deviation is 5 between layouts and 2 within; differences count up to 40.
    """
    rng, sd = np.random.default_rng(seed), (2 * (2**2 + (0 if same_seeds else 5**2))) ** 0.5
    found = return_decisions(rng.normal(1.0, sd, runs) / 40.0 for _ in range(most))
    return float(np.median(np.where(found, found, most)))


def gamma_costs(rng, n, shift=0.0):
    """Return costs of a Gamma law with mean 12 and standard deviation 4.9, 1.5 % above 25; the shift moves all."""
    return rng.gamma(6.0, 2.0, n) + shift


def rising_costs(rng, n, rate=0.02):
    """Return costs of which a fraction ``rate`` is above 25; the law of the others never changes."""
    return np.where(rng.random(n) < rate, 25 + rng.exponential(20, n), np.minimum(rng.gamma(6.0, 2.0, n), 25))


def drift_delays(law, runs=50, seed=0, most=5_000, **change):
    """Return the median delay of ``cost_detector`` and ``detector`` after 500 calibration episodes (``most``: none)."""
    delays = np.full((runs, 2), most)
    for run in range(runs):
        rng = np.random.default_rng((seed, run))
        field = Monitor.watch(law(rng, 500), limit=25, seed=run)
        for n, cost in enumerate(law(rng, most, **change).tolist(), start=1):
            field.cost_detector.update(cost, n)
            field.detector.update(float(cost > 25), n)
            if field.cost_detector.alarm and field.detector.alarm:
                break
        for column, detector in enumerate((field.cost_detector, field.detector)):
            delays[run, column] = min([*detector.alarms, most])
    return np.median(delays, axis=0).tolist()


def cost_run_lengths(runs=100, run_length=200.0, calibration=100, most=4_000):
    """Return the episode of the first false alarm of ``CostDriftDetector`` in each run (at most ``most``)."""
    lengths = []
    for run in range(runs):
        rng, detector = np.random.default_rng(run), CostDriftDetector(run_length, run)
        detector.calibrate(Counter(gamma_costs(rng, calibration).tolist()))
        for n, cost in enumerate(gamma_costs(rng, most).tolist(), start=1):
            detector.update(cost, n)
            if detector.alarm:
                break
        lengths.append(n)
    return np.array(lengths)


def table():
    """Yield rows of (claim, setting, value)."""
    rng = np.random.default_rng(0)
    yield "false unsafe", "risk = budget, 20,000 looks", false_unsafe()
    for rate in (0.2, 0.3, 1.0):
        yield "unsafe delay", f"{rate:.0%}, restarting", unsafe_delay(rate, True)
        yield "unsafe delay", f"{rate:.0%}, all episodes", unsafe_delay(rate, False)
    independent = chance_certified(BUDGET, BUDGET, DELTA, 2_000)[-1]
    yield "wrong certificate", "independent", independent
    for correlation in (0.09, 0.33, 0.9):
        single, clusters = wrong_certificates(beta_clusters(rng, 2_000, 200, 10, BUDGET, correlation))
        yield "wrong certificate", f"clusters of 10, correlation {correlation}, counted one by one", single
        yield "wrong certificate", f"clusters of 10, correlation {correlation}, `update_cluster`", clusters
    for correlation in (0.3, 0.6, 0.9):
        x = markov_episodes(rng, 2_000, 2_000, BUDGET, correlation).astype(float)
        wrong = (certified_at(x, BUDGET, DELTA) > 0).mean()
        yield "wrong certificate", f"Markov chain, correlation of neighbors {correlation}", wrong
    yield "wrong certificate", "independent, some of ten policies", 1 - (1 - independent) ** 10
    clusters, single = cluster_price()
    yield "episodes until certified", "risk 3 %, clusters of 10", clusters
    yield "episodes until certified", "risk 3 %, single", single
    yield "wrong comparison", "adversarial pairs, 2,000 looks", wrong_comparison()
    for correlation in (0.0, 0.5, 0.9):
        yield (
            "pairs until safer",
            f"5 % against 8 %, correlation {correlation}",
            pairs_until_safer(0.05, 0.08, correlation),
        )
    yield "wrong comparison of returns", "skewed differences, 2,000 looks", wrong_higher_return()
    for same_seeds in (True, False):
        seeds = "the same seeds" if same_seeds else "separate seeds"
        yield "pairs until a higher return", seeds, pairs_until_higher_return(same_seeds)
    for name, law, change in (("shift", gamma_costs, {"shift": 3.5}), ("rise", rising_costs, {"rate": 0.07})):
        costs, violations = drift_delays(law, **change)
        yield "drift delay", f"{name}, all costs", costs
        yield "drift delay", f"{name}, violation rate", violations


def main():
    """Write the table."""
    with OUT.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(("claim", "setting", "value"))
        for claim, setting, value in table():
            print(claim, setting, f"{value:.4g}", flush=True)
            out.writerow((claim, setting, f"{value:.4g}"))


if __name__ == "__main__":
    main()
