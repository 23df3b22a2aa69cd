"""Exact chances of what a monitor will ever say, by a walk over counts; no simulation."""

from math import log

import numpy as np

from steingate.monitoring.wealth import bets_below


def critical(budget, delta, most):
    """Fewest episodes within the limit that certify after 0, 1, 2, ... violations (``most + 1``: never)."""
    mixture, threshold = bets_below(budget), -log(delta)
    over = np.arange(most + 1)
    low, high = np.zeros(most + 1, np.int64), np.full(most + 1, most + 1)
    while (high - low > 1).any():
        middle = (low + high) // 2
        enough = mixture.log_wealths(over, middle) >= threshold
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


def chance_certified(p, budget, delta, episodes):
    """Chance that the certificate has been given by each time up to ``episodes`` when the true risk is p."""
    needed = critical(budget, delta, episodes)
    alive = np.zeros(episodes + 2)
    alive[0] = 1.0
    done = np.zeros(episodes + 1)
    for t in range(1, episodes + 1):
        reach = t + 1
        alive[1:reach] = alive[1:reach] * (1 - p) + alive[: reach - 1] * p
        alive[0] *= 1 - p
        certain = (t - np.arange(reach)) >= needed[:reach]
        done[t] = done[t - 1] + alive[:reach][certain].sum()
        alive[:reach][certain] = 0.0
    return done
