"""Ten million steps of PointGoal1 outside of Table 1: prices on cost as published, CPO as corrected."""

from steingate.experiments.grid import Sizes
from steingate.training.config import RunConfig

SIZES = Sizes(seeds=(0,))
TASK = "SafetyPointGoal1-v0"


def grid(sizes: Sizes) -> list[RunConfig]:
    """Return the runs that docs/learning.md speaks of."""
    prices = sizes.runs(TASK, ("ppo-lag", "trpo-lag"), "published")
    return prices + sizes.runs(TASK, "cpo", "corrected", variant="corrected")
