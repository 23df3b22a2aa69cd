"""How many episodes a budget needs, and what a number of episodes can certify."""

from math import ceil, log, log1p

from steingate.certificates.bounds import clopper_pearson_upper
from steingate.certificates.kernels import Kernel, Operator
from steingate.certificates.null import INTERIOR_CLIP, LADDER, null_quantile
from steingate.certificates.reference import Interior
from steingate.errors import InputError

SMALLEST = 1e-12  # of budgets and error probabilities: below, episodes could not be counted
MOST_EPISODES = 10**15  # floating point tells no more apart


def _check(budget: float, delta: float, violations: int) -> None:
    if not SMALLEST <= budget < 1.0:
        raise InputError(f"The budget is {budget!r}; give a risk in [{SMALLEST:g}, 1).")
    if not SMALLEST <= delta < 1.0:
        raise InputError(f"delta is {delta!r}; give an error probability in [{SMALLEST:g}, 1).")
    if not 0 <= violations <= MOST_EPISODES or violations != int(violations):
        raise InputError(f"violations is {violations!r}; give a whole number from 0 to {MOST_EPISODES:g}.")


def episodes_needed(budget: float, delta: float, violations: int = 0) -> int:
    """Return the fewest independent episodes that certify a budget when ``violations`` of them violate.

    The smallest n whose Clopper-Pearson bound is within the budget: no bound that holds with probability
    1 - delta needs fewer. Without violations the `confident` bound reaches it; with violations and a smooth
    risk that bound, which must allow for risks between 0 and 1, needs more (a result's ``more_episodes``
    says how many for given risks).
    """
    _check(budget, delta, violations)
    if violations == 0:
        n = max(1, ceil(log(delta) / log1p(-budget)) - 1)  # rounding may have put the quotient one too high
        while clopper_pearson_upper(0, n, delta) > budget:
            n += 1
        return n
    low, high = violations, 2 * violations
    while clopper_pearson_upper(violations, high, delta) > budget:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if clopper_pearson_upper(violations, middle, delta) <= budget:
            high = middle
        else:
            low = middle
    return high


def certifiable_budget(n: int, delta: float, violations: int = 0) -> float:
    """Return the smallest budget that n independent episodes with ``violations`` violations can certify."""
    if not 1 <= n <= MOST_EPISODES or n != int(n):
        raise InputError(f"n is {n!r}; give a whole number of episodes from 1 to {MOST_EPISODES:g}.")
    _check(0.5, delta, violations)
    if violations > n:
        raise InputError(f"violations is {violations!r}; there are only {n} episodes.")
    return clopper_pearson_upper(violations, n, delta)


def noise_episodes(
    interior: Interior,
    kernel: Kernel,
    operator: Operator,
    stein_factor: float,
    reference_risk: float,
    budget: float,
    alpha: float = 0.05,
    interior_clip: float = INTERIOR_CLIP,
) -> int | None:
    """Return the interior samples after which noise fits between reference risk and budget, or None if never.

    The smallest m with stein_factor * q(m) <= budget - reference_risk, q(m) the (1 - alpha) null quantile of
    the KSD: from there on the plain Stein bound of a policy that matches the reference (and has no atoms in
    excess) stays within the budget with probability 1 - alpha. None when reference_risk >= budget.
    """
    _check(budget, alpha, 0)
    if not stein_factor >= 0.0:
        raise InputError(f"The Stein factor is {stein_factor!r}; give a number that is at least 0.")
    room = budget - reference_risk
    if room <= 0.0:
        return None

    def noise(m: int) -> float:
        return stein_factor * null_quantile(interior, kernel, operator, m, alpha, interior_clip)

    last = LADDER[-1]
    if noise(last) > room:
        return ceil(last * (noise(last) / room) ** 2 * (1.0 - 1e-12))
    return next(m for m in range(1, last + 1) if noise(m) <= room)
