"""What users hand to an environment, checked: options, seeds, actions; and the spaces they may expect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from steingate.errors import InputError
from steingate.tasks.catalog import TaskSpec
from steingate.tasks.protocol import Array

_NO_BOUND = 1e9  # more than any sensor reads; Gymnasium's checker objects to infinity


def observation_space(task: TaskSpec) -> Box:
    """Return the space of one observation: sensors practically without bounds, lidar within [0, 1].

    Parameters
    ----------
    task : TaskSpec
        The task.
    """
    high = np.full(task.observation_size, _NO_BOUND)
    low = -high
    low[task.sensors :], high[task.sensors :] = 0.0, 1.0
    return Box(low, high, dtype=np.float64)


def action_space(task: TaskSpec) -> Box:
    """Return the space of one action.

    Parameters
    ----------
    task : TaskSpec
        The task.
    """
    dtype = np.float32 if task.family == "velocity" else np.float64
    return Box(-task.action_bound, task.action_bound, (task.action_size,), dtype)


def checked_actions(task: TaskSpec, num_envs: int, actions: npt.ArrayLike) -> Array:
    """Return actions as a task wants them: finite, contiguous, of the right shape.

    Parameters
    ----------
    task : TaskSpec
        The task.
    num_envs : int
        Number of environments.
    actions : array
        As given by the user; infinities are clipped where actions are, not-a-number never passes.
    """
    try:
        given = np.ascontiguousarray(actions, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"Actions must be numbers, got {actions!r}.") from None
    if given.shape != (num_envs, task.action_size):
        raise InputError(f"Actions have shape {given.shape}; {(num_envs, task.action_size)} is expected.")
    if np.isfinite(given).all():
        return given
    # velocity tasks charge for the action as given, so infinity has no meaning there
    refused = ~np.isfinite(given) if task.family == "velocity" else np.isnan(given)
    if refused.any():
        i = int(np.argmax(refused.any(axis=1)))
        raise InputError(f"The action of environment {i} is {given[i].tolist()}: give finite numbers.")
    return np.clip(given, -task.action_bound, task.action_bound)


def checked_seeds(seed: int | Sequence[int | None] | None, num_envs: int) -> list[int | None]:
    """Return one seed per environment; None goes on with the environment's stream.

    Parameters
    ----------
    seed : int, sequence or None
        An integer s gives environment i the seed s + i.
    num_envs : int
        Number of environments.
    """
    if seed is None:
        return [None] * num_envs
    if _whole(seed):
        seeds: list[Any] = [int(seed) + i for i in range(num_envs)]  # type: ignore[arg-type]
    elif isinstance(seed, Iterable) and not isinstance(seed, str):
        seeds = list(seed)
    else:
        raise InputError(f"Seed {seed!r} cannot be used: give an integer that is not negative.")
    if len(seeds) != num_envs:
        raise InputError(f"There are {len(seeds)} seeds for {num_envs} environments: give one each.")
    for value in seeds:
        if value is not None and (not _whole(value) or value < 0):
            raise InputError(f"Seed {value!r} cannot be used: give an integer that is not negative.")
    return [None if value is None else int(value) for value in seeds]


def checked_options(name: str, options: Iterable[str], known: Sequence[str]) -> None:
    """Refuse options that a native task does not have.

    Parameters
    ----------
    name : str
        The task.
    options : iterable of str
        The names given by the user.
    known : sequence of str
        Those there are.
    """
    for option in options:
        if option == "cost":
            raise InputError(
                f"The native task {name!r} has its own cost: the option 'cost' is for other environments."
            )
        if option not in known:
            raise InputError(
                f"The native task {name!r} has no option {option!r}: it takes {', '.join(known)}."
            )


def _whole(value: Any) -> bool:
    """Return whether a value is an integer and not a truth value."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def positive(name: str, value: Any) -> int:
    """Return a count, refusing what is none.

    Parameters
    ----------
    name : str
        The option.
    value : object
        As given by the user.
    """
    if not _whole(value) or value < 1:
        raise InputError(f"{name} is {value!r}; a positive integer is expected.")
    return int(value)


def one_of(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Refuse a value that is not among the choices.

    Parameters
    ----------
    name : str
        The option.
    value : object
        As given by the user.
    choices : sequence
        What there is.
    """
    if value not in choices:
        raise InputError(f"{name} is {value!r}; choose one of {', '.join(map(repr, choices))}.")
