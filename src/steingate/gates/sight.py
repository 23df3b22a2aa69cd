"""What a policy is shown beside its observation: how near things are, sharply, and where they are.

A lidar shows 1 - distance / range in the bin of a ring where something is. Between touching a hazard and
passing it at arm's length that number moves by a few hundredths, too little for a small network to tell
apart, while 36 such factors multiplied fall from 1 to almost 0 over the same stretch. And a place is spread
over the bins of a ring: where a thing is, seen from the agent or in a frame that a compass gives, and how the
agent moves in that frame, are products of many numbers that a small network can only approximate.
"""

from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from steingate.errors import InputError

Array = npt.NDArray[np.float64]
TINY = 1e-12


class Senses(NamedTuple):
    """Where in an observation the rings of a lidar, a compass and the velocity are.

    The bins of a ring go around once, to the left from straight ahead. Compass and velocity are two numbers
    each, the components ahead and to the left; the compass shows a direction that is fixed in the world.
    """

    rings: tuple[int, ...]  # the first bin of each
    bins: int  # in each
    compass: tuple[int, ...] = ()
    velocity: tuple[int, ...] = ()


@dataclass(frozen=True)
class Sight:
    """What is added to an observation: powers of some numbers, and where the things are that a ring shows.

    Their place, seen from the agent and in ranges of the lidar, has the distance of the nearest and the mean
    direction of all; (0, 0) if nothing is in range. It is told by its components ahead and to the left, and
    by those in the frame of the compass: along the direction that it shows, and to the left of that. Then
    follows the velocity in that frame. Without a compass there are only the first two.

    Examples
    --------
    >>> Sight((1,), (2.0, 3.0))(np.array([7.0, 0.5]))
    array([7.   , 0.5  , 0.25 , 0.125])
    """

    where: tuple[int, ...] = ()
    powers: tuple[float, ...] = ()
    rings: tuple[int, ...] = ()
    bins: int = 16
    compass: tuple[int, ...] = ()
    velocity: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for power in self.powers:
            if not 0.0 < power < np.inf:
                raise InputError(f"A power of the nearness is {power!r}: it must be positive and finite.")

    @classmethod
    def of(
        cls,
        low: npt.ArrayLike,
        high: npt.ArrayLike,
        powers: tuple[float, ...] = (),
        senses: Senses | None = None,
    ) -> Self:
        """Return the sight of observations between bounds: powers where these are exactly 0 and 1."""
        unit = (np.asarray(low) == 0.0) & (np.asarray(high) == 1.0)
        where = tuple(int(i) for i in np.flatnonzero(unit)) if powers else ()
        return cls(where, tuple(float(power) for power in powers), *(senses or ()))

    @classmethod
    def read(cls, stored: dict[str, Any]) -> Self:
        """Return the sight that :meth:`plain` has stored."""
        values: dict[str, Any] = {name: tuple(value) for name, value in stored.items() if name != "bins"}
        return cls(bins=int(stored["bins"]), **values)

    def plain(self) -> dict[str, Any]:
        """Return the same as lists and numbers."""
        return {name: value if name == "bins" else list(value) for name, value in asdict(self).items()}

    @property
    def last(self) -> int:
        """The last place in an observation that is looked at; -1 for none."""
        rings = [first + self.bins - 1 for first in self.rings]
        return max((*self.where, *rings, *self.compass, *self.velocity), default=-1)

    @property
    def bounded(self) -> int:
        """How many of the numbers that an observation gains are powers, between 0 and 1."""
        return len(self.where) * len(self.powers)

    @property
    def added(self) -> int:
        """How many numbers an observation gains."""
        frames = 2 if self.compass else 1
        moving = bool(self.rings and self.compass and self.velocity)
        return self.bounded + 2 * frames * len(self.rings) + 2 * moving

    def __call__(self, obs: npt.ArrayLike) -> Array:
        """Return observations (..., d) with the powers appended, power by power, then the places."""
        raw: Any = np.asarray(obs, np.float64)
        parts = [raw]
        if self.powers:
            near = np.clip(raw[..., list(self.where)], 0.0, 1.0)
            parts += [near**power for power in self.powers]
        if self.rings:
            parts += self._places(raw)
        return np.concatenate(parts, axis=-1)

    def _places(self, raw: Array) -> list[Array]:
        """Return the components of the places, each (..., rings), and of the velocity, each (..., 1)."""
        index, cos, sin = bins_of(self.rings, self.bins)
        # In this order in memory a sum does not depend on how many observations there are.
        ring = np.ascontiguousarray(raw.take(index, axis=-1))
        np.maximum(np.minimum(ring, 1.0, out=ring), 0.0, out=ring)
        x, y = (ring * cos).sum(axis=-1), (ring * sin).sum(axis=-1)
        scale = (1.0 - ring.max(axis=-1)) / np.maximum(np.sqrt(x * x + y * y), TINY)
        x, y = scale * x, scale * y
        if not self.compass:
            return [x, y]
        north = [raw[..., i, None] for i in self.compass]
        shown = [x, y, *_turned(x, y, *north)]
        return (
            [*shown, *_turned(*(raw[..., i, None] for i in self.velocity), *north)]
            if self.velocity
            else shown
        )


@cache
def bins_of(rings: tuple[int, ...], bins: int) -> tuple[npt.NDArray[np.int64], Array, Array]:
    """Return where in an observation the bins are, (rings, bins), and cosines and sines of their middles."""
    angle = (np.arange(bins) + 0.5) * (2.0 * np.pi / bins)
    return np.add.outer(rings, np.arange(bins)), np.cos(angle), np.sin(angle)


def _turned(x: Array, y: Array, ahead: Array, left: Array) -> tuple[Array, Array]:
    """Return the components of (x, y) along (ahead, left), and to the left of it."""
    size = np.maximum(np.sqrt(ahead * ahead + left * left), TINY)
    along, across = ahead / size, left / size
    return x * along + y * across, y * along - x * across
