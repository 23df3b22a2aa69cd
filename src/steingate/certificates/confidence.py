"""A risk bound that holds with a chosen probability, for a number of episodes that was fixed beforehand.

For a hard exceedance, whose risks are 0 and 1, it is the exact binomial bound of Clopper and Pearson; for any
other risk function the bound on a mean of ``core.mean_bound``. Nothing but the risks enters, so neither the
reference nor the kernel need to fit the task.
"""

from dataclasses import dataclass
from math import log, log1p

import numpy as np
import numpy.typing as npt

from steingate.certificates.bounds import clopper_pearson_upper
from steingate.certificates.mean_bound import mean_upper, padded_within
from steingate.certificates.plan import MOST_EPISODES
from steingate.certificates.risk import Exceedance, Risk

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ConfidenceRule:
    """What the bound needs to know of a certificate."""

    binary: bool  # the risk is 0 or 1, so the exact binomial bound applies
    top: float  # the risk of the largest cost, which no mean exceeds
    budget: float
    delta: float

    @classmethod
    def build(cls, risk: Risk, budget: float, delta: float) -> "ConfidenceRule":
        """Return the rule for a risk function, a budget and an error probability."""
        top = float(np.asarray(risk(np.array([1.0])), dtype=np.float64)[0])
        return cls(isinstance(risk, Exceedance), top, budget, delta)

    def upper(self, risks: Array) -> float:
        """Return the bound on the mean risk, given the risks of independent episodes."""
        if self.binary:
            return clopper_pearson_upper(int(np.count_nonzero(risks)), risks.size, self.delta)
        return min(mean_upper(risks, self.delta), self.top)

    def more_episodes(self, risks: Array) -> int | None:
        """Return how many further episodes of no risk bring the bound within the budget, 0 if it is.

        ``None`` when the mean risk of the episodes is itself over the budget, so that further ones like them
        would not do, and when the number is too large to count (1e15).
        """
        if float(risks.mean()) > self.budget:
            return None
        if self.upper(risks) <= self.budget:
            return 0
        n, hits = risks.size, int(np.count_nonzero(risks)) if self.binary else 0
        soft = None if self.binary else padded_within(risks, self.delta, self.budget)

        def holds(extra: int) -> bool:
            if soft is not None:
                return soft(extra)
            return clopper_pearson_upper(hits, n + extra, self.delta) <= self.budget

        # No bound lies below the mean, nor below what as many episodes without any risk would give.
        fewest = max(float(risks.sum()) / self.budget, log(self.delta) / log1p(-self.budget))
        if fewest > MOST_EPISODES:
            return None
        low = max(int(fewest) - n - 1, 0)
        reach = max(4, int(0.1 * fewest))
        while not holds(low + reach):
            low, reach = low + reach, 2 * reach
            if low > MOST_EPISODES:
                return None
        high = low + reach
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle, high)
        return high
