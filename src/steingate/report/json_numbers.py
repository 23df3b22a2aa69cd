"""Numbers as a page holds them: four digits, and nothing where there is none."""

from math import isfinite
from typing import Any


def short(value: Any) -> float | None:
    """Return a number with four digits as the shortest JSON, or ``None`` where it is not finite.

    Examples
    --------
    >>> short(1 / 3), short(2.0), short(float("nan"))
    (0.3333, 2, None)
    """
    if not isfinite(value):
        return None
    rounded = float(f"{value:.4g}")
    return int(rounded) if rounded.is_integer() else rounded
