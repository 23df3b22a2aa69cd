"""The two policies behind recorded episode statistics, for a whole batch of episodes at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from steingate.tasks.catalog import CIRCLE_RADIUS, LIDAR_BINS, TaskSpec

Array = npt.NDArray[np.float64]

_FIRST_SEED: Final = 20000  # reset seed of episode 0
_NOISE_SEED: Final = 13 * 20000


class Uniform:
    """Actions drawn uniformly from the action box.

    Parameters
    ----------
    spec : TaskSpec
        The task.
    seeds : sequence of int
        Noise seeds of the episodes.
    """

    def __init__(self, spec: TaskSpec, seeds: Sequence[int]) -> None:
        shape = (spec.max_episode_steps, spec.action_size)
        noise = [np.random.default_rng(seed).uniform(-1.0, 1.0, shape) for seed in seeds]
        # Gymnasium keeps action bounds in single precision.
        self._actions: Array = np.stack(noise, axis=1) * float(np.float32(spec.action_bound))

    def __call__(self, step: int, obs: Array) -> Array:
        """Return the actions (E, a) of one step.

        Parameters
        ----------
        step : int
            Number of the step, from 0.
        obs : (E, d) array
            Observations; not used.
        """
        return np.asarray(self._actions[step])


class Scripted:
    """A hand-written navigator that follows the first lidar block, with noise.

    Parameters
    ----------
    spec : TaskSpec
        A Goal or Circle task.
    seeds : sequence of int
        Noise seeds of the episodes.
    """

    def __init__(self, spec: TaskSpec, seeds: Sequence[int]) -> None:
        self.spec = spec
        shape = (spec.max_episode_steps, 2)
        self._noise = np.stack([np.random.default_rng(seed).standard_normal(shape) for seed in seeds], axis=1)
        centres = (np.arange(LIDAR_BINS) + 0.5) * 2 * math.pi / LIDAR_BINS
        self._cos, self._sin = np.cos(centres), np.sin(centres)

    def __call__(self, step: int, obs: Array) -> Array:
        """Return the actions (E, 2) of one step.

        Parameters
        ----------
        step : int
            Number of the step, from 0.
        obs : (E, d) array
            Observations.
        """
        noise = self._noise[step]
        bearing = self._bearing(obs)
        if self.spec.agent == "point":
            error = _wrapped(bearing)
            speed = 1.0 if self.spec.family == "circle" else 0.6
            thrust = np.clip(0.2 * (speed * np.cos(error) - obs[:, 3]), -0.05, 0.05) + 0.015 * noise[:, 0]
            turn = 2.0 * error / math.pi + 0.3 * noise[:, 1]
            actions = np.stack([thrust, turn], axis=1)
        else:
            error = _wrapped(bearing + math.pi / 2)
            drive = 0.012 * np.cos(error)
            turn = np.clip(0.012 * error, -0.015, 0.015)
            actions = np.stack([drive + turn, drive - turn], axis=1) + 0.006 * noise
        return np.asarray(np.clip(actions, -1.0, 1.0))

    def _bearing(self, obs: Array) -> Array:
        """Return the direction to head for, in the agent's frame."""
        lidar = obs[:, self.spec.sensors : self.spec.sensors + LIDAR_BINS]
        bearing = np.arctan2(lidar @ self._sin, lidar @ self._cos)
        if self.spec.family == "circle":
            distance = self.spec.lidar_range * (1.0 - lidar.max(axis=1))
            bearing += np.clip(1.5 * (distance - CIRCLE_RADIUS), -1.2, 1.2) - math.pi / 2
        lost = 0.3 if self.spec.agent == "point" else 0.3 - math.pi / 2
        return np.where(lidar.sum(axis=1) <= 1e-9, lost, bearing)


POLICIES: Final[dict[str, type[Uniform] | type[Scripted]]] = {"uniform": Uniform, "scripted": Scripted}


def noise_seed(reset_seed: int) -> int:
    """Return the noise seed of the recorded episode with a reset seed.

    Parameters
    ----------
    reset_seed : int
        20000 for the first episode.
    """
    return _NOISE_SEED + reset_seed - _FIRST_SEED


def _wrapped(angle: Array) -> Array:
    """Return angles wrapped to [−π, π)."""
    return (angle + math.pi) % (2 * math.pi) - math.pi
