"""Where things stand at reset: the placement law, layouts drawn from it, goals drawn again.

Objects are placed in a fixed order with the agent first: draw x, then y, uniformly in the object's rectangle
and accept when the distance to everything placed before is not smaller than the sum of both keepouts. After
100 refusals the whole layout starts again from the agent. Then come the yaws, and in tasks with a goal
the goal is drawn once more. Impossible placements end in an `InputError`.

The ``draw_*`` functions are compiled and take rows of `steingate.tasks.streams`: kernels can call them.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from steingate.compiled import compiled
from steingate.errors import InputError
from steingate.tasks.catalog import TaskSpec
from steingate.tasks.streams import next_double

DRAWS_PER_OBJECT: Final = 100
LAYOUT_ATTEMPTS: Final = 10_000
GOAL_DRAWS: Final = 10_000

PLACED: Final = 0
NO_LAYOUT: Final = 1
NO_GOAL: Final = 2

_JITTER: Final = 1e-9  # fixed objects are drawn too, from a square this small


@dataclass(frozen=True)
class Placement:
    """The placement law of one task as arrays; row 0 is the agent, then the objects in placement order.

    Attributes
    ----------
    task : name used in error messages
    kinds : kind of every row, ``"agent"`` first
    low, high : (n, 2) corners of the rectangle from which each row is drawn
    keepout : (n,) keepout radius of each row
    goal : row of the goal, or -1 if the task has none
    """

    task: str
    kinds: tuple[str, ...]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    keepout: NDArray[np.float64]
    goal: int

    def rows(self, kind: str) -> slice:
        """Rows of one kind (empty if the task has none)."""
        if kind not in self.kinds:
            return slice(0, 0)
        first = self.kinds.index(kind)
        return slice(first, first + self.kinds.count(kind))


@dataclass(frozen=True)
class Layout:
    """One sampled layout; ``xy`` (n, 2) and ``rot`` (n,) follow the rows of the placement, agent first.

    Objects with a fixed place have yaw 0. ``goal_first`` is the discarded first goal, NaN without a goal.
    """

    xy: NDArray[np.float64]
    rot: NDArray[np.float64]
    goal_first: NDArray[np.float64]


def placement(spec: TaskSpec) -> Placement:
    """Return the placement law of a navigation task.

    Parameters
    ----------
    spec : TaskSpec
        Extents, keepouts and object kinds in placement order.

    Raises
    ------
    InputError
        If an object's keepout leaves no room in the task's square.
    """
    kinds, keepout, corner = ["agent"], [spec.agent_keepout], spec.agent_extent - spec.agent_keepout
    rectangles = [(-corner, -corner, corner, corner)]
    for group in spec.objects:
        kinds += [group.kind] * group.count
        keepout += [group.keepout] * group.count
        corner = spec.extent - group.keepout
        if group.fixed:
            rectangles += [(x - _JITTER, y - _JITTER, x + _JITTER, y + _JITTER) for x, y in group.fixed]
        else:
            rectangles += [(-corner, -corner, corner, corner)] * group.count
    low, high = np.hsplit(np.array(rectangles), 2)
    if np.any(low > high):
        kind = kinds[int(np.argmax(np.any(low > high, axis=1)))]
        raise InputError(
            f"{spec.env_id}: the keepout of the {kind} is larger than its extent; make the extent larger."
        )
    goal = kinds.index("goal") if "goal" in kinds else -1
    return Placement(spec.env_id, tuple(kinds), low.copy(), high.copy(), np.array(keepout), goal)


def sample_layout(law: Placement, state: NDArray[np.uint64]) -> Layout:
    """One layout drawn from ``law``; advances the stream in ``state`` (one row of `seeded_states`)."""
    rows = len(law.kinds)
    xy, rot, first = np.empty((1, rows, 2)), np.empty((1, rows)), np.empty((1, 2))
    sample_layouts(law, state[None], np.ones(1, dtype=np.bool_), xy, rot, first)
    return Layout(xy[0], rot[0], first[0])


def sample_layouts(
    law: Placement,
    states: NDArray[np.uint64],
    mask: NDArray[np.bool_],
    xy: NDArray[np.float64],
    rot: NDArray[np.float64],
    goal_first: NDArray[np.float64],
) -> None:
    """Fill the masked rows of ``xy`` (N, n, 2), ``rot`` (N, n) and ``goal_first`` (N, 2) with new layouts."""
    status = draw_layouts(states, mask, law.low, law.high, law.keepout, law.goal, xy, rot, goal_first)
    check_status(law, status)


def check_status(law: Placement, status: int) -> None:
    """Raise the error that belongs to a status of the compiled functions other than ``PLACED``."""
    if status == NO_LAYOUT:
        raise InputError(
            f"{law.task}: no layout respects all keepouts after {LAYOUT_ATTEMPTS} attempts; "
            "use fewer objects, smaller keepouts or a larger extent."
        )
    if status == NO_GOAL:
        raise InputError(
            f"{law.task}: found no free place for the goal in {GOAL_DRAWS} draws; use fewer objects."
        )


@compiled
def _draw_free(state, low, high, keepout, row, placed, draws, xy):
    """Whether a point for ``row`` clear of the other rows below ``placed`` was found (now ``xy[row]``)."""
    for _ in range(draws):
        x = low[row, 0] + (high[row, 0] - low[row, 0]) * next_double(state)
        y = low[row, 1] + (high[row, 1] - low[row, 1]) * next_double(state)
        free = True
        for other in range(placed):
            if other == row:
                continue
            dx, dy = x - xy[other, 0], y - xy[other, 1]
            if math.sqrt(dx * dx + dy * dy) < keepout[other] + keepout[row]:
                free = False
                break
        if free:
            xy[row, 0], xy[row, 1] = x, y
            return True
    return False


@compiled
def draw_goal(state, low, high, keepout, goal, xy):
    """Whether a free place for the goal was found; it is then in ``xy[goal]``, otherwise ``xy`` is unchanged.

    ``xy`` holds the current positions of all rows; the old goal is not in the way, the agent is.
    """
    return _draw_free(state, low, high, keepout, goal, xy.shape[0], GOAL_DRAWS, xy)


@compiled
def draw_layout(state, low, high, keepout, goal, xy, rot, goal_first):
    """Status of one layout written to ``xy``, ``rot`` and ``goal_first``: PLACED, NO_LAYOUT or NO_GOAL."""
    rows = xy.shape[0]
    complete = False
    for _ in range(LAYOUT_ATTEMPTS):
        complete = True
        for row in range(rows):
            if not _draw_free(state, low, high, keepout, row, row, DRAWS_PER_OBJECT, xy):
                complete = False
                break
        if complete:
            break
    if not complete:
        return NO_LAYOUT
    for row in range(rows):
        turn = 2.0 * math.pi * next_double(state)
        rot[row] = turn if high[row, 0] - low[row, 0] > 1e-6 else 0.0
    goal_first[:] = np.nan
    if goal >= 0:
        goal_first[0], goal_first[1] = xy[goal, 0], xy[goal, 1]
        if not draw_goal(state, low, high, keepout, goal, xy):
            return NO_GOAL
    return PLACED


@compiled
def draw_layouts(states, mask, low, high, keepout, goal, xy, rot, goal_first):
    """Status of drawing a layout for every masked environment; stops at the first that cannot be placed."""
    for i in range(states.shape[0]):
        if mask[i]:
            status = draw_layout(states[i], low, high, keepout, goal, xy[i], rot[i], goal_first[i])
            if status != PLACED:
                return status
    return PLACED
