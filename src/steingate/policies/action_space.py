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
    """Return (n, start) of a Discrete space; None for a Box."""
    return (int(space.n), int(space.start)) if hasattr(space, "n") else None


def n_outputs(space: Any) -> int:
    """Return the number of outputs of a policy's network."""
    return int(space.n if hasattr(space, "n") else space.shape[0])


def action_map(space: Any) -> tuple[Array, Array]:
    """Return shift and scale, which map [-1, 1] to the bounds of a Box; for discrete actions, start and 1."""
    if hasattr(space, "n"):
        return np.array([float(space.start)]), np.array([1.0])
    low, high = np.asarray(space.low, np.float64), np.asarray(space.high, np.float64)
    return 0.5 * (low + high), 0.5 * (high - low)


def action_arrays(space: Any) -> dict[str, Any]:
    """Return the arrays of a stored policy that describe its actions (see ``Policy``)."""
    discrete = discrete_actions(space)
    if discrete is not None:
        return {"discrete": np.array(discrete, np.int64)}
    return dict(zip(("shift", "scale"), action_map(space), strict=True))
