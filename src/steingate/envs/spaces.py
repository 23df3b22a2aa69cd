"""Spaces of foreign environments turned into flat vectors, or refused with the reason."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from steingate.errors import InputError

_DISCRETE = (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
_AS_CHOICE = ", so number the combinations in a gymnasium.ActionWrapper"


def modern_space(space: Any, name: str) -> gymnasium.Space[Any]:
    """Return the Gymnasium space that equals ``space``, which may come from an older Gym or Gymnasium.

    Older packages bring classes of their own with the same names and fields; they are told apart by name.
    """
    if isinstance(space, gymnasium.Space):
        return space
    match type(space).__name__:
        case "Box":
            dtype = np.dtype(space.dtype)
            return spaces.Box(np.asarray(space.low, dtype), np.asarray(space.high, dtype), dtype=dtype.type)
        case "Discrete":
            return spaces.Discrete(int(space.n), start=int(getattr(space, "start", 0)))
        case "MultiDiscrete":
            return spaces.MultiDiscrete(np.asarray(space.nvec))
        case "MultiBinary":
            return spaces.MultiBinary(space.n)
        case "Dict":
            return spaces.Dict({key: modern_space(part, name) for key, part in space.spaces.items()})
        case "Tuple":
            return spaces.Tuple([modern_space(part, name) for part in space.spaces])
        case kind:
            raise InputError(
                f"Environment {name!r} has a space of type {kind!r}: "
                "only Box, Discrete, MultiDiscrete, MultiBinary, Dict and Tuple can be read."
            )


def flat_observations(space: Any, name: str) -> tuple[spaces.Box, Callable[[Any], NDArray[np.float64]]]:
    """Return the flat float64 Box of an observation space and the function that flattens one observation.

    Dict and Tuple spaces are laid end to end in their own order, Discrete ones become one-hot vectors. Images
    and spaces without a fixed length are refused.
    """
    space = modern_space(space, name)
    _refuse_unreadable(space, name)
    if isinstance(space, spaces.Box):
        flat = spaces.Box(
            space.low.ravel().astype(np.float64), space.high.ravel().astype(np.float64), dtype=np.float64
        )
        return flat, lambda obs: np.asarray(obs, dtype=np.float64).ravel()
    box = spaces.utils.flatten_space(space)
    assert isinstance(box, spaces.Box)  # every part has a fixed length, so the whole has
    flat = spaces.Box(box.low.astype(np.float64), box.high.astype(np.float64), dtype=np.float64)
    return flat, lambda obs: np.asarray(spaces.utils.flatten(space, obs), dtype=np.float64)


def flat_actions(space: Any, name: str) -> tuple[spaces.Box | spaces.Discrete, Callable[[Any], Any]]:
    """Return the learner's form of an action space and the function that shapes one action for the task.

    A Discrete space is taken as it is. Of the others only a Box with finite bounds is: it becomes a flat
    float64 Box, and actions are clipped to it.
    """
    space = modern_space(space, name)
    if isinstance(space, spaces.Discrete):
        return spaces.Discrete(int(space.n), start=int(space.start)), np.int64
    if not isinstance(space, spaces.Box):
        raise InputError(
            f"Environment {name!r} has {type(space).__name__} actions: only Box and Discrete actions work"
            f"{_AS_CHOICE if isinstance(space, _DISCRETE) else ''}."
        )
    if space.dtype is not None and not np.issubdtype(space.dtype, np.floating):
        raise InputError(
            f"Environment {name!r} has Box actions of type {space.dtype}: only floating-point ones work."
        )
    if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
        raise InputError(
            f"Environment {name!r} has actions without finite bounds: "
            "give its action_space finite low and high, for example in a gymnasium.ActionWrapper."
        )
    low, high = space.low.ravel().astype(np.float64), space.high.ravel().astype(np.float64)
    flat = spaces.Box(low, high, dtype=np.float64)
    shape, dtype = space.shape, space.dtype

    def shaped(action: NDArray[np.float64]) -> NDArray[Any]:
        return np.clip(action, low, high).reshape(shape).astype(dtype)

    return flat, shaped


def _refuse_unreadable(space: gymnasium.Space[Any], name: str) -> None:
    """Raise if some part of an observation space is an image or has no fixed length."""
    if isinstance(space, spaces.Dict):
        for part in space.spaces.values():
            _refuse_unreadable(part, name)
    elif isinstance(space, spaces.Tuple):
        for part in space.spaces:
            _refuse_unreadable(part, name)
    elif isinstance(space, spaces.Box):
        if space.dtype == np.uint8 and len(space.shape) == 3:
            raise InputError(
                f"Environment {name!r} observes images of shape {space.shape}: "
                "only vector observations are supported, so turn them into features in a wrapper."
            )
    elif not isinstance(space, _DISCRETE):
        raise InputError(
            f"Environment {name!r} has {type(space).__name__} observations, which have no fixed length: "
            "only Box, Discrete, MultiDiscrete, MultiBinary, Dict and Tuple are supported."
        )
