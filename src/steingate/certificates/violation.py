"""Exact upper bound on P(cost > limit) from the costs of a fixed number of episodes.

With k violations in n independent episodes of one policy, the bound of Clopper and Pearson (1934) is the
largest p for which k or fewer violations have probability at least 1 - confidence. ``episodes_for_power``
plans the number of episodes.

Episodes of one cluster (a day, storm, robot or training seed) may depend on each other in any way if the clusters are
independent. With the fraction y_j of violations in cluster j, the bound is then that of betting against E[y] >= m
(``betting``). It bounds the expected fraction of violations in a new cluster: each cluster has the same weight,
whatever its size. That is the violation probability of an episode if the sizes are equal, or do not depend on the risk
of the cluster.
"""

from bisect import bisect_left, bisect_right
from dataclasses import asdict, dataclass
from math import ceil, expm1, inf, log, log1p
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betainccinv

from steingate.certificates.betting import mean_upper
from steingate.certificates.formatting import count, percent, verdict, violations_text
from steingate.certificates.io import check_costs
from steingate.certificates.shift import ShiftRadius, shift_radius
from steingate.errors import InputError, check_interval

SMALLEST = 1e-12  # smallest risk and smallest 1 - confidence
MAX_EPISODES = 10**15  # larger integers are not exact as floating-point numbers
INDEPENDENT = "The episodes are independent, and from the environment that the policy will meet."
CLUSTERS_INDEPENDENT = "The clusters are independent, and from the environment that the policy will meet."
ASSUMPTIONS = {
    "one policy": "They are of one fixed policy; for the best of k policies, divide 1 - confidence by k.",
    "fixed number": "Their number was fixed before looking at the costs; else use a Monitor.",
    "fixed claim": "Limit, risk and confidence were chosen without looking at these costs.",
    "all episodes": "Every episode that was started counts; else short ones are overrepresented.",
}
MAX_ALLOWED = 1 << 14  # violations that a plan may allow
_HUGE = 1e300  # sums of costs from here on may overflow


