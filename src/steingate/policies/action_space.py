"""Action spaces: from the outputs of a policy's network to the actions of the task.

Continuous actions are shift + scale * a with the network's a in [-1, 1]; discrete ones are start + k for the k-th of
n logits. Random actions add noise to the outputs: normal noise times the standard deviation, or Gumbel noise, of which
the largest sum wins. Without noise the action is the mean, or the most likely one.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def discrete_actions(space: Any) -> tuple[int, int] | None:
    """Return (n, start) of a Discrete space; None for any other space."""
    n = getattr(space, "n", None)
    if n is None or getattr(space, "shape", None) != ():
        return None
    return int(n), int(getattr(space, "start", 0))


def n_outputs(space: Any) -> int:
    """Return the number of outputs of a policy's network."""
    discrete = discrete_actions(space)
    return int(space.shape[0]) if discrete is None else discrete[0]


def action_map(space: Any) -> tuple[Array, Array]:
    """Return shift and scale, which map [-1, 1] to the bounds of ``space``.

    A dimension without finite bounds is not changed. For discrete actions the shift is the first one.
    """
    discrete = discrete_actions(space)
    if discrete is not None:
        return np.array([float(discrete[1])]), np.array([1.0])
    low, high = np.asarray(space.low, np.float64), np.asarray(space.high, np.float64)
    bounded = np.isfinite(low) & np.isfinite(high)
    low, high = np.where(bounded, low, -1.0), np.where(bounded, high, 1.0)
    return 0.5 * (low + high), 0.5 * (high - low)


def action_arrays(space: Any) -> dict[str, Any]:
    """Return the arrays of a stored policy that describe its actions (see ``Policy``)."""
    discrete = discrete_actions(space)
    if discrete is not None:
        return {"discrete": np.array(discrete, np.int64)}
    shift, scale = action_map(space)
    return {"shift": shift, "scale": scale}
