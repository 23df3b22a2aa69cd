"""Table 1: SteinGate against CPO, EVO, Saute and Simmer on the four navigation tasks."""

from steingate.experiments.grid import Sizes
from steingate.experiments.grids.tasks import COMPARED, NAVIGATION
from steingate.training.config import RunConfig


def grid(sizes: Sizes) -> list[RunConfig]:
    """Return the runs behind the paper's table and its main figure."""
    return sizes.runs(NAVIGATION, COMPARED)
