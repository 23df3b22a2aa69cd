"""SteinGate on PPO's step with ten and with forty passes over the samples of an epoch."""

from steingate.experiments.grid import Sizes
from steingate.training.config import RunConfig

SIZES = Sizes(total_steps=1_000_000, seeds=(0, 1, 2, 3), variant="corrected")
TASKS = ("SafetyPointCircle1-v0", "SafetyPointGoal1-v0")


def grid(sizes: Sizes) -> list[RunConfig]:
    """Return runs that differ in the number of passes alone."""
    usual = sizes.runs(TASKS, "steingate-ppo", "ten")
    return usual + sizes.runs(TASKS, "steingate-ppo", "forty", **{"clipped.passes": 40})
