"""A few minutes: gates, trust region, clipped steps, replay and budgets on one small task."""

from steingate.experiments.grid import Sizes
from steingate.training.config import RunConfig

SIZES = Sizes(total_steps=400_000, seeds=(0, 1, 2), checkpoint_every=5)


def grid(sizes: Sizes) -> list[RunConfig]:
    """Return runs that exercise every part once."""
    return sizes.runs("SafetyPointCircle1-v0", ("cpo", "evo", "trpo-saute", "ppo-lag", "steingate"))
