"""What a gate is: a pure function from the episodes of one epoch to a decision about the next policy step."""

from collections.abc import Callable
from enum import IntEnum
from math import inf
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Log = dict[str, float]
State = Any  # what a part keeps between epochs: a tree of tuples, dicts, numbers and NumPy arrays
S = TypeVar("S")


class Mode(IntEnum):
    """Which subproblem the policy step solves this epoch."""

    IMPROVE = 0  # raise reward; the KL ball is the only constraint
    BALANCE = 1  # raise reward while the predicted cost stays under the limit
    RECOVER = 2  # lower cost; reward does not count


class Decision(NamedTuple):
    """All that a gate may say: to the step, the trainer and the environments. Numbers only."""

    mode: int
    slack: float = inf  # limit - watched statistic; inf = no limit
    price: float = 0.0  # multiplier on the cost advantage
    budget: float = 1.0  # share of its cost budget that an episode may spend
    level: float = 0.0  # episode cost above which the tail begins
    noise: float = inf  # largest deviation that the actions of a Gaussian policy may have next
    part: float = 1.0  # part of the step that is taken
    worth: float = 0.0  # size of an episode's return, for rewards that put a price on cost


class Episodes(NamedTuple):
    """The episodes that finished in one epoch, in order of completion; rewards and costs undiscounted."""

    cost: Array
    ret: Array
    length: npt.NDArray[np.int64]
    log_ratio: Array | None = None
    """For algorithms that remember episodes: one number for each remembered one, oldest first, those of this
    epoch last; the log of how much likelier the current policy makes it than the policy that it is from."""
    start: npt.NDArray[np.int64] | None = None
    """The step of the epoch at which each began in its own environment, negative when it began in an epoch
    before; ``None`` when unknown."""


class Ruling(NamedTuple, Generic[S]):
    """What a gate returns: a decision, its next state, numbers to log, and sentences for the user."""

    decision: Decision
    state: S
    log: Log = {}  # noqa: RUF012 (never changed in place)
    notes: tuple[str, ...] = ()


class Gate(NamedTuple, Generic[S]):
    """A pair of pure functions: the first state, and what is decided about an epoch's episodes.

    The state is a NamedTuple (or any tree) of numbers and NumPy arrays, so that a checkpoint can hold it.
    """

    init: Callable[[], S]
    decide: Callable[[S, Episodes], Ruling[S]]


class Recent(NamedTuple):
    """The state of gates that look back: the costs of the last episodes, oldest first."""

    costs: Array


def no_costs() -> Recent:
    """Return the state before the first episode."""
    return Recent(np.zeros(0))


def following(recent: Array, new: npt.NDArray[Any], window: int) -> Array:
    """Return the last ``window`` numbers of those known and these."""
    return np.concatenate([recent, new])[-window:]


def gate_log(mode: int, episodes: Episodes, **numbers: float) -> Log:
    """Return the log of a gate: its mode, how many episodes it saw, and its own numbers as ``gate/NAME``."""
    samples = float(len(episodes.cost))
    shared = {"gate/samples": samples, "gate/fallback": float(samples == 0.0)}
    return {"gate/mode": float(mode), **{f"gate/{name}": value for name, value in numbers.items()}, **shared}
