"""The runs of the built-in grids, against a second list of their contents."""

import pytest

from steingate.algorithms import ALGORITHMS
from steingate.experiments.grid import plan_runs
from steingate.experiments.grids import EQUAL, GRIDS
from steingate.tasks.catalog import TASKS
from steingate.training.config import make_config

NAVIGATION = {f"Safety{robot}{task}1-v0" for robot in ("Point", "Car") for task in ("Goal", "Circle")}
VELOCITY = {
    f"Safety{robot}Velocity-v1" for robot in ("Ant", "HalfCheetah", "Humanoid", "Swimmer", "Hopper", "Walker2d")
}
UNSEEN = {f"Safety{robot}{task}2-v0" for robot in ("Point", "Car") for task in ("Goal", "Circle")}
UNSEEN |= {"SafetyHalfCheetahVelocity-v1", "SafetySwimmerVelocity-v1"}
MAIN = {"cpo", "evo", "trpo-saute", "trpo-simmer", "steingate"}
EXPECTED = {
    "table1": (120, NAVIGATION, MAIN),
    "velocity": (216, VELOCITY, {*MAIN, "allowance"}),
    "baselines": (96, NAVIGATION, {"trpo-lag", "ppo-lag", "ppo-saute", "ppo-simmer"}),
    "cpo-variants": (72, NAVIGATION, {"cpo", "rcpo", "pcpo"}),
    "limits": (18, {"SafetyPointGoal1-v0"}, {"steingate"}),
    "references": (18, {"SafetyPointGoal1-v0"}, {"steingate"}),
    "samples": (18, {"SafetyCarGoal1-v0"}, {"steingate"}),
    "circle2": (12, {"SafetyPointCircle2-v0", "SafetyCarCircle2-v0"}, {"steingate"}),
    "gates": (48, {"SafetyPointGoal1-v0", "SafetyPointCircle1-v0"}, {"steingate"}),
    "learning": (2 * len(ALGORITHMS), {"SafetyPointGoal1-v0", "SafetyPointCircle1-v0"}, set(ALGORITHMS)),
    "quick": (15, {"SafetyPointCircle1-v0"}, {"cpo", "evo", "trpo-saute", "ppo-lag", "steingate"}),
    "allowance": (12, NAVIGATION, {"allowance"}),
    "equal": (96, NAVIGATION, {"cpo", "trpo-lag", "trpo-saute", "evo", "steingate", "allowance"}),
    "ablation": (64, NAVIGATION, {"allowance"}),
    "unseen": (6, UNSEEN, {"allowance"}),
}


def runs_of(name):
    return plan_runs(GRIDS[name], GRIDS[name].sizes)


def flat(run):
    """Return all options of a run, with those of its algorithm."""
    options = run.to_dict()
    return {**options.pop("algorithm"), **options}


def test_every_grid_is_described_here():
    assert set(GRIDS) == set(EXPECTED)


@pytest.mark.parametrize("name", GRIDS)
def test_numbers_tasks_and_algorithms(name):
    runs = runs_of(name)
    count, envs, algos = EXPECTED[name]
    assert len(runs) == count
    assert {run.env for run in runs} == envs <= set(TASKS)
    assert {run.algo.name for run in runs} == algos <= set(ALGORITHMS)
    assert GRIDS[name].summary
    assert len({run.path for run in runs}) == count
    assert " " not in "".join(str(run.path) for run in runs)


# vf_epochs, vf_batch_size, vf_lr and backtrack_iters as published for each algorithm
SECOND_ORDER, FIRST_ORDER = (10, 128, 1e-3), (None, 64, 3e-4, None)
PUBLISHED = {
    "cpo": (*SECOND_ORDER, 20), "pcpo": (*SECOND_ORDER, 200), "evo": (*SECOND_ORDER, 20),
    "steingate": (*SECOND_ORDER, 20), "trpo-lag": (*SECOND_ORDER, 15), "trpo-saute": (*SECOND_ORDER, 15),
    "trpo-simmer": (*SECOND_ORDER, 15), "allowance": (*SECOND_ORDER, 20), "rcpo": (*SECOND_ORDER, None),
    "ppo-lag": FIRST_ORDER, "ppo-saute": FIRST_ORDER, "ppo-simmer": FIRST_ORDER,
}  # fmt: skip


@pytest.mark.parametrize("name", ["table1", "velocity", "baselines", "cpo-variants"])
def test_each_algorithm_has_its_published_options(name):
    for run in runs_of(name):
        options, algo = flat(run), run.algo.name
        names = ("vf_epochs", "vf_batch_size", "vf_lr", "backtrack_iters")
        assert tuple(options.get(name) for name in names) == PUBLISHED[algo]
        raw = algo in ("ppo-saute", "ppo-simmer") and "Goal" in run.env
        assert options["normalize_obs"] is not raw
        if algo.endswith(("-saute", "-simmer")):
            missing = (algo, run.env) == ("ppo-simmer", "SafetyCarCircle1-v0")
            tuned = run.env in NAVIGATION and not missing
            assert options["budget_discount"] == (0.9999 if tuned else 0.999)
            assert options["unsafe_reward"] == (-0.2 if tuned else -1.0)
            if algo.startswith("ppo"):
                assert options["ppo"]["epochs"] == (80 if tuned else 40)


def test_the_ablations_change_one_thing():
    assert {run.cost_limit for run in runs_of("limits")} == {10.0, 25.0, 40.0}
    assert {run.algo.preset for run in runs_of("gates")} == {"paper", "released", "corrected", "violation"}
    references = {run.algo.certificate["reference"] for run in runs_of("references")}
    assert {"Beta(2, 5)", "Beta(1, 10)"} < references
    assert len(references) == 3
    changes = {"limits": "cost_limit", "gates": "preset", "references": "certificate", "samples": "steps_per_epoch"}
    for name, changed in changes.items():
        rest = [
            {key: value for key, value in flat(run).items() if key not in (changed, "out", "seed", "env")}
            for run in runs_of(name)
        ]
        assert all(one == rest[0] for one in rest)


def test_equal_means_the_settings_of_the_default_algorithm():
    default = flat(make_config({"algo": "allowance"}))
    for run in runs_of("equal"):
        options = flat(run)
        for name in ("lidar_powers", "lidar_positions", "gae_lambda", "init_std", "advantage_clip", "saturation_coef"):
            assert name in EQUAL
            assert options[name] == default[name]
        for name in ("hidden", "gamma", "vf_lr", "vf_epochs", "vf_batch_size", "max_kl", "steps_per_epoch", "num_envs"):
            assert options[name] == default[name], (run.algo.name, name)


def test_samples_finish_8_16_and_32_episodes_per_epoch():
    length = TASKS["SafetyCarGoal1-v0"].max_episode_steps
    found = {run.out.rpartition("-")[2]: run.num_envs * (run.horizon // length) for run in runs_of("samples")}
    assert found == {"8": 8, "16": 16, "32": 32}
