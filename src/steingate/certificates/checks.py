"""Small questions about values that users give."""

import numpy as np


def is_real(value: object) -> bool:
    """Return whether a value is one real number; booleans and arrays are not."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def hashable(value: object) -> bool:
    """Return whether a value can be a key of a cache; callables and densities of users may not be."""
    try:
        hash(value)
    except TypeError:
        return False
    return True
