"""The numbers of the paper's Table 1: 6 seeds, 10 million steps, 8 environments, limit 25.

Every value there is a multiple of 1/600 after rounding, so the table evidently counts the 600 epochs of six
last fifths by their logged 100-episode means, not episodes as its text says.
"""

from typing import NamedTuple

LIMIT = 25.0
STEPS = 10_000_000
SEEDS = 6


class Published(NamedTuple):
    """Tail feasibility and feasible return as printed."""

    feasibility: float
    ret: float


_TASKS = ("SafetyPointGoal1-v0", "SafetyPointCircle1-v0", "SafetyCarGoal1-v0", "SafetyCarCircle1-v0")
_ROWS = {
    "cpo": ((0.258, 19.21), (0.775, 47.16), (0.257, 22.86), (0.578, 18.24)),
    "evo": ((0.988, 3.68), (0.990, 44.27), (0.997, 3.23), (0.995, 15.64)),
    "trpo-saute": ((0.563, 14.26), (0.992, 41.25), (0.575, 17.54), (0.998, 14.31)),
    "trpo-simmer": ((0.858, 12.33), (0.915, 40.80), (0.698, 15.62), (0.977, 14.51)),
    "steingate": ((0.987, 9.77), (0.992, 46.15), (0.998, 12.65), (0.997, 16.77)),
}


def published(env: str, algo: str, limit: float) -> Published | None:
    """Return what the paper's table says of an algorithm on a task, or ``None`` where it says nothing."""
    env = env.removeprefix("steingate/")
    if limit != LIMIT or algo not in _ROWS or env not in _TASKS:
        return None
    return Published(*_ROWS[algo][_TASKS.index(env)])
