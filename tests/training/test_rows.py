"""Data warnings, each once per run."""

import numpy as np
import pytest

from steingate.training.config import make_config
from steingate.training.logging.rows import default_limit_note, episode_warnings

NONE = np.zeros(0)
SIZES = {"num_envs": 4, "steps_per_epoch": 400, "total_steps": 400}


def test_the_default_limit_of_an_own_environment_is_noted():
    (note,) = default_limit_note(make_config({"env": "somewhere:Task", **SIZES}))
    assert (
        note
        == "An episode of somewhere:Task may cost at most 25, the default; --cost-limit sets what your task allows."
    )
    assert default_limit_note(make_config({"env": "somewhere:Task", "cost_limit": 5, **SIZES})) == ()
    assert default_limit_note(make_config({"env": "SafetyPointGoal1-v0", **SIZES})) == ()


def window(*costs):
    return np.array([[0.0, cost, 10.0] for cost in costs]).reshape(-1, 3)


@pytest.mark.parametrize(
    ("env", "parts"),
    [
        (
            "somewhere:Task",
            ("within 100 steps of each environment", "has no time limit", "--env-options max_episode_steps="),
        ),
        ("SafetyPointGoal1-v0", ("its time limit is 1000 steps", "--steps-per-epoch 4000", "--carry-episodes")),
    ],
)
def test_epochs_without_a_finished_episode_are_reported_once_with_what_to_do(env, parts):
    cfg = make_config({"env": env, **SIZES})
    (warning,) = episode_warnings(cfg, 0, window(), NONE)
    assert all(part in warning for part in parts)
    assert episode_warnings(cfg, 1, window(), NONE) == ()
    assert episode_warnings(cfg, 0, window(), np.array([1.0])) == ()


def test_the_first_negative_cost_is_reported():
    cfg = make_config({})
    (warning,) = episode_warnings(cfg, 3, window(1.0), np.array([2.0, -0.5]))
    assert "cost -0.5" in warning
    assert episode_warnings(cfg, 4, window(2.0, -0.5), np.array([-0.5])) == ()
