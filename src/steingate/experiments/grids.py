"""The built-in grids, one function each, with the paper's sizes unless ``built_in`` is given others."""

from collections.abc import Callable
from typing import Any

from steingate.algorithms import ALGORITHMS
from steingate.algorithms.config import NetworkConfig
from steingate.experiments.grid import Grid, Sizes
from steingate.training.config import RunConfig

NAVIGATION = ("SafetyPointGoal1-v0", "SafetyPointCircle1-v0", "SafetyCarGoal1-v0", "SafetyCarCircle1-v0")
VELOCITY = (
    "SafetyAntVelocity-v1", "SafetyHalfCheetahVelocity-v1", "SafetyHumanoidVelocity-v1", "SafetySwimmerVelocity-v1",
    "SafetyHopperVelocity-v1", "SafetyWalker2dVelocity-v1",
)  # fmt: skip
COMPARED = ("cpo", "evo", "trpo-saute", "trpo-simmer", "steingate")
# Inputs and learning settings of the default algorithm, given to every method.
EQUAL: dict[str, Any] = {
    "lidar_powers": (4.0, 12.0, 36.0), "lidar_positions": True, "gae_lambda": 0.98, "init_std": 2.0,
    "advantage_clip": 3.0, "saturation_coef": 0.05,
}  # fmt: skip
# Ingredients of the default algorithm, and the options without each; the last holds the budget fraction.
REMOVED: dict[str, dict[str, Any]] = {
    "lidar-powers": {"lidar_powers": ()},
    "lidar-positions": {"lidar_positions": False},
    "gae-lambda": {"gae_lambda": 0.95},
    "init-std": {"init_std": NetworkConfig().init_std},
    "advantage-clip": {"advantage_clip": None},
    "saturation-penalty": {"saturation_coef": 0.0},
    "reward-over-budget": {"over_budget_reward_weight": 0.0},
    "schedule": {"schedule.min_fraction": 0.6, "schedule.init_fraction": 0.6, "schedule.grow": 1.0 + 1e-9},
}
PRESETS = ("paper", "released", "corrected", "violation")

# The paper does not state the parameters of its logit-normal reference. This one has the mean and standard
# deviation of the log-odds of Beta(2, 5).
REFERENCES = {"beta-2-5": "Beta(2, 5)", "beta-1-10": "Beta(1, 10)", "logit-normal": "LogitNormal(-1.0833, 0.9307)"}

Build = Callable[[Sizes], list[RunConfig]]
GRIDS: dict[str, Grid] = {}
"""The built-in grids by name."""


def built_in(**sizes: Any) -> Callable[[Build], Build]:
    """Add a function to ``GRIDS``: its name is the grid's name, its docstring the summary."""

    def add(build: Build) -> Build:
        name = build.__name__.replace("_", "-")
        GRIDS[name] = Grid(name, (build.__doc__ or "").partition("\n")[0], build, Sizes(**sizes))
        return build

    return add


@built_in()
def table1(sizes: Sizes) -> list[RunConfig]:
    """Table 1: SteinGate against CPO, EVO, Saute and Simmer on the four navigation tasks."""
    return sizes.runs(NAVIGATION, COMPARED)


@built_in()
def velocity(sizes: Sizes) -> list[RunConfig]:
    """Algorithms of Table 1 and the default algorithm on the six velocity tasks."""
    return [*sizes.runs(VELOCITY, COMPARED), *sizes.runs(VELOCITY, "allowance", variant="corrected")]


@built_in()
def baselines(sizes: Sizes) -> list[RunConfig]:
    """Lagrangian methods, and Saute and Simmer on PPO, on the four navigation tasks."""
    return sizes.runs(NAVIGATION, ("trpo-lag", "ppo-lag", "ppo-saute", "ppo-simmer"))


@built_in()
def cpo_variants(sizes: Sizes) -> list[RunConfig]:
    """CPO, RCPO and PCPO on the four navigation tasks."""
    return sizes.runs(NAVIGATION, ("cpo", "rcpo", "pcpo"))


@built_in()
def limits(sizes: Sizes) -> list[RunConfig]:
    """SteinGate with cost limits of 10, 25 and 40 on PointGoal1."""
    return [
        run
        for limit in (10.0, 25.0, 40.0)
        for run in sizes.runs("SafetyPointGoal1-v0", "steingate", f"limit-{limit:g}", cost_limit=limit)
    ]


