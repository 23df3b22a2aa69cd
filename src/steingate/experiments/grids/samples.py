"""SteinGate with 8, 16 and 32 episodes per epoch on CarGoal1."""

from steingate.experiments.grid import Sizes
from steingate.training.config import RunConfig

# Epochs of 8,000, 20,000 and 32,000 steps: 8 environments finish 8, 16 and 32 episodes of 1000 steps in them.
FIFTHS = {8: 2, 16: 5, 32: 8}


def grid(sizes: Sizes) -> list[RunConfig]:
    """Return the runs of the paper's figure on sample sizes, which changes the steps per epoch."""
    return [
        run
        for episodes, fifths in FIFTHS.items()
        for run in sizes.runs(
            "SafetyCarGoal1-v0",
            "steingate",
            folder=f"episodes-{episodes}",
            steps_per_epoch=sizes.steps_per_epoch * fifths // 5,
        )
    ]
