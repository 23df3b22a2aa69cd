"""SteinGate and CPO on both Car tasks, by the Car's own motion and by the engine alone."""

from steingate.experiments.grid import Sizes
from steingate.training.config import RunConfig

SIZES = Sizes(total_steps=1_000_000, seeds=(0, 1, 2), variant="corrected")
TASKS = ("SafetyCarGoal1-v0", "SafetyCarCircle1-v0")


def grid(sizes: Sizes) -> list[RunConfig]:
    """Return runs that differ in nothing but the physics."""
    return [
        run
        for physics in ("auto", "mujoco")
        for run in sizes.runs(TASKS, ("steingate", "cpo"), physics, env_options={"physics": physics})
    ]
