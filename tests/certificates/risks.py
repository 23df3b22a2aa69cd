"""Risk functions with closed forms, as a user would write them."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Power:
    """x ** exponent; exponent 1 is the mean normalized cost."""

    exponent: float

    def __call__(self, x):
        return np.asarray(x, dtype=np.float64) ** self.exponent


@dataclass(frozen=True)
class Hinge:
    """Excess over a threshold, as in CVaR."""

    threshold: float

    def __call__(self, x):
        return np.clip((np.asarray(x) - self.threshold) / (1.0 - self.threshold), 0.0, 1.0)

    @property
    def breaks(self):
        return (self.threshold,)
