"""The method we recommend on tasks that nothing was chosen on: three million steps, one seed."""

from steingate.experiments.grid import Sizes
from steingate.training.config import RunConfig

SIZES = Sizes(total_steps=3_000_000, seeds=(0,), variant="corrected")
UNSEEN = (
    "SafetyPointGoal2-v0",
    "SafetyPointCircle2-v0",
    "SafetyCarGoal2-v0",
    "SafetyCarCircle2-v0",
    "SafetyHalfCheetahVelocity-v1",
    "SafetySwimmerVelocity-v1",
)


def grid(sizes: Sizes) -> list[RunConfig]:
    """Return the runs on harder navigation tasks, and on velocity tasks, whose rewards are far larger."""
    return sizes.runs(UNSEEN, ("allowance",))
