"""Numbers that users give, checked."""

from math import inf

import numpy as np

from steingate.core.checks import is_real
from steingate.errors import InputError


def number(cost: object) -> float:
    """Return a cost as a float, or refuse what is not one real number."""
    if isinstance(cost, np.ndarray) and cost.ndim == 0:
        cost = cost[()]
    if not is_real(cost):
        raise InputError(f"The cost {cost!r} is not a number: pass one real number per episode.")
    return float(cost)  # type: ignore[arg-type]


def positive(name: str, value: object) -> float:
    """Return a setting that must be positive and finite."""
    if not (is_real(value) and 0.0 < value < inf):  # type: ignore[operator]
        raise InputError(f"{name} is {value!r}: give a positive number.")
    return float(value)  # type: ignore[arg-type]


def share(name: str, value: object) -> float:
    """Return a setting that must lie strictly between 0 and 1."""
    if not (is_real(value) and 0.0 < value < 1.0):  # type: ignore[operator]
        raise InputError(f"{name} is {value!r}: give a number between 0 and 1.")
    return float(value)  # type: ignore[arg-type]
