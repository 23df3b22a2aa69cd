"""Every method once: a million steps on PointCircle1 and PointGoal1, one seed."""

from steingate.algorithms import METHODS
from steingate.experiments.grid import Sizes
from steingate.training.config import RunConfig

SIZES = Sizes(total_steps=1_000_000, seeds=(0,), variant="corrected")


def grid(sizes: Sizes) -> list[RunConfig]:
    """Return one run of every method on both tasks."""
    return sizes.runs(("SafetyPointCircle1-v0", "SafetyPointGoal1-v0"), tuple(METHODS))
