"""From the numbers of a policy's network to actions, with NumPy alone: a box of numbers, or a choice.

Both kinds are drawn the same way: noise is added to the outputs (normal noise times the deviation for a box,
Gumbel's for a choice, of which the largest sum wins), and no noise gives the action that evaluation takes.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class Choice(NamedTuple):
    """One of ``choices`` actions that the task calls ``start``, ``start + 1``, and so on."""

    choices: int
    start: int = 0

    def likeliest(self, logits: Array) -> Any:
        """Return the most likely action: an integer for one row of logits, (n,) for a batch.

        >>> int(Choice(3, start=5).likeliest(np.array([0.1, 2.0, -1.0])))
        6
        """
        return np.argmax(logits, axis=-1) + self.start

    def sample(self, logits: Array, rng: np.random.Generator) -> Any:
        """Return a random action, each with its probability exp(logit) / sum of exp(logits)."""
        return self.likeliest(logits + rng.gumbel(size=np.shape(logits)))


def choice_of(space: Any) -> Choice | None:
    """Return what there is to choose from in a Discrete action space; None for any other space."""
    count = getattr(space, "n", None)
    if count is None or getattr(space, "shape", None) != ():
        return None
    return Choice(int(count), int(getattr(space, "start", 0)))


def outputs(space: Any) -> int:
    """Return how many numbers a policy's network gives for an action space."""
    choice = choice_of(space)
    return int(space.shape[0]) if choice is None else choice.choices


def action_map(space: Any) -> tuple[Array, Array]:
    """Return shift and scale with a_env = shift + scale * a, which takes [-1, 1] to the bounds of ``space``.

    A dimension without finite bounds is passed on as it is. A choice is a number from 0 on, which is shifted
    to the first of the task's own.
    """
    choice = choice_of(space)
    if choice is not None:
        return np.array([float(choice.start)]), np.array([1.0])
    low, high = np.asarray(space.low, np.float64), np.asarray(space.high, np.float64)
    bounded = np.isfinite(low) & np.isfinite(high)
    low, high = np.where(bounded, low, -1.0), np.where(bounded, high, 1.0)
    return 0.5 * (low + high), 0.5 * (high - low)


def stored_action(space: Any) -> dict[str, Any]:
    """Return what a checkpoint says about actions: the map of a box, or the numbers of a choice."""
    choice = choice_of(space)
    if choice is not None:
        return {"choices": choice.choices, "start": choice.start}
    shift, scale = action_map(space)
    return {"shift": shift, "scale": scale}
