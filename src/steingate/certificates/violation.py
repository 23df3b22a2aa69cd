"""Exact upper bound on P(cost > limit) from the costs of a fixed number of episodes.

With k violations in n independent episodes of one policy, the bound of Clopper and Pearson (1934) is the
largest p for which k or fewer violations have probability at least 1 - confidence. ``episodes_for_power``
plans the number of episodes.
"""

from bisect import bisect_right
from dataclasses import asdict, dataclass
from functools import cached_property
from math import ceil, expm1, inf, log, log1p
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betainccinv

from steingate.certificates.formatting import count, percent, verdict, violations_text
from steingate.certificates.io import check_costs
from steingate.certificates.shift import ShiftRadius, shift_radius
from steingate.errors import InputError, check_interval

SMALLEST = 1e-12  # smallest risk and smallest 1 - confidence
MAX_EPISODES = 10**15  # larger integers are not exact as floating-point numbers
ASSUMPTIONS = (
    ("independent", "The episodes are independent, and from the environment that the policy will meet."),
    (
        "one policy",
        "They are of one fixed policy; for the best of k policies, divide 1 - confidence by k.",
    ),
    ("fixed number", "Their number was fixed before looking at the costs; else use a Monitor."),
    ("fixed claim", "Limit, risk and confidence were chosen without looking at these costs."),
    ("all episodes", "Every episode that was started counts; else short ones are overrepresented."),
)
MAX_ALLOWED = 1 << 14  # violations that a plan may allow
_BLOCK = 1024
_HUGE = 1e300  # sums of costs from here on may overflow


@dataclass(frozen=True)
class ViolationResult:
    """Result of :func:`certify`; ``str(result)`` is a sentence with what to do next.

    Attributes
    ----------
    violations, episodes
        Number of episodes with cost > limit, and of all episodes.
    limit, risk, confidence
        As given to :func:`certify`.
    mean_cost, max_cost
        Mean and largest cost.

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

    @property
    def violation_rate(self) -> float:
        """Fraction of the episodes with cost > limit."""
        return self.violations / self.episodes

    @cached_property
    def bound(self) -> float:
        """Upper bound on P(cost > limit), which holds with probability ``confidence``."""
        return clopper_pearson_upper(self.violations, self.episodes, self.confidence)

    @property
    def certified(self) -> bool:
        """Whether the bound is at most ``risk``."""
        return self.bound <= self.risk

    @property
    def shift(self) -> ShiftRadius | None:
        """How much the distribution of the episodes may change with the risk still certified; else ``None``."""
        return shift_radius(self.bound, self.risk) if self.certified else None

    @cached_property
    def more_episodes(self) -> int | None:
        """Number of further episodes without violation that would certify the risk; 0 if it is certified.

        ``None`` if the violation rate is above the risk. Episodes that are added after looking at the result
        void the guarantee: the number is for planning a new sample.
        """
        if self.certified:
            return 0
        if self.violation_rate > self.risk:
            return None
        return episodes_needed(self.risk, self.confidence, self.violations) - self.episodes

    @property
    def summary(self) -> str:
        """Whether the risk is certified, violations and bound, in one line."""
        return verdict(self.outcome, self.risk, self.known)

    @property
    def outcome(self) -> bool | None:
        """True if the risk is certified, False if it is shown to be exceeded, None if the episodes cannot tell."""
        exceeded = clopper_pearson_lower(self.violations, self.episodes, self.confidence) > self.risk
        return True if self.certified else False if exceeded else None

    @property
    def known(self) -> str:
        """Violations and bound in words."""
        return violations_text(self.violations, self.episodes, self.limit, self.bound, self.confidence)

    @property
    def advice(self) -> str:
        """What to do next, in one or two sentences."""
        if self.certified:
            return "This holds for independent episodes of one policy whose number was fixed in advance."
        fresh = "Run new episodes, and fix their number in advance; a Monitor may be checked at any time."
        if self.more_episodes is not None:
            needed = f"{self.episodes + self.more_episodes:,}"
            allowed = f"at most {self.violations}" if self.violations else "no"
            many = "violations" if self.violations > 1 else "violation"
            return f"Too few episodes: {needed} with {allowed} {many} would be enough. {fresh}"
        if self.outcome is False:
            return f"The violation probability is above {percent(self.risk)}: lower the cost of the policy."
        return (
            f"{count(self.episodes)} cannot tell: the violation rate is above {percent(self.risk)}, "
            f"but not significantly. Lower the cost of the policy, or run more. {fresh}"
        )

    def __str__(self) -> str:
        return f"{self.summary} {self.advice}"

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers and texts as JSON types."""
        names = ("violation_rate", "bound", "certified", "more_episodes", "summary", "advice")
        shift = None if self.shift is None else self.shift._asdict()
        return {**asdict(self), **{name: getattr(self, name) for name in names}, "shift": shift}


