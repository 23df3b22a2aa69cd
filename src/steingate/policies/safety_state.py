"""The safety state: one number that is appended to the observation and depends on the cost of the episode so far."""

from math import inf
from typing import Any, NamedTuple

import numpy as np


class SafetyState(NamedTuple):
    """Constants of a safety state z, which starts an episode at ``start``.

    With c_t the cost of step t, z_{t+1} = max((z_t - c_t / scale) / discount, floor).

    A positive ``scale`` makes it the part of a cost budget that is left (Sauté) or, from 0, the negative cost so far; a
    negative one makes it the accumulated cost.

    ``restart`` is its value at the start of all episodes but the first of an epoch, and ``final_shows_restart``
    says that the last observation of a truncated episode shows the value of the next one; published code of
    Sauté and Simmer has both.

    >>> SafetyState(start=1.0, scale=25.0).next(1.0, 5.0)
    0.8
    """

    start: float
    scale: float
    discount: float = 1.0
    floor: float = -inf
    restart: float | None = None
    final_shows_restart: bool = False

    def next(self, z: Any, cost: Any) -> Any:
        """Return the safety state after a step with this cost; arrays work too."""
        moved = np.maximum((z - cost / self.scale) / self.discount, self.floor)
        return float(moved) if np.ndim(moved) == 0 else moved
