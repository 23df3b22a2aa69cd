"""Bounds on quantile, mean and CVaR of the episode cost from a fixed number of independent episodes.

Each holds with probability ``confidence`` alone; for several together, divide 1 - confidence by their number. The
cap and the threshold of the CVaR have to be fixed before looking at the costs.
"""

from bisect import bisect_right
from math import inf

import numpy as np
import numpy.typing as npt

from steingate.certificates.betting import mean_upper
from steingate.certificates.io import check_costs
from steingate.certificates.violation import clopper_pearson_upper, error_probability
from steingate.errors import check_interval


def smallest_limit(costs: npt.ArrayLike, risk: float = 0.1, confidence: float = 0.95) -> float | None:
    """Return the smallest limit that ``certify`` certifies: an upper bound on the (1 - risk)-quantile of the cost.

    It is the k-th smallest of n costs, with the smallest k for which P(Binomial(n, 1 - risk) <= k - 1) is at least
    ``confidence``. ``None``: n is too small for any limit.

    >>> smallest_limit(range(1, 101)), smallest_limit([3.0] * 28)
    (96.0, None)
    """
    values = np.sort(check_costs(costs))
    check_interval("risk", risk, 0.0, 1.0)
    n = values.size
    # With n - k violations the bound of certify is at most the risk iff the k-th smallest cost may be the limit.
    allowed = bisect_right(range(n), risk, key=lambda v: clopper_pearson_upper(v, n, confidence))
    return float(values[n - allowed]) if allowed else None


def mean_bound(costs: npt.ArrayLike, cap: float, confidence: float = 0.95) -> float:
    """Return an upper bound on the mean of min(cost, cap): cap times the betting bound of min(cost, cap) / cap.

    It bounds the mean cost if no episode can cost more than ``cap``; without a cap no such bound exists.
    """
    values = check_costs(costs)
    check_interval("cap", cap, 0.0, inf)
    return cap * mean_upper(np.minimum(values, cap) / cap, error_probability(confidence))


def cvar_bound(costs: npt.ArrayLike, fraction: float, threshold: float, cap: float, confidence: float = 0.95) -> float:
    """Return an upper bound on the mean of min(cost, cap) over the worst ``fraction`` of the episodes.

    For every threshold u, CVaR <= u + E[(min(cost, cap) - u)_+] / fraction; the mean is bounded by betting. The
    bound is tightest if u is close to the (1 - fraction)-quantile, such as the limit.
    """
    values = check_costs(costs)
    check_interval("fraction", fraction, 0.0, 1.0, "(]")
    check_interval("cap", cap, 0.0, inf)
    check_interval("threshold", threshold, 0.0, cap, "[)")
    excess = np.clip((values - threshold) / (cap - threshold), 0.0, 1.0)
    bound = mean_upper(excess, error_probability(confidence))
    return min(threshold + (cap - threshold) / fraction * bound, cap)
