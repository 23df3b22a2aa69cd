"""Upper confidence sequences for the mean of values in [0, 1].

The wealth W(m) of the bets of ``bets.below`` against the hypothesis "the mean is at least m" has a logarithm
that rises with m and is convex in m. The bound is where it reaches log(1/delta). Newton's method from the
right of that point never passes it, so that every iterate is a valid bound.
"""

from math import exp, expm1, log, log1p

import numpy as np
import numpy.typing as npt

from steingate.monitoring.bets import KEPT, LOG_KEPT, LOG_STAKES

Array = npt.NDArray[np.float64]

_MARGIN = 1e-9  # how far to the right of the root, in log-wealth, Newton's method stops
_ROUNDING = 1e-14
_LARGEST = 1.0 - 1e-4  # bounds above this are given as 1
_KEPT, _LOG_STAKES = np.array(KEPT), np.array(LOG_STAKES)


def count_upper(over: float, under: float, delta: float) -> float:
    """Return a bound on the chance of "over" that holds at all times with probability 1 - ``delta``.

    Parameters
    ----------
    over, under
        How many episodes were over the limit and within it.
    delta
        Probability that the bound is ever wrong.

    Examples
    --------
    >>> round(count_upper(0, 36, 0.05), 4)
    0.0985
    """
    if under <= 0:
        return 1.0
    stakes = [stake + over * kept for stake, kept in zip(LOG_STAKES, LOG_KEPT, strict=True)]
    m = min(_best_single(stakes, under, -log(delta)), _LARGEST)
    margin = _MARGIN + _ROUNDING * (abs(min(stakes)) + under / (1.0 - m))
    target = -log(delta) + 0.5 * margin
    for _ in range(64):
        gap = log1p(-m)
        terms = [s + under * (log1p(-share * m) - gap) for s, share in zip(stakes, KEPT, strict=True)]
        top = max(terms)
        weights = [exp(term - top) for term in terms]
        total = sum(weights)
        excess = top + log(total) - target
        if excess <= 0.5 * margin:
            return 1.0 if m == _LARGEST and excess < 0.0 else m
        inverse = 1.0 / (1.0 - m)
        slopes = [w * (inverse - share / (1.0 - share * m)) for w, share in zip(weights, KEPT, strict=True)]
        m -= excess * total / (under * sum(slopes))
    return m


def _best_single(stakes: list[float], under: float, target: float) -> float:
    """Return the smallest of the bounds that each bet gives alone: right of the mixture's root."""
    m = 1.0
    for stake, share in zip(stakes, KEPT, strict=True):
        rise = (target - stake) / under
        if rise < 700.0:
            grown = expm1(rise)
            m = min(m, grown / (grown + 1.0 - share))
    return m


def mean_upper(values: Array, counts: Array, delta: float) -> float:
    """Return a bound on the mean of [0, 1] values that holds at all times with probability 1 - ``delta``.

    Parameters
    ----------
    values
        The different values seen.
    counts
        How often each was seen.
    delta
        Probability that the bound is ever wrong.
    """
    seen = counts > 0
    x, n = values[seen], counts[seen].astype(np.float64)
    episodes, total = float(n.sum()), float(n @ x)
    # The logarithm is concave: zeros and ones with the same mean have less wealth, so their bound is larger.
    m = min(count_upper(total, episodes - total, delta), _LARGEST)
    margin = _MARGIN + _ROUNDING * (9.0 * total + 10.0 * episodes / (1.0 - m))
    target = -log(delta) + 0.5 * margin
    rest = 1.0 - np.multiply.outer(1.0 - _KEPT, x)
    for _ in range(64):
        room = rest - (_KEPT * m)[:, None]
        terms = _LOG_STAKES + np.log(room) @ n - episodes * log1p(-m)
        top = float(terms.max())
        weights = np.exp(terms - top)
        mass = float(weights.sum())
        excess = top + log(mass) - target
        if excess <= 0.5 * margin:
            return 1.0 if m == _LARGEST and excess < 0.0 else m
        slopes = episodes / (1.0 - m) - _KEPT * ((1.0 / room) @ n)
        m -= excess * mass / float(weights @ slopes)
    return m
