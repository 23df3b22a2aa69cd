"""The contents of the published grids, written out once more by hand."""

from dataclasses import replace
from math import inf

import pytest
from scipy.special import digamma, polygamma

from steingate.algorithms import METHODS
from steingate.algorithms.common.recipe import NaturalGradient
from steingate.experiments.grid import plan_runs
from steingate.experiments.grids import GRIDS, REFERENCES
from steingate.tasks.catalog import TASKS
from steingate.training.config import make_config

NAVIGATION = {f"Safety{robot}{task}1-v0" for robot in ("Point", "Car") for task in ("Goal", "Circle")}
VELOCITY = {f"Safety{robot}Velocity-v1" for robot in ("Ant", "HalfCheetah", "Humanoid", "Swimmer")}
UNSEEN = {f"Safety{robot}{task}2-v0" for robot in ("Point", "Car") for task in ("Goal", "Circle")}
UNSEEN |= {"SafetyHalfCheetahVelocity-v1", "SafetySwimmerVelocity-v1"}
MAIN = {"cpo", "evo", "trpo-saute", "trpo-simmer", "steingate"}
SMALL = ("learning", "quick", "allowance", "unseen")
EXPECTED = {
    "table1": (120, NAVIGATION, MAIN),
    "velocity": (120, VELOCITY, MAIN),
    "baselines": (96, NAVIGATION, {"trpo-lag", "ppo-lag", "ppo-saute", "ppo-simmer"}),
    "cpo-variants": (72, NAVIGATION, {"cpo", "rcpo", "pcpo"}),
    "limits": (18, {"SafetyPointGoal1-v0"}, {"steingate"}),
    "references": (18, {"SafetyPointGoal1-v0"}, {"steingate"}),
    "samples": (18, {"SafetyCarGoal1-v0"}, {"steingate"}),
    "circle2": (12, {"SafetyPointCircle2-v0", "SafetyCarCircle2-v0"}, {"steingate"}),
    "gates": (48, {"SafetyPointGoal1-v0", "SafetyPointCircle1-v0"}, {"steingate"}),
    "learning": (2 * len(METHODS), {"SafetyPointGoal1-v0", "SafetyPointCircle1-v0"}, set(METHODS)),
    "quick": (15, {"SafetyPointCircle1-v0"}, {"cpo", "evo", "trpo-saute", "ppo-lag", "steingate"}),
    "allowance": (12, NAVIGATION, {"allowance"}),
    "unseen": (6, UNSEEN, {"allowance"}),
}


def runs_of(name):
    return plan_runs(GRIDS[name], GRIDS[name].sizes)


def flat(run):
    """All settings, the recipe's among them."""
    settings = run.to_dict()
    return {**settings.pop("recipe"), **settings}


def test_every_grid_is_described_here():
    assert set(GRIDS) == set(EXPECTED)


@pytest.mark.parametrize("name", GRIDS)
def test_numbers_tasks_and_algorithms(name):
    runs = runs_of(name)
    count, envs, algos = EXPECTED[name]
    assert len(runs) == count
    assert {run.env for run in runs} == envs <= set(TASKS)
    assert {run.algo.name for run in runs} == algos <= set(METHODS)
    assert GRIDS[name].summary
    assert len({run.path for run in runs}) == count
    assert " " not in "".join(str(run.path) for run in runs)


@pytest.mark.parametrize("name", [name for name in GRIDS if name not in SMALL])
def test_the_papers_sizes_and_settings(name):
    runs = runs_of(name)
    assert {run.seed for run in runs} == set(range(6))
    assert {(run.total_steps, run.num_envs, run.algo.variant) for run in runs} == {
        (10_000_000, 8, "published")
    }
    shared = {
        (*run.algo.returns, run.algo.critic_decay, run.algo.critic_grad_norm, run.algo.hidden, run.window,
         run.carry_episodes)
        for run in runs
    }  # fmt: skip
    assert shared == {(0.99, 0.99, 0.95, 0.95, 0.95, inf, 0.001, 40.0, (64, 64), 100, False)}
    regions = {run.algo.region() for run in runs if isinstance(run.algo, NaturalGradient)}
    sizes = {(region.max_kl, region.cg_iters, region.damping, region.shrink) for region in regions}
    assert sizes <= {(0.01, 15, 0.1, 0.8)}
    if name not in ("limits",):
        assert {run.cost_limit for run in runs} == {25.0}
    if name not in ("samples",):
        assert {run.steps_per_epoch for run in runs} == {20_000}
        assert {run.epochs for run in runs} == {500}


