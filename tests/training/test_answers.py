"""Whole runs on tasks whose answer is known."""

import numpy as np
from tests.training.runs_of_probes import tiny

from steingate.policies.load import load_policy
from steingate.runs import read_episodes, read_progress
from steingate.storage.checkpoint import checkpoint_files
from steingate.training.runner import train

SIZES = {"steps_per_epoch": 800, "num_envs": 4, "hidden": (16, 16), "critic_passes": 4, "cg_iters": 10}


def test_the_policy_learns_to_name_what_it_sees(tmp_path):
    path = train(
        tiny(tmp_path, env="tests.training.probes:Match", total_steps=800 * 40, max_kl=0.03, **SIZES),
        quiet=True,
    )
    policy = load_policy(path, "last")
    shown = np.linspace(-0.6, 0.6, 13)
    assert np.abs(policy(shown[:, None])[:, 0] - shown).max() < 0.15
    progress = read_progress(path)
    assert set(progress["Gate/Mode"]) == {0}
    assert progress["Train/EpRet"][-1] > 0.2 * progress["Train/EpRet"][0]


def test_the_gate_brings_costs_under_the_limit(tmp_path):
    # Half of all answers cost 1 at first, ten answers an episode; the limit is 2.
    path = train(
        tiny(
            tmp_path,
            env="tests.training.probes:Match",
            env_options={"free": 0.0},
            total_steps=800 * 40,
            cost_limit=2.0,
            max_kl=0.03,
            **SIZES,
        ),
        quiet=True,
    )
    cost = read_episodes(path)["cost"]
    progress = read_progress(path)
    assert cost[:80].mean() > 4.0
    assert cost[-400:].mean() < 2.0
    assert progress["Gate/Mode"][0] == 2
    assert 0 in progress["Gate/Mode"]


def test_critics_learn_the_discounted_sum(tmp_path):
    """One reward r on every step, time limits bootstrapped, discount g: the value is r / (1 - g)."""
    path = train(
        tiny(
            tmp_path,
            env="tests.training.probes:Constant",
            total_steps=800 * 30,
            discount=0.8,
            cost_discount=0.8,
            critic_decay=0.0,
            critic_lr=5e-3,
            **SIZES,
        ),
        quiet=True,
    )
    progress = read_progress(path)
    assert abs(progress["Critic/RewardValue"][-1] - 1.0 / 0.2) < 0.1
    assert abs(progress["Critic/CostValue"][-1] - 0.5 / 0.2) < 0.05
    assert progress["Critic/RewardError"][-1] < 0.2
    assert checkpoint_files(path / "checkpoints")[-1][0] == 30


def test_critics_learn_that_an_end_is_an_end(tmp_path):
    """The same, really over after ten steps: at step t the value is r (1 - g^(10 - t)) / (1 - g)."""
    path = train(
        tiny(
            tmp_path,
            env="tests.training.probes:Constant",
            env_options={"over": True},
            total_steps=800 * 30,
            discount=0.8,
            cost_discount=0.8,
            critic_decay=0.0,
            critic_lr=5e-3,
            **SIZES,
        ),
        quiet=True,
    )
    expected = np.mean([(1.0 - 0.8 ** (10 - t)) / 0.2 for t in range(10)])
    assert abs(read_progress(path)["Critic/RewardValue"][-1] - expected) < 0.1