def certify(costs: npt.ArrayLike, limit: float, risk: float = 0.1, confidence: float = 0.95) -> ViolationResult:
    """Bound P(cost > limit) from the costs of independent episodes of one policy.

    Parameters
    ----------
    costs
        One undiscounted cost per episode. Every episode that was started counts, and the number of episodes
        was fixed before the first look at the costs.
    limit
        Limit on the episode cost; 0 if no cost is accepted.
    risk
        Accepted violation probability.
    confidence
        Probability with which the bound holds.

    Examples
    --------
    >>> result = certify([3.0] * 96 + [30.0] * 4, limit=25.0)
    >>> result.certified, round(result.bound, 3)
    (True, 0.089)
    """
    values = check_costs(costs)
    check_interval("limit", limit, 0.0, inf, "[)")
    check_interval("risk", risk, SMALLEST, 1.0, "[)")
    error_probability(confidence)
    largest, n = float(values.max()), values.size
    mean = float(np.add.reduce(values)) / n if largest < _HUGE / n else float(np.add.reduce(values / n))
    violations = int(np.count_nonzero(values > limit))
    return ViolationResult(violations, n, float(limit), float(risk), float(confidence), mean, largest)


def clopper_pearson_upper(k: int, n: int, confidence: float = 0.95) -> float:
    """Return the exact upper confidence bound on a probability after k hits in n independent trials.

    >>> round(clopper_pearson_upper(0, 29), 4)
    0.0981
    """
    delta = error_probability(confidence)
    if n != int(n) or n < 1:
        raise InputError(f"n is {n!r}; give a whole number of samples, at least 1.")
    if k != int(k) or not 0 <= k <= n:
        raise InputError(f"k is {k!r}; give a whole number of hits between 0 and n = {n}.")
    if k == n:
        return 1.0
    if k == 0:
        return -expm1(log(delta) / n)
    return float(betainccinv(float(k + 1), float(n - k), delta))


def clopper_pearson_lower(k: int, n: int, confidence: float = 0.95) -> float:
    """Return the exact lower confidence bound on a probability after k hits in n independent trials.

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
    delta = error_probability(confidence)
    if not 0 <= violations <= MAX_EPISODES or violations != int(violations):
        raise InputError(f"violations is {violations!r}; give a whole number from 0 to {MAX_EPISODES:g}.")
    low = violations
    high = max(1, 2 * violations, ceil(log(delta) / log1p(-risk)))
    while clopper_pearson_upper(violations, high, confidence) > risk:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if clopper_pearson_upper(violations, middle, confidence) <= risk:
            high = middle
        else:
            low = middle
    return high


def certifiable_risk(episodes: int, confidence: float = 0.95, violations: int = 0) -> float:
    """Return the smallest risk that ``episodes`` episodes with ``violations`` violations certify."""
    if not 1 <= episodes <= MAX_EPISODES or episodes != int(episodes):
        raise InputError(f"episodes is {episodes!r}; give a whole number from 1 to {MAX_EPISODES:g}.")
    return clopper_pearson_upper(violations, episodes, confidence)


def certification_power(episodes: int, expected: float, risk: float = 0.1, confidence: float = 0.95) -> float:
    """Return the probability that ``certify`` certifies ``risk`` if the violation probability is ``expected``.

    >>> round(certification_power(29, 0.03), 2)
    0.41
    """
    certifiable_risk(episodes, confidence)
    check_interval("expected", expected, 0.0, 1.0, "[)")
    allowed = bisect_right(range(episodes), risk, key=lambda v: clopper_pearson_upper(v, episodes, confidence)) - 1
    return float(betainc(episodes - allowed, allowed + 1, 1.0 - expected)) if allowed >= 0 else 0.0


def episodes_for_power(
    expected: float, power: float = 0.9, risk: float = 0.1, confidence: float = 0.95
) -> tuple[int, int]:
    """Return the smallest number of episodes that certifies with probability ``power``, and the violations allowed.

    For each number v of allowed violations the best number of episodes is the smallest that certifies with v.

    Parameters
    ----------
    expected
        Violation probability that the policy is expected to have, below ``risk``.

    Examples
    --------
    >>> episodes_for_power(0.03)
    (103, 5)
    """
    check_interval("risk", risk, SMALLEST, 1.0, "[)")
    check_interval("power", power, 0.0, 1.0)
    check_interval("expected", expected, 0.0, risk, "[)")
    delta = error_probability(confidence)
    for start in range(0, MAX_ALLOWED, _BLOCK):
        v = np.arange(start, start + _BLOCK, dtype=np.float64)
        low, high = v, np.ceil((v + 1.0) * (1.0 - log(delta)) * 3.0 / risk)  # n <= v is too few, 3 times is enough
        while np.any(high - low > 1.0):
            middle = np.floor(0.5 * (low + high))
            enough = betainc(middle - v, v + 1.0, 1.0 - risk) <= delta * (1.0 + 1e-12)
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        passing = np.flatnonzero(betainc(high - v, v + 1.0, 1.0 - expected) >= power)
        if passing.size:
            return int(high[passing[0]]), int(v[passing[0]])
    raise InputError(
        f"expected {expected:g} is too close to the risk {risk:g}: more than {MAX_ALLOWED:,} violations would occur."
    )


def error_probability(confidence: float) -> float:
    """Return 1 - confidence without the rounding error of the difference: 0.05 for 0.95."""
    delta = round(1.0 - confidence, 15)
    if not SMALLEST <= delta < 1.0:
        raise InputError(f"confidence is {confidence!r}; give a probability between 0 and 1.")
    return delta
