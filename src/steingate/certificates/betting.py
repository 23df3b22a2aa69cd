"""E-values against "the mean of y in [0, 1] is at least m", upper bounds on means, and e-BH.

A bet of size c = 1 - rho multiplies its wealth by

    1 + (1 - rho) (m - y) / (1 - m)

for each y. If every y has a conditional mean of at least m given the earlier ones, the wealth is a nonnegative
supermartingale that starts at 1, and so is a mixture of bets: it is an e-value at every time, and by Ville's
inequality ever reaches 1 / delta with probability at most delta. For y = 1 (violation) or 0 these are the bets of
``Monitor``; for clusters of dependent episodes, y is the fraction of violations in a cluster.
"""

from math import log

import numpy as np
import numpy.typing as npt

from steingate.errors import InputError, check_interval

Array = npt.NDArray[np.float64]

# Weight 0.9 follows quantiles of Beta(0.4, 1), which suits few violations; the last four bets are for means close
# to the bound after many samples.
RHO = (*(((k + 0.5) / 16) ** 2.5 for k in range(16)), 0.95, 0.975, 0.9875, 0.994)
WEIGHTS = (0.9 / 16,) * 16 + (0.1 / 4,) * 4

_LARGEST = 1.0 - 1e-9  # a larger bound is reported as 1
_ACCURACY = 1e-11


def log_factors(y: npt.ArrayLike, m: float) -> Array:
    """Return what values in [0, 1], shape (n,), add to the log wealth of each bet, shape (n, len(RHO))."""
    values = np.asarray(y, dtype=np.float64)[:, None]
    return np.log1p((1.0 - np.array(RHO)) * (m - values) / (1.0 - m))


def log_wealth(y: npt.ArrayLike, m: float) -> float:
    """Return the logarithm of the e-value of the values ``y``, shape (n,), against a mean of at least ``m``."""
    values, counts = np.unique(np.asarray(y, dtype=np.float64), return_counts=True)
    return float(np.logaddexp.reduce(np.log(WEIGHTS) + counts @ log_factors(values, m)))


def mean_upper(y: npt.ArrayLike, delta: float) -> float:
    """Return an upper confidence bound on the mean of values in [0, 1], shape (n,), with error ``delta``.

    It is the m whose wealth is 1 / delta; the wealth increases with m and is at most 1 at the sample mean.

    >>> round(mean_upper([0.0] * 36, 0.05), 4)
    0.0985
    """
    values = np.asarray(y, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not (values.min() >= 0.0 and values.max() <= 1.0):
        raise InputError("The values have to be one dimension of numbers from 0 to 1, at least one.")
    if log_wealth(values, _LARGEST) < -log(delta):
        return 1.0
    from scipy.optimize import brentq  # not above: monitors need NumPy alone

    low = min(float(values.mean()), _LARGEST)
    root = brentq(lambda m: log_wealth(values, m) + log(delta), low, _LARGEST, xtol=_ACCURACY)
    return min(float(root) + 2.0 * _ACCURACY, 1.0)


def e_bh(e_values: npt.ArrayLike, level: float) -> npt.NDArray[np.bool_]:
    """Return which of K hypotheses e-BH rejects (Wang and Ramdas, 2022), from their e-values, shape (K,).

    The k largest are rejected for the largest k whose k-th largest e-value is at least K / (k level). The expected
    fraction of false ones among them is at most ``level`` under any dependence. For a grid of policies, use the
    e-values against "the violation rate is at least the budget": at most this fraction of the selected policies
    are expected to be above it.

    >>> e_bh([50.0, 1.0, 90.0, 0.2], 0.05).tolist()
    [True, False, True, False]
    """
    values = np.asarray(e_values, dtype=np.float64)
    if values.ndim != 1 or not np.all(values >= 0.0):
        raise InputError("The e-values have to be one dimension of numbers that are not negative.")
    check_interval("level", level, 0.0, 1.0)
    rank = np.arange(1, values.size + 1)
    passing = np.flatnonzero(np.sort(values)[::-1] * rank * level >= values.size)
    selected = np.zeros(values.size, dtype=bool)
    if passing.size:
        selected[np.argsort(-values, kind="stable")[: passing[-1] + 1]] = True
    return selected