@built_in()
def references(sizes: Sizes) -> list[RunConfig]:
    """SteinGate with the references Beta(2, 5), Beta(1, 10) and a logit-normal on PointGoal1."""
    return [
        run
        for folder, reference in REFERENCES.items()
        for run in sizes.runs("SafetyPointGoal1-v0", "steingate", folder, certificate={"reference": reference})
    ]


@built_in()
def samples(sizes: Sizes) -> list[RunConfig]:
    """SteinGate with 8, 16 and 32 episodes per epoch on CarGoal1.

    The 8 environments finish that many episodes of 1000 steps in epochs of 8,000, 20,000 and 32,000 steps,
    which are 2, 5 and 8 fifths of the paper's.
    """
    return [
        run
        for episodes, fifths in ((8, 2), (16, 5), (32, 8))
        for run in sizes.runs(
            "SafetyCarGoal1-v0",
            "steingate",
            f"episodes-{episodes}",
            steps_per_epoch=sizes.steps_per_epoch * fifths // 5,
        )
    ]


@built_in()
def circle2(sizes: Sizes) -> list[RunConfig]:
    """SteinGate on the harder circles, PointCircle2 and CarCircle2."""
    return sizes.runs(("SafetyPointCircle2-v0", "SafetyCarCircle2-v0"), "steingate")


@built_in()
def gates(sizes: Sizes) -> list[RunConfig]:
    """SteinGate with each certificate preset on PointGoal1 and PointCircle1."""
    return [
        run
        for preset in PRESETS
        for run in sizes.runs(("SafetyPointGoal1-v0", "SafetyPointCircle1-v0"), "steingate", preset, preset=preset)
    ]


@built_in(total_steps=1_000_000, seeds=(0,), variant="corrected")
def learning(sizes: Sizes) -> list[RunConfig]:
    """Every algorithm for a million steps on PointCircle1 and PointGoal1, one seed."""
    return sizes.runs(("SafetyPointCircle1-v0", "SafetyPointGoal1-v0"), tuple(ALGORITHMS))


@built_in(total_steps=400_000, seeds=(0, 1, 2), checkpoint_every=5)
def quick(sizes: Sizes) -> list[RunConfig]:
    """Short check of a few minutes: five algorithms on PointCircle1, three seeds."""
    return sizes.runs("SafetyPointCircle1-v0", ("cpo", "evo", "trpo-saute", "ppo-lag", "steingate"))


@built_in(seeds=(0, 1, 2), variant="corrected")
def allowance(sizes: Sizes) -> list[RunConfig]:
    """Default algorithm on the four navigation tasks, three seeds."""
    return sizes.runs(NAVIGATION, "allowance")


@built_in(seeds=(0, 1, 2), variant="corrected")
def equal(sizes: Sizes) -> list[RunConfig]:
    """Six methods with equal inputs and learning settings, and TRPO-Lag trained for limits of 5 and 2."""
    methods = ("cpo", "trpo-lag", "trpo-saute", "evo", "steingate", "allowance")
    stricter = [
        run
        for limit in (5.0, 2.0)
        for run in sizes.runs(NAVIGATION, "trpo-lag", f"limit-{limit:g}", cost_limit=limit, **EQUAL)
    ]
    return [*sizes.runs(NAVIGATION, methods, **EQUAL), *stricter]


@built_in(seeds=(0, 1), variant="corrected")
def ablation(sizes: Sizes) -> list[RunConfig]:
    """Default algorithm without one of its ingredients at a time, on the four navigation tasks, two seeds."""
    return [run for name, options in REMOVED.items() for run in sizes.runs(NAVIGATION, "allowance", name, **options)]


@built_in(total_steps=3_000_000, seeds=(0,), variant="corrected")
def unseen(sizes: Sizes) -> list[RunConfig]:
    """Default algorithm on six tasks for which no setting was chosen: three million steps, one seed."""
    circles_and_goals = [task.replace("1-v0", "2-v0") for task in NAVIGATION]
    return sizes.runs((*circles_and_goals, "SafetyHalfCheetahVelocity-v1", "SafetySwimmerVelocity-v1"), "allowance")
