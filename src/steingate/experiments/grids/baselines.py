"""Lagrangian methods, and Saute and Simmer on PPO, on the four navigation tasks."""

from steingate.experiments.grid import Sizes
from steingate.experiments.grids.tasks import NAVIGATION
from steingate.training.config import RunConfig


def grid(sizes: Sizes) -> list[RunConfig]:
    """Return the runs of the paper's figure on further baselines; SteinGate's are in ``table1``."""
    return sizes.runs(NAVIGATION, ("trpo-lag", "ppo-lag", "ppo-saute", "ppo-simmer"))
