"""Test martingales for the violation rate, and the anytime-valid upper bound that follows from them.

An episode is x = 1 (violation: cost > limit) or x = 0. A bet of size c against the hypothesis "the violation
rate is at least m" multiplies its wealth by 1 + c (m - x) / (1 - m) in every episode. After s violations and
f other episodes, in any order, a mixture of bets with weights w_k and rho_k = 1 - c_k has the wealth

    W(m) = sum_k w_k rho_k^s ((1 - rho_k m) / (1 - m))^f

Under the hypothesis W(m) is a nonnegative supermartingale that starts at 1. By Ville's inequality it ever
reaches 1 / delta with probability at most delta, so it may be evaluated after every episode. The upper bound
on the violation rate is the m at which W(m) = 1 / delta.

A cluster of episodes (a day, a storm, a robot) counts once, with x = y, the fraction of its episodes that are
violations. The factor 1 + c (m - y) / (1 - m) (``certificates.betting``) has expectation at most 1 if E[y | past] >= m.

Bets of size theta that the rate is above m multiply their wealth by 1 + theta (x - m) / m.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import exp, expm1, log, log1p, pi

import numpy as np

from steingate.certificates.betting import RHO, WEIGHTS

THETA = (0.01, 0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6)  # equal weights

BLOCK = 8  # episodes between two restarts of the bets against "the rate is at most the budget"

_LARGEST_WEALTH = 1e300
_LOG_RHO = tuple(log(rho) for rho in RHO)
_LOG_WEIGHTS = tuple(log(weight) for weight in WEIGHTS)


def delta_for_test(number: int, delta: float) -> float:
    """Return the error probability of test ``number`` = 1, 2, ...; over all tests they add up to ``delta``.

    >>> round(sum(delta_for_test(k, 0.05) for k in range(1, 10_000)), 4)
    0.05
    """
    return delta * 6.0 / (pi * number) ** 2


@dataclass(frozen=True)
class BetMixture:
    """Mixture of bets; its wealth is a function of the numbers of violations and of other episodes."""

    log_weights: tuple[float, ...]  # logarithm of the initial wealth of each bet
    log_violation: tuple[float, ...]  # what a violation adds to the log wealth of each bet
    log_safe: tuple[float, ...]  # what any other episode adds

    def log_wealth(self, violations: float, safe: float) -> float:
        """Return log(sum_k w_k exp(violations a_k + safe b_k))."""
        bets = zip(self.log_weights, self.log_violation, self.log_safe, strict=True)
        terms = [weight + violations * a + safe * b for weight, a, b in bets]
        top = max(terms)
        return top + log(sum([exp(term - top) for term in terms]))


@lru_cache(256)
def bets_below(rate: float) -> BetMixture:
    """Return the bets that the violation rate is below ``rate``."""
    log_safe = tuple(log1p(-rho * rate) - log1p(-rate) for rho in RHO)
    return BetMixture(_LOG_WEIGHTS, _LOG_RHO, log_safe)


def add_clusters(mixture: BetMixture, rate: float, clusters: Mapping[float, int]) -> BetMixture:
    """Return the bets that the violation rate is below ``rate`` with the wealth that they have after clusters.

    ``clusters`` has the number of clusters with each fraction of violations.
    """
    gap = 1.0 - rate
    gains = [
        sum([number * log1p((1.0 - rho) * (rate - share) / gap) for share, number in sorted(clusters.items())])
        for rho in RHO
    ]
    weights = tuple(weight + gain for weight, gain in zip(mixture.log_weights, gains, strict=True))
    return replace(mixture, log_weights=weights)


class BetsAbove:
    """Bets that the violation rate is above ``rate``; THETA has their sizes."""

    def __init__(self, rate: float) -> None:
        self._violation = [1.0 + theta * (1.0 - rate) / rate for theta in THETA]
        self._safe = [1.0 - theta for theta in THETA]

    def step(self, wealth: Sequence[float], added: float, x: float) -> list[float]:
        """Return min((wealth + added) (1 + theta (x - rate) / rate), 1e300) for each bet.

        x is 1 for a violation, 0 for another episode, and the fraction of violations for a cluster.
        """
        if x in (0.0, 1.0):
            factors = self._violation if x else self._safe
        else:
            factors = [low + x * (high - low) for low, high in zip(self._safe, self._violation, strict=True)]
        return [min((each + added) * factor, _LARGEST_WEALTH) for each, factor in zip(wealth, factors, strict=True)]


class RestartingWealth:
    """Evidence that the violation rate has been above ``rate`` since the start of some block of 8 episodes.

    At the start of block j, 1 / (j (j + 1)) is added to the wealth of each bet:

        R_a <- (R_a + added) (1 + theta_a (x - rate) / rate)        reached when mean(R) >= 1 / delta

    A bet that starts late has lost nothing to the episodes before, so a rise is found soon after any number of
    good episodes. The weights sum to 1: while the mean of P(x = 1 | past) is at most ``rate`` in every stretch
    from the start of a block, mean(R) ever reaches 1 / delta with probability at most delta.
    """

    def __init__(self, rate: float, delta: float) -> None:
        self._bets, self._threshold = BetsAbove(rate), 1.0 / delta
        self.wealth = [0.0] * len(THETA)  # R_a
        self.counted = 0  # episodes, where a cluster is one
        self.maximum = 0.0  # largest mean(R) so far
        self.reached_at: int | None = None  # ``episode`` of the update that first reached 1 / delta

    def update(self, x: float, episode: int) -> None:
        """Count one episode or cluster; ``episode`` is the number of episodes so far."""
        block, place = divmod(self.counted, BLOCK)
        added = 1.0 / ((block + 1) * (block + 2)) if place == 0 else 0.0
        self.wealth = self._bets.step(self.wealth, added, x)
        self.counted += 1
        if x:
            self.maximum = max(self.maximum, sum(self.wealth) / len(THETA))
            if self.reached_at is None and self.maximum >= self._threshold:
                self.reached_at = episode

    @property
    def p_value(self) -> float:
        """Anytime-valid p-value, 1 / (largest mean wealth so far)."""
        return 1.0 / max(self.maximum, 1.0)


@dataclass
class MaxWealth:
    """Running maximum of the log wealth of a mixture."""

    mixture: BetMixture
    delta: float
    maximum: float = 0.0  # largest log wealth so far, at least 0
    reached_at: int | None = None  # ``episode`` of the update that first reached log(1 / delta)

    def update(self, violations: int, safe: int, episode: int) -> None:
        """Evaluate the wealth after these numbers of violations and of other episodes."""
        level = self.mixture.log_wealth(violations, safe)
        if level > self.maximum:
            self.maximum = level
            if self.reached_at is None and level >= -log(self.delta):
                self.reached_at = episode

    @property
    def p_value(self) -> float:
        """Anytime-valid p-value, 1 / (largest wealth so far)."""
        return min(1.0, exp(-self.maximum))


_MARGIN = 1e-9  # Newton's method stops this far right of the root, in log wealth
_ROUNDING = 1e-14
_LARGEST = 1.0 - 1e-4  # a larger bound is reported as 1


def upper_bound(violations: float, safe: float, delta: float) -> float:
    """Return an upper bound on the violation rate, valid at all times with probability 1 - ``delta``.

    log W(m) increases with m and is convex, so Newton's method from the right never passes the root and every
    iterate is a valid bound.

    >>> round(upper_bound(0, 36, 0.05), 4)
    0.0985
    """
    if safe <= 0:
        return 1.0
    constants = [weight + violations * rho for weight, rho in zip(_LOG_WEIGHTS, _LOG_RHO, strict=True)]
    m = min(_best_single_bet(constants, safe, -log(delta)), _LARGEST)
    margin = _MARGIN + _ROUNDING * (abs(min(constants)) + safe / (1.0 - m))
    target = -log(delta) + 0.5 * margin
    for _ in range(64):
        gap = log1p(-m)
        terms = [a + safe * (log1p(-rho * m) - gap) for a, rho in zip(constants, RHO, strict=True)]
        top = max(terms)
        weights = [exp(term - top) for term in terms]
        total = sum(weights)
        excess = top + log(total) - target
        if excess <= 0.5 * margin:
            return 1.0 if m == _LARGEST and excess < 0.0 else m
        inverse = 1.0 / (1.0 - m)
        slopes = [w * (inverse - rho / (1.0 - rho * m)) for w, rho in zip(weights, RHO, strict=True)]
        m -= excess * total / (safe * sum(slopes))
    return m


def cluster_bound(violations: float, safe: float, clusters: Mapping[float, int], delta: float) -> float:
    """Return the bound of :func:`upper_bound` after episodes and ``clusters`` (number of each fraction)."""
    if not clusters:
        return upper_bound(violations, safe, delta)
    shares = np.array([0.0, 1.0, *sorted(clusters)])
    numbers = np.array([safe, violations, *(clusters[share] for share in sorted(clusters))])
    rho, total = np.array(RHO)[:, None], float(numbers.sum())
    m = _LARGEST
    margin = _MARGIN + _ROUNDING * total * 10.0
    for _ in range(64):
        # log(1 + (1 - rho)(m - x)/(1 - m)) = log(1 - (1 - rho) x - rho m) - log(1 - m), convex in m
        inner = 1.0 - (1.0 - rho) * shares - rho * m
        terms = np.array(_LOG_WEIGHTS) + np.log(inner) @ numbers - total * log1p(-m)
        weights = np.exp(terms - terms.max())
        excess = float(terms.max()) + log(weights.sum()) + log(delta) - 0.5 * margin
        if excess <= 0.5 * margin:
            return 1.0 if m == _LARGEST and excess < 0.0 else m
        slopes = total / (1.0 - m) - (rho / inner) @ numbers
        m -= excess / float(weights @ slopes / weights.sum())
    return m


def _best_single_bet(constants: list[float], safe: float, target: float) -> float:
    """Return the smallest bound of a single bet, (e^a - 1) / (e^a - rho), right of the mixture's root."""
    m = 1.0
    for constant, rho in zip(constants, RHO, strict=True):
        a = (target - constant) / safe
        if a < 700.0:
            m = min(m, expm1(a) / (expm1(a) + 1.0 - rho))
    return m
