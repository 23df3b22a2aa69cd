"""The paper's numbers stand beside runs that have the paper's settings, and beside no others."""

import json

import pytest
from steingate.report.published import in_table, published

from steingate.training.config import make_config

TASKS = ("SafetyPointGoal1-v0", "SafetyPointCircle1-v0", "SafetyCarGoal1-v0", "SafetyCarCircle1-v0")
ALGOS = ("cpo", "evo", "trpo-saute", "trpo-simmer", "steingate")
OLDER = {
    "env": "SafetyPointGoal1-v0", "algo": "steingate", "total_steps": 400_000, "steps_per_epoch": 20_000,
    "num_envs": 8, "seed": 5, "cost_limit": 25.0, "variant": "published", "preset": "released",
    "certificate": {}, "algo_options": {}, "max_kl": 0.01, "cg_iters": 15, "damping": 0.1, "search_steps": 20,
    "shrink": 0.8, "discount": 0.99, "cost_discount": 0.99, "lam": 0.95, "cost_lam": 0.95, "critic_lr": 0.001,
    "critic_passes": 10, "critic_batch": 128, "critic_decay": 0.001, "critic_grad_norm": 40.0,
    "hidden": [64, 64], "normalize_obs": True, "window": 100, "carry_episodes": False, "env_options": {},
    "overlap": False, "threads": 1, "checkpoint_every": 3, "wandb": "project", "out": "elsewhere",
}  # fmt: skip
OF_RUN = (
    "env", "algo", "total_steps", "steps_per_epoch", "num_envs", "seed", "cost_limit", "window",
    "carry_episodes", "env_options", "overlap", "threads", "checkpoint_every", "wandb", "out",
)  # fmt: skip
TODAY = {name: OLDER[name] for name in OF_RUN} | {
    "recipe": {name: value for name, value in OLDER.items() if name not in (*OF_RUN, "algo_options")}
    | {"recovery": "mean", "cost_adv_lam": None}
}
BUDGET = {"length": 1000, "discount": 0.9999, "unsafe_reward": -0.2}
SAUTE = OLDER | {"algo": "trpo-saute", "search_steps": 15, "algo_options": BUDGET}


def test_numbers_of_the_table():
    assert published(OLDER) == published(TODAY) == (0.987, 9.77)
    assert published(SAUTE) == (0.563, 14.26)
    assert published(SAUTE | {"algo": "trpo-simmer", "env": "steingate/SafetyPointCircle1-v0"}) == (
        0.915,
        40.80,
    )
    assert published(OLDER | {"algo": "evo", "env": "SafetyCarGoal1-v0"}) == (0.997, 3.23)
    assert published(OLDER | {"algo": "ppo"}) is None
    assert published(OLDER | {"env": "SafetyAntVelocity-v1"}) is None
    assert in_table("steingate/SafetyCarCircle1-v0", "cpo")
    assert not in_table("SafetyCarCircle1-v0", "ppo-lag")


def test_all_feasibilities_of_the_paper_are_counts_of_600_epochs():
    for env in TASKS:
        for algo in ALGOS:
            kind = SAUTE if algo.startswith("trpo-") else OLDER
            value = published(kind | {"env": env, "algo": algo}).feasibility
            assert any(round(k / 600, 3) == value for k in range(601))


CHANGES = {
    "variant": "corrected", "preset": "certified", "certificate": {"budget": 0.2}, "cost_limit": 10.0,
    "max_kl": 0.02, "hidden": [8, 8], "normalize_obs": False, "window": 10, "num_envs": 4,
    "steps_per_epoch": 8000, "carry_episodes": True, "env_options": {"max_episode_steps": 500},
    "search_steps": 15, "critic_lr": 3e-4, "discount": 0.9, "cost_lam": 0.5,
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_one_other_setting_takes_the_numbers_away(name):
    assert published(OLDER | {name: CHANGES[name]}) is None
    if name in OF_RUN:
        assert published(TODAY | {name: CHANGES[name]}) is None
    else:
        assert published(TODAY | {"recipe": TODAY["recipe"] | {name: CHANGES[name]}}) is None


@pytest.mark.parametrize("options", [{"recovery": "tail"}, {"of the future": 1}, {"clipped.passes": 40}])
def test_options_of_the_method_take_them_away_too(options):
    assert published(OLDER | {"algo_options": options}) is None
    assert published(TODAY | {"recipe": TODAY["recipe"] | options}) is None
    assert published(SAUTE | {"algo_options": BUDGET | {"discount": 0.99}}) is None


def test_what_changes_nothing_leaves_them():
    assert (
        published(OLDER | {"total_steps": 10_000_000, "seed": 0, "certificate": {"budget": 0.1}}) is not None
    )
    # The certificate is no part of other methods, though older folders name it for all of them.
    assert (
        published(OLDER | {"algo": "cpo", "preset": "confident", "certificate": {"budget": 0.5}}) is not None
    )
    assert published({name: value for name, value in OLDER.items() if name != "variant"}) is None


@pytest.mark.parametrize("algo", ALGOS)
def test_the_recipes_of_this_package_are_the_papers(algo):
    """A setting that a recipe gains must be entered in the table, with the paper's value."""
    for env in TASKS:
        config = make_config({"env": env, "algo": algo, "variant": "published"})
        run = json.loads(json.dumps(config.to_dict()))
        plain = run["recipe"]
        assert published(run)
        for name, value in plain.items():
            other = {**value, next(iter(value), "budget"): 0.77} if isinstance(value, dict) else "another"
            assert published(run | {"recipe": plain | {name: other}}) is None, name
