"""The largest wealth a mixture of bets has ever had, and when it first sufficed."""

from dataclasses import dataclass, field
from math import exp

import numpy as np
import numpy.typing as npt

from steingate.monitoring.bets import Counts, Mixture

Flags = npt.NDArray[np.bool_]


@dataclass
class Evidence:
    """Wealth of a mixture that rises with one kind of episode and falls with the other.

    Between falls the wealth only rises, so its maximum is kept at the ends of such stretches; the present
    one follows from the counts. All is a function of the order of episodes, not of how they were passed in.

    Attributes
    ----------
    mixture, threshold : the bets, and the logarithm of the wealth that suffices
    on_over : whether the wealth rises with an episode over the limit, else with one within it
    best : the largest logarithm of the wealth at the end of any stretch so far, at least 0
    first : the episode, counted from 1, at which it first sufficed
    """

    mixture: Mixture
    threshold: float
    on_over: bool
    best: float = 0.0
    first: int | None = None
    _patience: int = field(default=0, repr=False)  # rises that cannot suffice, however they fall out

    def rise(self, over: int, under: int) -> None:
        """Take note of an episode that raised the wealth; the counts include it."""
        if self.first is not None:
            return
        if self._patience:
            self._patience -= 1
            return
        missing = self.threshold - self.mixture.level(over, under)
        if missing <= 0.0:
            self.first = over + under
            return
        fastest = max(self.mixture.over if self.on_over else self.mixture.under)
        slack = 4.0 * self.mixture.slack(over + 1000, under + 1000)
        self._patience = min(1000, max(0, int((missing - slack) / fastest) - 1))

    def end(self, over: int, under: int) -> None:
        """Take note that a stretch has ended with these counts."""
        level = self.mixture.level(over, under)
        if level > self.best:
            self.best = level

    def highest(self, over: int, under: int) -> float:
        """Return the largest logarithm of the wealth so far, given the present counts."""
        return max(self.best, self.mixture.level(over, under))

    def p_value(self, over: int, under: int) -> float:
        """Return 1 / (largest wealth so far), valid at any time at which one chooses to look."""
        return min(1.0, exp(-self.highest(over, under)))

    def advance(self, flags: Flags, over: Counts, under: Counts, rising: bool) -> None:
        """Do what ``rise`` and ``end`` do for one episode after another.

        Parameters
        ----------
        flags
            Whether each new episode was over the limit.
        over, under
            Counts before the first new episode and after each, so one entry more than ``flags``.
        rising
            Whether the episode before the first new one raised the wealth.
        """
        self._patience = 0
        up = flags == self.on_over
        before = np.concatenate([[rising], up])
        ends = np.flatnonzero(before[:-1] & ~up)  # counts with these indices are the last of a stretch
        last = len(flags)
        looks = np.append(ends, last) if up[-1] else ends
        if not len(looks):
            return
        slack = self.mixture.slack(float(over[-1]), float(under[-1]))
        least = self.best if self.first is not None else min(self.best, self.threshold)
        levels = self.mixture.levels(over[looks], under[looks], least - slack)
        if self.first is None:
            self._find_first(up, over, under, looks[levels >= self.threshold - slack], slack)
        at_ends = levels[: len(ends)]
        if len(ends):
            near = at_ends >= max(float(at_ends.max()), self.best) - slack
            for index in ends[near].tolist():
                self.end(int(over[index]), int(under[index]))

    def _find_first(self, up: Flags, over: Counts, under: Counts, looks: Counts, slack: float) -> None:
        """Look for the first sufficient wealth in the stretches that end at ``looks``."""
        falls = np.flatnonzero(~up)

        def level(index: int) -> float:
            return self.mixture.level(int(over[index]), int(under[index]))

        for end in looks.tolist():
            place = int(np.searchsorted(falls, end))  # falls before the end of this stretch
            low = int(falls[place - 1]) + 1 if place else 0  # counts at the start of the stretch
            high = end
            while high - low > 1:  # the first index whose level may suffice lies in (low, high]
                middle = (low + high) // 2
                low, high = (low, middle) if level(middle) >= self.threshold - slack else (middle, high)
            for index in range(high, end + 1):
                if index > 0 and self.threshold - level(index) <= 0.0:
                    self.first = int(over[index] + under[index])
                    return
