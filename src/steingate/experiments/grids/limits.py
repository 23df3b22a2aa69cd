"""SteinGate under cost limits of 10, 25 and 40 on PointGoal1."""

from steingate.experiments.grid import Sizes
from steingate.training.config import RunConfig


def grid(sizes: Sizes) -> list[RunConfig]:
    """Return the runs of the paper's figure on cost limits."""
    return [
        run
        for limit in (10.0, 25.0, 40.0)
        for run in sizes.runs("SafetyPointGoal1-v0", "steingate", folder=f"limit-{limit:g}", cost_limit=limit)
    ]
