"""The certificates paper, released, certified and confident side by side on PointGoal1 and PointCircle1."""

from steingate.experiments.grid import Sizes
from steingate.training.config import RunConfig

PRESETS = ("paper", "released", "certified", "confident")


def grid(sizes: Sizes) -> list[RunConfig]:
    """Return runs that differ in nothing but the preset of the certificate."""
    return [
        run
        for preset in PRESETS
        for run in sizes.runs(
            ("SafetyPointGoal1-v0", "SafetyPointCircle1-v0"), "steingate", folder=preset, preset=preset
        )
    ]
