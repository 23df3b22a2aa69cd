"""Two tasks without lidar, equal settings: the drone in wind, and HalfCheetah with a limit on its speed.

``steingate bench examples/no_lidar_grid.py`` trains six algorithms, and TRPO-Lag for a stricter limit.
"""

from pathlib import Path

from steingate.experiments.grid import Sizes

TASKS = {f"{Path(__file__).parent / 'drone_env.py'}:Drone": (5.0, 1.0), "SafetyHalfCheetahVelocity-v1": (25.0, 5.0)}
ALGORITHMS = ("cpo", "trpo-lag", "trpo-saute", "evo", "steingate", "allowance")
SETTINGS = {"gae_lambda": 0.98, "init_std": 2.0, "advantage_clip": 3.0, "saturation_coef": 0.05}
SIZES = Sizes(total_steps=3_000_000, seeds=(0, 1, 2), variant="corrected", out="runs/no-lidar")


def grid(sizes):
    """Return the runs."""
    lidar = {"lidar_powers": (), "lidar_positions": False}  # the default algorithm would look for a lidar
    runs = []
    for env, (limit, strict) in TASKS.items():
        runs += sizes.runs(env, ALGORITHMS, cost_limit=limit, **SETTINGS, **lidar)
        runs += sizes.runs(env, "trpo-lag", "stricter", cost_limit=strict, **SETTINGS, **lidar)
    return runs