# Critic passes, batch, learning rate and line-search trials as published per algorithm.
SECOND, FIRST = (10, 128, 1e-3), (None, 64, 3e-4)
PUBLISHED = {
    "cpo": (*SECOND, 20), "pcpo": (*SECOND, 200), "evo": (*SECOND, 20), "steingate": (*SECOND, 20),
    "trpo-lag": (*SECOND, 15), "trpo-saute": (*SECOND, 15), "trpo-simmer": (*SECOND, 15),
    "ppo-lag": FIRST, "ppo-saute": FIRST, "ppo-simmer": FIRST, "rcpo": SECOND,
}  # fmt: skip


@pytest.mark.parametrize("name", ["table1", "velocity", "baselines", "cpo-variants"])
def test_each_algorithm_has_its_published_settings(name):
    for run in runs_of(name):
        own, algo = run.recipe, run.algo.name
        found = own.critic_passes, own.critic_batch, own.critic_lr, getattr(own, "search_steps", None)
        expected = PUBLISHED[algo]
        assert found[: len(expected)] == expected
        raw = algo in ("ppo-saute", "ppo-simmer") and "Goal" in run.env
        assert own.normalize_obs is not raw
        if algo.endswith(("-saute", "-simmer")):
            missing = (algo, run.env) == ("ppo-simmer", "SafetyCarCircle1-v0")
            tuned = run.env in NAVIGATION and not missing
            assert own.budget_discount == (0.9999 if tuned else 0.999)
            assert own.unsafe_reward == (-0.2 if tuned else -1.0)
            if algo.startswith("ppo"):
                assert own.clipped.passes == (80 if tuned else 40)
            assert own.length == 1000


def test_the_ablations_change_one_thing():
    assert {run.cost_limit for run in runs_of("limits")} == {10.0, 25.0, 40.0}
    assert {run.algo.preset for run in runs_of("gates")} == {"paper", "released", "certified", "confident"}
    references = {run.algo.certificate["reference"] for run in runs_of("references")}
    assert {"Beta(2, 5)", "Beta(1, 10)"} < references
    assert len(references) == 3
    for name, field in (("limits", "cost_limit"), ("gates", "preset"), ("references", "certificate"),
                        ("samples", "steps_per_epoch")):  # fmt: skip
        rest = [
            {key: value for key, value in flat(run).items() if key not in (field, "out", "seed", "env")}
            for run in runs_of(name)
        ]
        assert all(one == rest[0] for one in rest)


def test_the_references_make_certificates():
    for run in runs_of("references"):
        assert run.algo.certificate_for(run.cost_limit).reference_risk > 0.0


def test_the_logit_normal_is_the_one_nearest_to_beta_2_5():
    mean, spread = digamma(2) - digamma(5), (polygamma(1, 2) + polygamma(1, 5)) ** 0.5
    assert REFERENCES["logit-normal"] == f"LogitNormal({mean:.4f}, {spread:.4f})"


def test_samples_finish_8_16_and_32_episodes_per_epoch():
    length = TASKS["SafetyCarGoal1-v0"].max_episode_steps
    found = {run.out.rpartition("-")[2]: run.num_envs * (run.horizon // length) for run in runs_of("samples")}
    assert found == {"8": 8, "16": 16, "32": 32}


def test_quick_is_short():
    runs = runs_of("quick")
    assert sum(run.total_steps for run in runs) <= 10_000_000


def test_learning_is_what_users_get_by_default():
    for run in runs_of("learning"):
        assert (run.total_steps, run.seed) == (1_000_000, 0)
        usual = {"env": run.env, "algo": run.algo.name, "total_steps": 1_000_000}
        assert replace(run, out="runs") == make_config(usual)
