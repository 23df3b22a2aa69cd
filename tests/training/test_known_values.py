"""Whole runs on tasks with known values."""

import numpy as np
import pytest
from tests.training.runs_of_probes import tiny

from steingate.storage.tables import read_progress
from steingate.training.runner import train

SIZES = {"steps_per_epoch": 800, "num_envs": 4, "hidden": (16, 16), "vf_epochs": 4, "cg_iters": 10}
DISCOUNT = {"gamma": 0.8, "cost_gamma": 0.8, "vf_weight_decay": 0.0, "vf_lr": 5e-3}


@pytest.mark.parametrize(
    ("terminates", "expected"),
    [
        (False, 1.0 / 0.2),  # time limits are bootstrapped: r / (1 - g)
        (True, np.mean([(1.0 - 0.8 ** (10 - t)) / 0.2 for t in range(10)])),  # over after ten steps
    ],
)
def test_critics_learn_the_discounted_sum_of_a_constant_reward(tmp_path, terminates, expected):
    constant = {"env": "tests.training.probes:Constant", "env_options": {"over": terminates}}
    path = train(tiny(tmp_path, **constant, total_steps=800 * 30, **SIZES, **DISCOUNT), quiet=True)
    progress = read_progress(path)
    assert abs(progress["Value/Reward"][-1] - expected) < 0.1
    assert abs(progress["Value/Cost"][-1] - 0.5 * expected) < 0.1
    assert progress["Value/RewardError"][-1] < 0.2
