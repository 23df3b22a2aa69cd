"""Lidar features: functions of the observation that a small network approximates poorly.

A lidar bin reads 1 - distance / range. Between touching a hazard and passing it at arm's length the reading
changes by a few hundredths; its 36th power changes from 1 to almost 0. The position of an object is spread over
the bins of a ring, and its coordinates are products of readings, compass and velocity. Both are computed from
the observation alone.
"""

from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from steingate.errors import InputError
from steingate.policies.policy import lidar_features

Array = npt.NDArray[np.float64]


class LidarLayout(NamedTuple):
    """Indices of the lidar rings, the compass and the velocity in an observation.

    The bins of a ring go around once, counterclockwise from straight ahead. Compass and velocity have two
    components each, forward and left; the compass points in a direction that is fixed in the world.
    """

    rings: tuple[int, ...]  # first bin of each ring
    bins: int  # per ring
    compass: tuple[int, ...] = ()
    velocity: tuple[int, ...] = ()


@dataclass(frozen=True)
class LidarFeatures:
    """Features appended to an observation: powers of readings between 0 and 1, and object positions.

    The position of a ring's objects, in the robot's frame and in units of the lidar's range, has the distance
    of the nearest object and the mean direction of all; (0, 0) if nothing is in range. It is given by its
    forward and left components and, with a compass, by its components in the frame of the compass; then
    follows the velocity in that frame.

    Attributes
    ----------
    indices
        Components of the observation whose powers are appended.
    powers
        Exponents.
    rings, bins, compass, velocity
        As in :class:`LidarLayout`; no rings means no positions.

    Examples
    --------
    >>> LidarFeatures((1,), (2.0, 3.0))(np.array([7.0, 0.5]))
    array([7.   , 0.5  , 0.25 , 0.125])
    """

    indices: tuple[int, ...] = ()
    powers: tuple[float, ...] = ()
    rings: tuple[int, ...] = ()
    bins: int = 16
    compass: tuple[int, ...] = ()
    velocity: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for power in self.powers:
            if not 0.0 < power < np.inf:
                raise InputError(f"A lidar power is {power!r}: it must be positive and finite.")

    @classmethod
    def for_space(
        cls,
        low: npt.ArrayLike,
        high: npt.ArrayLike,
        powers: tuple[float, ...] = (),
        layout: LidarLayout | None = None,
    ) -> Self:
        """Return the features for an observation space; powers of the components with bounds exactly 0 and 1."""
        unit = (np.asarray(low) == 0.0) & (np.asarray(high) == 1.0)
        indices = tuple(int(i) for i in np.flatnonzero(unit)) if powers else ()
        return cls(indices, tuple(float(power) for power in powers), *(layout or ()))

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Return the features that :meth:`to_dict` stored."""
        values: dict[str, Any] = {name: tuple(value) for name, value in stored.items() if name != "bins"}
        return cls(bins=int(stored["bins"]), **values)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as lists and numbers."""
        return {name: value if name == "bins" else list(value) for name, value in asdict(self).items()}

    @property
    def n_powers(self) -> int:
        """Number of appended powers, which lie between 0 and 1."""
        return len(self.indices) * len(self.powers)

    @property
    def n_features(self) -> int:
        """Number of appended features."""
        frames = 2 if self.compass else 1
        has_velocity = bool(self.rings and self.compass and self.velocity)
        return self.n_powers + 2 * frames * len(self.rings) + 2 * has_velocity

    def __call__(self, obs: npt.ArrayLike) -> Array:
        """Return observations (..., d) with the features appended: power by power, then positions."""
        raw: Any = np.asarray(obs, np.float64)
        return np.concatenate([raw, *lidar_features(raw, *self._values)], axis=-1)

    @cached_property
    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))
