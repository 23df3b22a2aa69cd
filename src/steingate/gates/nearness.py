"""How near things are, seen sharply: powers of the observations that lie between 0 and 1.

A lidar shows 1 - distance / range. Between touching a hazard and passing it at arm's length that number moves
by a few hundredths, too little for a small network to tell apart, while 36 such factors multiplied fall from
1 to almost 0 over the same stretch.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.errors import InputError

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Nearness:
    """Which numbers of an observation are repeated, and to which powers.

    Examples
    --------
    >>> Nearness((1,), (2.0, 3.0))(np.array([7.0, 0.5]))
    array([7.   , 0.5  , 0.25 , 0.125])
    """

    where: tuple[int, ...]
    powers: tuple[float, ...]

    def __post_init__(self) -> None:
        for power in self.powers:
            if not 0.0 < power < np.inf:
                raise InputError(f"A power of the nearness is {power!r}: it must be positive and finite.")

    @classmethod
    def of(cls, low: npt.ArrayLike, high: npt.ArrayLike, powers: tuple[float, ...]) -> "Nearness":
        """Return the powers of the numbers whose bounds are exactly 0 and 1."""
        unit = (np.asarray(low) == 0.0) & (np.asarray(high) == 1.0)
        return cls(tuple(int(i) for i in np.flatnonzero(unit)), tuple(float(power) for power in powers))

    @property
    def added(self) -> int:
        """How many numbers an observation gains."""
        return len(self.where) * len(self.powers)

    def __call__(self, obs: npt.ArrayLike) -> Array:
        """Return observations (..., d) with the powers appended, power by power."""
        raw: Any = np.asarray(obs, np.float64)
        near = np.clip(raw[..., list(self.where)], 0.0, 1.0)
        return np.concatenate([raw, *(near**power for power in self.powers)], axis=-1)
