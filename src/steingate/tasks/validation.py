"""Spaces of the native tasks, checks of options, seeds and actions, and the default number of threads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from steingate.errors import InputError
from steingate.tasks.catalog import TaskSpec

Array = npt.NDArray[np.float64]
_NO_BOUND = 1e9  # more than any sensor reads; Gymnasium's checker objects to infinity


def observation_space(task: TaskSpec) -> Box:
    """Return the space of one observation: lidar entries within [0, 1], sensors practically unbounded."""
    high = np.full(task.observation_size, _NO_BOUND)
    low = -high
    low[task.sensors :], high[task.sensors :] = 0.0, 1.0
    return Box(low, high, dtype=np.float64)


def action_space(task: TaskSpec) -> Box:
    """Return the space of one action."""
    dtype = np.float32 if task.family == "velocity" else np.float64
    return Box(-task.action_bound, task.action_bound, (task.action_size,), dtype)


def check_actions(task: TaskSpec, num_envs: int, actions: npt.ArrayLike) -> Array:
    """Return finite, contiguous float64 actions (num_envs, a).

    Infinities are clipped, except in velocity tasks, where the reward depends on the action as given; NaN is refused.
    """
    try:
        given = np.ascontiguousarray(actions, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"Actions must be numbers, got {actions!r}.") from None
    if given.shape != (num_envs, task.action_size):
        raise InputError(f"Actions have shape {given.shape}; {(num_envs, task.action_size)} is expected.")
    finite = np.isfinite(given)
    if finite.all():
        return given
    refused = ~finite if task.family == "velocity" else np.isnan(given)
    if refused.any():
        i = int(np.argmax(refused.any(axis=1)))
        raise InputError(f"The action of environment {i} is {given[i].tolist()}: give finite numbers.")
    return np.clip(given, -task.action_bound, task.action_bound)


def check_seeds(seed: int | Sequence[int | None] | None, num_envs: int) -> list[int | None]:
    """Return one seed per environment: seed + i for an integer; None continues a random stream."""
    if _is_integer(seed) and seed >= 0:  # type: ignore[operator]
        return [int(seed) + i for i in range(num_envs)]  # type: ignore[arg-type]
    seeds = [None] * num_envs if seed is None else list(seed) if isinstance(seed, Sequence | np.ndarray) else [seed]
    for value in seeds:
        if value is not None and (not _is_integer(value) or value < 0):
            raise InputError(f"Seed {value!r} cannot be used: give a non-negative integer.")
    if len(seeds) != num_envs:
        raise InputError(f"There are {len(seeds)} seeds for {num_envs} environments: give one each.")
    return [None if value is None else int(value) for value in seeds]


def check_count(name: str, value: Any) -> int:
    """Return an option that must be a positive integer."""
    if not _is_integer(value) or value < 1:
        raise InputError(f"{name} is {value!r}; a positive integer is expected.")
    return int(value)


def usable_cores() -> list[int]:
    """Return the CPU cores that this process may use."""
    has_affinity = hasattr(os, "sched_getaffinity")
    return sorted(os.sched_getaffinity(0)) if has_affinity else list(range(os.cpu_count() or 1))


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
