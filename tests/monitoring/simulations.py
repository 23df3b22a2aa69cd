"""Simulations of the monitor's claims; ``python -m tests.monitoring.simulations`` writes their results.

Each simulation repeats a recursion of ``steingate.monitoring`` for many runs at once; the tests compare both.
"""

import numpy as np

from steingate.monitoring.wealth import BLOCK, THETA

DELTA, BUDGET = 0.05, 0.1


def simulate_unsafe(rows, budget, delta):
    """Return the episode at which each run is shown unsafe (0: never); rows of violations, shape (runs,)."""
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
