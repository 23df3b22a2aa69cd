"""Exact probabilities of what a monitor will report, by a walk over counts instead of simulation."""

from math import log

import numpy as np
from scipy.special import logsumexp

from steingate.monitoring.wealth import bets_below


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
    alive, done = np.zeros(episodes + 2), np.zeros(episodes + 1)
    alive[0] = 1.0
    for t in range(1, episodes + 1):
        reach = t + 1
        alive[1:reach] = alive[1:reach] * (1 - p) + alive[: reach - 1] * p
        alive[0] *= 1 - p
        certain = (t - np.arange(reach)) >= needed[:reach]
        done[t] = done[t - 1] + alive[:reach][certain].sum()
        alive[:reach][certain] = 0.0
    return done
