"""What a gate is: a pure function from the episodes of one epoch to a decision about the next policy step."""

from collections.abc import Callable
from enum import IntEnum
from math import inf
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Log = dict[str, float]
State = Any  # nested dicts, tuples, numbers and NumPy arrays only, so that a checkpoint can hold it


class Mode(IntEnum):
    """Which subproblem the policy step solves this epoch."""

    IMPROVE = 0  # raise reward; the KL ball is the only constraint
    BALANCE = 1  # raise reward while the predicted cost stays under the limit
    RECOVER = 2  # lower cost; reward does not count


class Decision(NamedTuple):
    """All that a gate may tell a step. Numbers only, so it can enter jitted code."""

    mode: int
    slack: float = inf  # limit - watched statistic; inf = no limit
    price: float = 0.0  # multiplier on the cost advantage
    budget: float = 1.0  # share of the cost budget that wrapped environments start an episode with
    level: float = 0.0  # episode cost above which the tail begins


class Episodes(NamedTuple):
    """The episodes that finished in one epoch, in order of completion; rewards and costs undiscounted."""

    cost: npt.NDArray[np.float64]
    ret: npt.NDArray[np.float64]
    length: npt.NDArray[np.int64]
    log_ratio: npt.NDArray[np.float64] | None = None
    """For algorithms that remember episodes: one number for each remembered one, oldest first, those of this
    epoch last; the log of how much likelier the current policy makes it than the policy that it is from."""
    start: npt.NDArray[np.int64] | None = None
    """The step of the epoch at which each began in its own environment, negative when it began in an epoch
    before; ``None`` when unknown."""


class Gate(NamedTuple):
    """A pair of pure functions: the first state, and the decision with the next state and numbers to log."""

    init: Callable[[], State]
    decide: Callable[[State, Episodes], tuple[Decision, State, Log]]
