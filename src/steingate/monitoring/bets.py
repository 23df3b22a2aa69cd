"""Evidence from counts: a mixture of bets, whose wealth depends only on how many episodes went either way.

A bet multiplies its stake by one factor for an episode over the limit and by another for one within it. After
``over`` and ``under`` such episodes, in any order, the logarithm of the mixed wealth is

    log sum_k w_k exp(over a_k + under b_k)

If the wealth cannot grow in expectation under a hypothesis, Ville's inequality says that it ever reaches 1/p
with probability at most p when the hypothesis is true. That is what makes looking at every episode free.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, log, log1p

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

# Shares kept when an episode is over the limit. Most of the stake follows the quantiles of Beta(0.4, 1),
# which suits few violations; the last four are for means close to the bound after many episodes.
KEPT = (*(((k + 0.5) / 16) ** 2.5 for k in range(16)), 0.95, 0.975, 0.9875, 0.994)
STAKES = (0.9 / 16,) * 16 + (0.1 / 4,) * 4
LOG_KEPT = tuple(log(share) for share in KEPT)
LOG_STAKES = tuple(log(stake) for stake in STAKES)

# How boldly to bet that the mean is above a number; for alarms.
BOLDNESS = (0.01, 0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6)


def log_sum_exp(values: Sequence[float]) -> float:
    """Return the logarithm of the sum of exponentials, without overflow."""
    top = max(values)
    return top + log(sum([exp(value - top) for value in values]))


@dataclass(frozen=True)
class Mixture:
    """Bets with logarithmic stakes, and what an episode adds to the logarithm of each one's wealth."""

    stakes: tuple[float, ...]
    over: tuple[float, ...]
    under: tuple[float, ...]

    def level(self, over: float, under: float) -> float:
        """Return the logarithm of the wealth after so many episodes over and within the limit."""
        terms = zip(self.stakes, self.over, self.under, strict=True)
        return log_sum_exp([stake + over * a + under * b for stake, a, b in terms])

    def levels(self, over: Counts, under: Counts, least: float = -inf) -> Array:
        """Return ``level`` for many counts at once, up to ``slack``; those below ``least`` may come lower."""
        terms = np.multiply.outer(self.over, over)
        terms += np.multiply.outer(self.under, under)
        terms += np.array(self.stakes)[:, None]
        levels = np.asarray(terms.max(axis=0))
        near = np.flatnonzero(levels >= min(least, float(levels.max(initial=-inf))) - log(len(self.stakes)))
        top = levels[near]
        levels[near] = top + np.log(np.exp(terms[:, near] - top).sum(axis=0))
        return levels

    def slack(self, over: float, under: float) -> float:
        """Return how much rounding may change a level at most, generously."""
        size = over * max(map(abs, self.over)) + under * max(map(abs, self.under))
        return 1e-12 + 1e-14 * size


def below(budget: float) -> Mixture:
    """Return bets that the mean of values in [0, 1] is below ``budget``."""
    gain = log1p(-budget)
    return Mixture(LOG_STAKES, LOG_KEPT, tuple(log1p(-share * budget) - gain for share in KEPT))


def above(budget: float) -> Mixture:
    """Return bets that the mean of values in [0, 1] is above ``budget``."""
    stakes = (-log(len(BOLDNESS)),) * len(BOLDNESS)
    over = tuple(log1p(bold * (1.0 - budget) / budget) for bold in BOLDNESS)
    return Mixture(stakes, over, tuple(log1p(-bold) for bold in BOLDNESS))
