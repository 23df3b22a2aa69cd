"""Numbers that users give, checked."""

import numpy as np

from steingate.certificates.checks import is_real
from steingate.errors import InputError

_NEAREST = 1e-15


def number(cost: object) -> float:
    """Return a cost as a float, or refuse what is not one real number."""
    if isinstance(cost, np.ndarray) and cost.ndim == 0:
        cost = cost[()]
    if not is_real(cost):
        raise InputError(f"The cost {cost!r} is not a number: pass one real number per episode.")
    return float(cost)  # type: ignore[arg-type]


def positive(name: str, value: object) -> float:
    """Return a setting that must be positive and finite, and far from where numbers end."""
    if not (is_real(value) and 1e-300 < value < 1e300):  # type: ignore[operator]
        raise InputError(f"{name} is {value!r}: give a positive number.")
    return float(value)  # type: ignore[arg-type]


def share(name: str, value: object) -> float:
    """Return a setting that must lie strictly between 0 and 1, and not too near to tell."""
    if not (is_real(value) and _NEAREST <= value <= 1.0 - _NEAREST):  # type: ignore[operator]
        raise InputError(f"{name} is {value!r}: give a number between 0 and 1.")
    return float(value)  # type: ignore[arg-type]
