"""The methods of Table 1 on the velocity tasks Ant, HalfCheetah, Humanoid and Swimmer."""

from steingate.experiments.grid import Sizes
from steingate.experiments.grids.tasks import COMPARED, VELOCITY
from steingate.training.config import RunConfig


def grid(sizes: Sizes) -> list[RunConfig]:
    """Return the runs of the paper's figure on velocity tasks."""
    return sizes.runs(VELOCITY, COMPARED)
