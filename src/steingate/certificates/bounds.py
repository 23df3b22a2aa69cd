"""Exact binomial bounds, the radius of a kernel mean embedding, and what every bound checks first.

Every bound holds at every sample size. ``delta`` is always the probability that the bound is wrong.
"""

from math import expm1, isfinite, log, sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import betainccinv

from steingate.errors import InputError

Array = npt.NDArray[np.float64]


def check_delta(delta: float) -> None:
    """Refuse what is no error probability."""
    if not 0.0 < delta < 1.0:
        raise InputError(f"delta is {delta!r}; give an error probability between 0 and 1.")


def _check_count(n: int, name: str = "n") -> None:
    if n != int(n) or n < 1:
        raise InputError(f"{name} is {n!r}; give a whole number of samples, at least 1.")


def unit_sample(x: npt.ArrayLike) -> Array:
    """Return the sample as a sorted float array after checking that it is not empty and lies in [0, 1]."""
    values = np.sort(np.asarray(x, dtype=np.float64).ravel())
    if values.size == 0:
        raise InputError("The sample is empty; a bound needs at least one value.")
    if not (values[0] >= 0.0 and values[-1] <= 1.0):
        bad = values[0] if values[0] < 0.0 else values[-1]
        raise InputError(
            f"The sample contains {bad}; bounds for [0, 1] variables need every value in [0, 1]."
        )
    return values


def clopper_pearson_upper(k: int, n: int, delta: float) -> float:
    """Return the exact upper confidence bound of a probability after k hits in n independent trials.

    The largest p with P(Binomial(n, p) <= k) >= delta; 1 - delta**(1/n) when k = 0.

    >>> round(clopper_pearson_upper(0, 29, 0.05), 4)
    0.0981
    """
    check_delta(delta)
    _check_count(n)
    if k != int(k) or not 0 <= k <= n:
        raise InputError(f"k is {k!r}; give a whole number of hits between 0 and n = {n}.")
    if k == n:
        return 1.0
    if k == 0:
        return -expm1(log(delta) / n)
    return float(betainccinv(float(k + 1), float(n - k), delta))


def embedding_radius(M_u: float, m: int, delta: float) -> float:
    """Return sqrt(M_u / m) (1 + sqrt(2 log(1/delta))), the radius of a mean embedding of m samples.

    For independent samples and a positive definite kernel u with u(x, x) <= M_u, the distance between the
    empirical and the true mean embedding is at most this with probability 1 - delta: its mean is at most
    sqrt(M_u / m), one sample moves it by at most 2 sqrt(M_u) / m, and McDiarmid's inequality does the rest.
    The KSD as square root of the V-statistic is the norm of the empirical embedding, so it is off by no more.
    Infinite when M_u is.
    """
    check_delta(delta)
    _check_count(m, "m")
    if not M_u >= 0.0:
        raise InputError(f"M_u is {M_u!r}; give a kernel bound that is at least 0.")
    return sqrt(M_u / m) * (1.0 + sqrt(-2.0 * log(delta))) if isfinite(M_u) else float("inf")
