"""Lidar features: functions of the observation that a small network approximates poorly.

A lidar bin reads 1 - distance / range. Between touching a hazard and passing it at arm's length the reading
changes by a few hundredths; its 36th power changes from 1 to almost 0. The position of an object is spread over
the bins of a ring, and its coordinates are products of readings, compass and velocity. Both are computed from
the observation alone.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from steingate.policies.policy import lidar_features

Array = npt.NDArray[np.float64]


class LidarFeatures(NamedTuple):
    """Features appended to an observation: powers of readings between 0 and 1, and object positions.

    The position of a ring's objects, in the robot's frame and in units of the lidar's range, has the distance
    of the nearest object and the mean direction of all; (0, 0) if nothing is in range. It is given by its
    forward and left components and, with a compass, by its components in the frame of the compass; then
    follows the velocity in that frame.

    Attributes
    ----------
    indices, powers
        Components of the observation whose powers are appended, and exponents.
    rings, bins
        First bin of each lidar ring, and bins per ring, which go around once, counterclockwise from straight ahead.
        No rings means no positions.
    compass, velocity
        Indices of two components each, forward and left; the compass points in a direction fixed in the world.

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

    def __call__(self, obs: npt.ArrayLike) -> Array:
        """Return observations (..., d) with the features appended: power by power, then positions."""
        raw = np.asarray(obs, np.float64)
        return np.concatenate([raw, *lidar_features(raw, *self)], axis=-1)
