"""SteinGate on the harder circles, PointCircle2 and CarCircle2."""

from steingate.experiments.grid import Sizes
from steingate.training.config import RunConfig


def grid(sizes: Sizes) -> list[RunConfig]:
    """Return the runs on the tasks with walls on all sides."""
    return sizes.runs(("SafetyPointCircle2-v0", "SafetyCarCircle2-v0"), "steingate")
