"""The method we recommend on the four navigation tasks of Table 1, three seeds each."""

from steingate.experiments.grid import Sizes
from steingate.experiments.grids.tasks import NAVIGATION
from steingate.training.config import RunConfig

SIZES = Sizes(seeds=(0, 1, 2), variant="corrected")


def grid(sizes: Sizes) -> list[RunConfig]:
    """Return the runs behind the page on the allowance."""
    return sizes.runs(NAVIGATION, ("allowance",))
