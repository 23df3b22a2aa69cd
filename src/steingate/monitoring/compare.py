"""Anytime-valid comparison of two policies that play the same episodes: fewer violations, higher return."""

from math import exp, inf, log, log1p
from typing import Any

from scipy.special import betainc, betaln

from steingate.errors import InputError, check_interval
from steingate.monitoring.monitor import Monitor, check_cost

BETS = tuple(0.95 * 2.0**-k for k in range(10))  # sizes of the bets on the difference of two returns
_LARGEST_LOG = 700.0


class ComparisonMonitor:
    """Evidence on which of two policies violates a cost limit less often, valid after every pair of episodes.

    Both policies play each episode with the same seed. Only pairs in which exactly one of them is a violation count:
    a pairs with a violation of A alone, and b with one of B alone. Against the hypothesis "A is no safer than B", that
    is P(A alone) >= P(B alone) in every pair given the pairs before, the e-value is the likelihood ratio of a uniform
    mixture over the probability q < 1/2 that such a pair is one of A alone:

        e = 2 int_0^{1/2} q^a (1 - q)^b dq / (1/2)^{a+b} = 2^(a+b+1) Beta(a+1, b+1) I_{1/2}(a+1, b+1)

    It ever reaches 1 / delta with probability at most ``delta`` if the hypothesis is true, however the two policies
    depend on each other, and however often one looks.

    Mean returns are compared by bets on the difference d of the returns, clipped to ``return_range`` r: the wealth
    mean_k prod(1 + l_k d / r) against the hypothesis that the mean of d is at most 0.

    Parameters
    ----------
    limit : episode-cost limit; an episode with cost > limit is a violation
    delta : error probability of each of ``a_is_safer``, ``b_is_safer``, ``a_has_higher_return``,
        ``b_has_higher_return``
    return_range : largest difference between two returns that counts, chosen before the episodes; needed to compare
        returns

    Attributes
    ----------
    pairs : number of pairs
    only_a, only_b : number of pairs in which only A, or only B, is a violation
    violations_a, violations_b : numbers of violations

    Examples
    --------
    >>> comparison = ComparisonMonitor(limit=25)
    >>> for _ in range(9):
    ...     comparison.update(3.0, 40.0)
    >>> comparison.a_is_safer, round(comparison.e_value, 1)
    (True, 102.3)
    """

    def __init__(self, limit: float, delta: float = 0.05, return_range: float | None = None) -> None:
        checked = Monitor(limit, delta=delta)
        self.limit, self.delta = checked.limit, checked.delta
        if return_range is not None:
            check_interval("return_range", return_range, 0.0, inf)
        self.return_range = return_range
        self.pairs = self.only_a = self.only_b = self.violations_a = self.violations_b = 0
        # Of A and of B: largest log e-value so far, log wealth of each bet on returns, and its largest mean so far.
        self._largest = [0.0, 0.0]
        self._log_wealth = [[0.0] * len(BETS), [0.0] * len(BETS)]
        self._largest_return = [0.0, 0.0]

    def update(
        self, cost_a: float, cost_b: float, return_a: float | None = None, return_b: float | None = None
    ) -> None:
        """Count one pair of episodes by their costs, and their returns if returns are compared.

        An invalid number raises ``InputError`` and changes nothing.
        """
        a, b = (check_cost(cost) > self.limit for cost in (cost_a, cost_b))
        difference = self._difference(return_a, return_b)
        self.pairs += 1
        self.violations_a, self.violations_b = self.violations_a + a, self.violations_b + b
        self.only_a, self.only_b = self.only_a + (a and not b), self.only_b + (b and not a)
        pairs = ((self.only_a, self.only_b, difference), (self.only_b, self.only_a, -difference))
        for policy, (own, other, gain) in enumerate(pairs):
            self._largest[policy] = max(self._largest[policy], log_e_value(own, other))
            wealth = [w + log1p(bet * gain) for w, bet in zip(self._log_wealth[policy], BETS, strict=True)]
            self._log_wealth[policy] = wealth
            top = max(wealth)
            mean = top + log(sum(exp(each - top) for each in wealth) / len(BETS))
            self._largest_return[policy] = max(self._largest_return[policy], mean)

    def _difference(self, return_a: float | None, return_b: float | None) -> float:
        """Return the clipped difference of the returns, between -1 and 1."""
        if return_a is None and return_b is None:
            return 0.0
        if self.return_range is None:
            raise InputError("To compare returns, give ComparisonMonitor a return_range.")
        if return_a is None or return_b is None or not abs(return_a - return_b) < inf:
            raise InputError(f"The returns are {return_a} and {return_b}: give two finite numbers.")
        return float(min(max((return_a - return_b) / self.return_range, -1.0), 1.0))

    @property
    def e_value(self) -> float:
        """Largest e-value so far for either policy being safer; at 1 / delta one of them is."""
        return exp(min(max(self._largest), _LARGEST_LOG))

    @property
    def a_is_safer(self) -> bool:
        """Whether A has been shown to violate the limit less often than B; once true it stays true."""
        return self._largest[0] >= -log(self.delta)

    @property
    def b_is_safer(self) -> bool:
        """Whether B has been shown to violate the limit less often than A; once true it stays true."""
        return self._largest[1] >= -log(self.delta)

    @property
    def decided(self) -> bool:
        """Whether one policy has been shown to be safer."""
        return self.a_is_safer or self.b_is_safer

    @property
    def return_e_value(self) -> float:
        """Largest e-value so far for either policy having the higher mean (clipped) return."""
        return exp(min(max(self._largest_return), _LARGEST_LOG))

    @property
    def a_has_higher_return(self) -> bool:
        """Whether the mean of return A - return B, clipped to ``return_range``, has been shown to be positive."""
        return self._largest_return[0] >= -log(self.delta)

    @property
    def b_has_higher_return(self) -> bool:
        """Whether the mean of return B - return A, clipped to ``return_range``, has been shown to be positive."""
        return self._largest_return[1] >= -log(self.delta)

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as JSON types."""
        names = (
            "limit", "delta", "pairs", "violations_a", "violations_b", "only_a", "only_b", "e_value", "a_is_safer",
            "b_is_safer", "return_range", "return_e_value", "a_has_higher_return", "b_has_higher_return",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names}


def log_e_value(a: int, b: int) -> float:
    """Return log(2^(a+b+1) Beta(a+1, b+1) I_{1/2}(a+1, b+1))."""
    half = float(betainc(a + 1, b + 1, 0.5))
    if half == 0.0:  # below 1e-300: the e-value is far below 1
        return -inf
    return (a + b + 1) * log(2.0) + float(betaln(a + 1, b + 1)) + log(half)