@dataclass(frozen=True)
class ViolationResult:
    """Result of :func:`certify`; ``str(result)`` is a sentence with what to do next.

    Attributes
    ----------
    violations, episodes : number of episodes with cost > limit, and of all episodes
    limit, risk, confidence : as given to :func:`certify`
    mean_cost, max_cost : mean and largest cost
    violation_rate : fraction of the episodes with cost > limit; with clusters, the mean of their fractions
    bound : upper bound on P(cost > limit), which holds with probability ``confidence``; with clusters, on the expected
        fraction of violations in a cluster
    clusters : number of clusters, or ``None``

    Examples
    --------
    >>> print(certify([30.0] * 4 + [3.0] * 96, limit=25.0).summary)
    Certified for 10 %: 4 of 100 episodes cost more than 25 (4.0 %); with 95 % confidence at most 9.0 % do.
    """

    violations: int
    episodes: int
    limit: float
    risk: float
    confidence: float
    mean_cost: float
    max_cost: float
    violation_rate: float
    bound: float
    clusters: int | None = None

    @property
    def certified(self) -> bool:
        """Whether the bound is at most ``risk``."""
        return self.bound <= self.risk

    @property
    def shift(self) -> ShiftRadius | None:
        """How much the distribution of the episodes may change with the risk still certified; else ``None``."""
        return shift_radius(self.bound, self.risk) if self.certified else None

    @property
    def more_episodes(self) -> int | None:
        """Number of further episodes without violation that would certify the risk; 0 if it is certified.

        ``None`` if the violation rate is above the risk, or unknown because the episodes are in clusters. Episodes
        that are added after looking at the result void the guarantee: the number is for planning a new sample.
        """
        if self.certified:
            return 0
        if self.clusters is not None or self.violation_rate > self.risk:
            return None
        return episodes_needed(self.risk, self.confidence, self.violations) - self.episodes

    @property
    def summary(self) -> str:
        """Whether the risk is certified, violations and bound, in one line."""
        return verdict(self.outcome, self.risk, self.known)

    @property
    def outcome(self) -> bool | None:
        """True if the risk is certified, False if it is shown to be exceeded, None if the episodes cannot tell.

        It is never False for clusters, for which no lower bound is computed.
        """
        if self.certified:
            return True
        if self.clusters is None and clopper_pearson_lower(self.violations, self.episodes, self.confidence) > self.risk:
            return False
        return None

    @property
    def known(self) -> str:
        """Violations and bound in words."""
        return violations_text(
            self.violations, self.episodes, self.limit, self.bound, self.confidence, self.clusters or 0
        )

    @property
    def advice(self) -> str:
        """What to do next, in one or two sentences."""
        if self.certified:
            units = "episodes" if self.clusters is None else "clusters of episodes"
            return f"This holds for independent {units} of one policy whose number was fixed in advance."
        if self.outcome is False:
            return f"The violation probability is above {percent(self.risk)}: lower the cost of the policy."
        if self.clusters is not None:
            if self.violation_rate > self.risk:
                return f"The violation rate is above {percent(self.risk)}: lower the cost of the policy."
            return "Too few clusters: run new episodes in more of them; more episodes per cluster help less."
        fresh = "Run new episodes, and fix their number in advance; a Monitor may be checked at any time."
        if self.more_episodes is None:
            return (
                f"{count(self.episodes)} cannot tell: the violation rate is above {percent(self.risk)}, but not "
                f"significantly. Lower the cost of the policy, or run more. {fresh}"
            )
        allowed = f"at most {self.violations}" if self.violations else "no"
        many = "violations" if self.violations > 1 else "violation"
        needed = f"{self.episodes + self.more_episodes:,}"
        return f"Too few episodes: {needed} with {allowed} {many} would be enough. {fresh}"

    def __str__(self) -> str:
        return f"{self.summary} {self.advice}"

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers and texts as JSON types."""
        names = ("certified", "more_episodes", "summary", "advice")
        shift = None if self.shift is None else self.shift._asdict()
        return {**asdict(self), **{name: getattr(self, name) for name in names}, "shift": shift}


def certify(
    costs: npt.ArrayLike,
    limit: float,
    risk: float = 0.1,
    confidence: float = 0.95,
    clusters: npt.ArrayLike | None = None,
) -> ViolationResult:
    """Bound P(cost > limit) from the costs of independent episodes, or clusters of episodes, of one policy.

    Parameters
    ----------
    costs : one undiscounted cost per episode, shape (n,). Every episode that was started counts, and the number of
        episodes was fixed before the first look at the costs.
    limit : limit on the episode cost; 0 if no cost is accepted
    risk : accepted violation probability
    confidence : probability with which the bound holds
    clusters : label of the cluster of each episode, shape (n,): texts or integers; clusters may differ in size

    Examples
    --------
    >>> result = certify([3.0] * 96 + [30.0] * 4, limit=25.0)
    >>> result.certified, round(result.bound, 3)
    (True, 0.089)
    >>> days = certify([3.0] * 400, limit=25.0, clusters=[day for day in range(40) for _ in range(10)])
    >>> days.clusters, round(days.bound, 3)
    (40, 0.089)
    """
    values = check_costs(costs)
    check_interval("limit", limit, 0.0, inf, "[)")
    check_interval("risk", risk, SMALLEST, 1.0, "[)")
    delta = error_probability(confidence)
    largest, n = float(values.max()), values.size
    mean = float(np.add.reduce(values)) / n if largest < _HUGE / n else float(np.add.reduce(values / n))
    over = values > limit
    violations = int(np.count_nonzero(over))
    rate, bound, number = violations / n, clopper_pearson_upper(violations, n, confidence), None
    if clusters is not None:
        labels = np.asarray(clusters)
        if labels.shape != (n,):
            raise InputError(f"The clusters have shape {labels.shape}; give one label per cost, {n}.")
        index = np.unique(labels, return_inverse=True)[1]
        fractions = np.bincount(index, weights=over) / np.bincount(index)
        rate, bound, number = float(fractions.mean()), mean_upper(fractions, delta), fractions.size
    return ViolationResult(
        violations, n, float(limit), float(risk), float(confidence), mean, largest, rate, bound, number
    )


def clopper_pearson_upper(k: int, n: int, confidence: float = 0.95) -> float:
    """Return the exact upper confidence bound on a probability after k violations in n independent episodes.

    >>> round(clopper_pearson_upper(0, 29), 4)
    0.0981
    """
    delta = error_probability(confidence)
    for name, value, low, high in (("episodes", n, 1, MAX_EPISODES), ("violations", k, 0, n)):
        if not low <= value <= high or value != int(value):
            raise InputError(f"The number of {name} is {value!r}; give a whole number from {low} to {high:g}.")
    if k == n:
        return 1.0
    if k == 0:
        return -expm1(log(delta) / n)
    return float(betainccinv(float(k + 1), float(n - k), delta))


def clopper_pearson_lower(k: int, n: int, confidence: float = 0.95) -> float:
    """Return the exact lower confidence bound on a probability after k violations in n independent episodes.

    >>> round(clopper_pearson_lower(29, 29), 4)
    0.9019
    """
    return 1.0 - clopper_pearson_upper(n - k, n, confidence)


def episodes_needed(risk: float, confidence: float = 0.95, violations: int = 0) -> int:
    """Return the smallest number of episodes that certifies a risk if ``violations`` of them are violations.

    >>> episodes_needed(0.1), episodes_needed(0.1, violations=3)
    (29, 76)
    """
    check_interval("risk", risk, SMALLEST, 1.0, "[)")

    def certifies(episodes: int) -> bool:
        return clopper_pearson_upper(violations, episodes, confidence) <= risk

    enough = max(1, 2 * violations, ceil(log(error_probability(confidence)) / log1p(-risk)))
    while not certifies(enough):
        enough *= 2
    return bisect_left(range(enough), True, lo=max(violations, 1), key=certifies)


def certification_power(episodes: int, expected: float, risk: float = 0.1, confidence: float = 0.95) -> float:
    """Return the probability that ``certify`` certifies ``risk`` if the violation probability is ``expected``.

    >>> round(certification_power(29, 0.03), 2)
    0.41
    """
    check_interval("expected", expected, 0.0, 1.0, "[)")
    allowed = bisect_right(range(episodes), risk, key=lambda v: clopper_pearson_upper(v, episodes, confidence)) - 1
    return float(betainc(episodes - allowed, allowed + 1, 1.0 - expected)) if allowed >= 0 else 0.0


def episodes_for_power(
    expected: float, power: float = 0.9, risk: float = 0.1, confidence: float = 0.95
) -> tuple[int, int]:
    """Return the smallest number of episodes that certifies with probability ``power``, and the violations allowed.

    For each number v of allowed violations the best number of episodes is the smallest that certifies with v.
    ``expected`` is the violation probability that the policy is expected to have, below ``risk``.

    >>> episodes_for_power(0.03)
    (103, 5)
    """
    check_interval("risk", risk, SMALLEST, 1.0, "[)")
    check_interval("power", power, 0.0, 1.0)
    check_interval("expected", expected, 0.0, risk, "[)")
    for allowed in range(MAX_ALLOWED):
        episodes = episodes_needed(risk, confidence, allowed)
        if betainc(episodes - allowed, allowed + 1, 1.0 - expected) >= power:
            return episodes, allowed
    raise InputError(
        f"expected {expected:g} is too close to the risk {risk:g}: more than {MAX_ALLOWED:,} violations would occur."
    )


def error_probability(confidence: float) -> float:
    """Return 1 - confidence without the rounding error of the difference: 0.05 for 0.95."""
    delta = round(1.0 - confidence, 15)
    if not SMALLEST <= delta < 1.0:
        raise InputError(f"confidence is {confidence!r}; give a probability between 0 and 1.")
    return delta
