"""Random layouts of the navigation tasks: random streams, placement of agent and objects, new goals.

Objects are placed in a fixed order with the agent first: x, then y, are drawn uniformly in the object's rectangle and
accepted if the distance to every object placed before is at least the sum of both keepouts. After 100 rejections the
layout starts again from the agent. Then the yaws are drawn, and in Goal tasks the goal is drawn once more.

Every simulation has its own random stream, one row of unsigned integers that compiled functions advance:

``"independent"``
    xoshiro256++ seeded with NumPy's ``SeedSequence``; rows of 4.
``"reference"``
    the Mersenne twister of ``numpy.random.RandomState(seed)``, which repeats layouts and goals of the original tasks
    bit for bit; rows of 625 (the 624 words of the key, then the position).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from steingate.compiled import compiled
from steingate.errors import InputError
from steingate.tasks.catalog import TaskSpec

Stream = Literal["independent", "reference"]
STREAMS: Final = ("independent", "reference")

DRAWS_PER_OBJECT: Final = 100
LAYOUT_ATTEMPTS: Final = 10_000
GOAL_DRAWS: Final = 10_000

_JITTER: Final = 1e-9  # half edge of the square from which fixed objects are drawn
_KEY, _SHIFT = 624, 397  # of the Mersenne twister


def seeded_states(seeds: Sequence[int | None], stream: Stream = "independent") -> NDArray[np.uint64]:
    """Return the states of new random streams, one row per seed; None draws a seed."""
    states = np.empty((len(seeds), 4 if stream == "independent" else _KEY + 1), dtype=np.uint64)
    for row, seed in zip(states, seeds, strict=True):
        if stream == "independent":
            row[:] = np.random.SeedSequence(seed).generate_state(4, np.uint64)
            continue
        if seed is not None and seed >= 2**32:
            raise InputError(f"Seed {seed} is too large for the reference stream: use one below 2**32.")
        word = np.random.SeedSequence().generate_state(1)[0] if seed is None else seed
        twister = np.random.RandomState(int(word)).get_state(legacy=False)["state"]
        row[:_KEY], row[_KEY] = twister["key"], twister["pos"]
    return states


@compiled
def next_double(state):
    """Return a uniform number in [0, 1) with 53 random bits, and advance the stream."""
    if state.shape[0] == 4:
        return np.float64(_next_xoshiro(state) >> np.uint64(11)) * 2.0**-53
    high = _next_twister(state) >> np.uint64(5)
    low = _next_twister(state) >> np.uint64(6)
    return (np.float64(high) * 67108864.0 + np.float64(low)) / 9007199254740992.0


@compiled
def _next_xoshiro(s):
    """Return 64 bits of xoshiro256++ (Blackman and Vigna)."""
    total = s[0] + s[3]
    word = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s[0]
    shifted = s[1] << np.uint64(17)
    s[2] ^= s[0]
    s[3] ^= s[1]
    s[1] ^= s[2]
    s[0] ^= s[3]
    s[2] ^= shifted
    s[3] = (s[3] << np.uint64(45)) | (s[3] >> np.uint64(19))
    return word


@compiled
def _next_twister(state):
    """Return 32 bits of MT19937 (Matsumoto and Nishimura)."""
    position = np.int64(state[_KEY])
    if position >= _KEY:
        for i in range(_KEY):
            y = (state[i] & np.uint64(0x80000000)) | (state[(i + 1) % _KEY] & np.uint64(0x7FFFFFFF))
            word = state[(i + _SHIFT) % _KEY] ^ (y >> np.uint64(1))
            if y & np.uint64(1):
                word ^= np.uint64(0x9908B0DF)
            state[i] = word
        position = np.int64(0)
    y = state[position]
    state[_KEY] = np.uint64(position + 1)
    y ^= y >> np.uint64(11)
    y ^= (y << np.uint64(7)) & np.uint64(0x9D2C5680)
    y ^= (y << np.uint64(15)) & np.uint64(0xEFC60000)
    return (y ^ (y >> np.uint64(18))) & np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class Placement:
    """Placement rule of a task as arrays of R rows: the agent, then the objects in placement order."""

    kinds: tuple[str, ...]  # of every row, ``"agent"`` first
    low: NDArray[np.float64]  # (R, 2) corners of the rectangle from which each row is drawn
    high: NDArray[np.float64]
    keepout: NDArray[np.float64]  # (R,) keepout radius of each row
    goal: int  # row of the goal, or -1 if the task has none

    def rows(self, kind: str) -> slice:
        """Return the rows of a kind of object; empty if the task has none."""
        if kind not in self.kinds:
            return slice(0, 0)
        first = self.kinds.index(kind)
        return slice(first, first + self.kinds.count(kind))


def make_placement(task: TaskSpec) -> Placement:
    """Return the placement rule of a navigation task."""
    kinds, keepout, corner = ["agent"], [task.agent_keepout], task.agent_extent - task.agent_keepout
    rectangles = [(-corner, -corner, corner, corner)]
    for group in task.objects:
        kinds += [group.kind] * group.count
        keepout += [group.keepout] * group.count
        corner = task.extent - group.keepout
        if group.fixed:
            rectangles += [(x - _JITTER, y - _JITTER, x + _JITTER, y + _JITTER) for x, y in group.fixed]
        else:
            rectangles += [(-corner, -corner, corner, corner)] * group.count
    low, high = np.hsplit(np.array(rectangles), 2)
    goal = kinds.index("goal") if "goal" in kinds else -1
    return Placement(tuple(kinds), low.copy(), high.copy(), np.array(keepout), goal)


@compiled
def _draw_free(state, low, high, keepout, row, placed, draws, xy):
    """Draw ``xy[row]`` clear of the other rows below ``placed``; return whether a place was found."""
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
    """Draw a new place of the goal, clear of all other rows of ``xy``; return whether one was found."""
    return _draw_free(state, low, high, keepout, goal, xy.shape[0], GOAL_DRAWS, xy)


@compiled
def draw_layouts(ids, states, low, high, keepout, goal, xy, yaw):
    """Draw new layouts for the simulations ``ids``; return whether all respect the keepouts.

    ``states`` are the random streams (N, 4 or 625), the rule is that of a ``Placement``; ``xy`` (N, R, 2) and ``yaw``
    (N, R) receive the layouts. Objects with a fixed place have yaw 0.
    """
    rows = xy.shape[1]
    for i in ids:
        for _ in range(LAYOUT_ATTEMPTS):
            placed = 0
            while placed < rows and _draw_free(states[i], low, high, keepout, placed, placed, DRAWS_PER_OBJECT, xy[i]):
                placed += 1
            if placed == rows:
                break
        for row in range(rows):
            turn = 2.0 * math.pi * next_double(states[i])
            yaw[i, row] = turn if high[row, 0] - low[row, 0] > 1e-6 else 0.0
        if placed < rows or (goal >= 0 and not draw_goal(states[i], low, high, keepout, goal, xy[i])):
            return False
    return True
