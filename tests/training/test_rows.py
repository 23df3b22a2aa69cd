"""One warning about odd episodes, in the same words whatever the method."""

import numpy as np
import pytest

from steingate.algorithms import METHODS
from steingate.errors import InputError
from steingate.training.assemble import build_algorithm
from steingate.training.config import make_config
from steingate.training.logging.rows import episode_warnings

BUDGETS = [name for name in METHODS if any(word in name for word in ("saute", "simmer", "allowance"))]
NONE = np.zeros(0)


def state(epoch=0, costs=()):
    return epoch, np.array([[0.0, cost, 10.0] for cost in costs]).reshape(-1, 3)


def test_no_finished_episode_is_told_once_with_what_to_do():
    cfg = make_config({"env": "somewhere:Task", "num_envs": 4, "steps_per_epoch": 400, "total_steps": 400})
    (note,) = episode_warnings(cfg, *state(), NONE)
    assert "within 100 steps of each environment" in note
    assert "has no time limit" in note
    assert "--env-options max_episode_steps=" in note
    assert episode_warnings(cfg, *state(epoch=1), NONE) == ()
    assert episode_warnings(cfg, *state(), np.array([1.0])) == ()


def test_a_time_limit_longer_than_the_epoch_gives_the_steps_it_needs():
    cfg = make_config(
        {"env": "SafetyPointGoal1-v0", "num_envs": 4, "steps_per_epoch": 400, "total_steps": 400}
    )
    (note,) = episode_warnings(cfg, *state(), NONE)
    assert "its time limit is 1000 steps" in note
    assert "--steps-per-epoch 4000" in note
    assert "--carry-episodes" in note


def test_negative_costs_are_told_when_they_first_come():
    cfg = make_config({})
    (note,) = episode_warnings(cfg, *state(3, [1.0]), np.array([2.0, -0.5]))
    assert "cost -0.5" in note
    assert episode_warnings(cfg, *state(4, [2.0, -0.5]), np.array([-0.5])) == ()


@pytest.mark.parametrize("algo", METHODS)
def test_notes_do_not_depend_on_the_method_and_a_limit_of_0_works_or_is_refused(algo):
    cfg = make_config({"algo": algo, "env": "SafetyPointGoal1-v0", "cost_limit": 0.0})
    assert episode_warnings(cfg, *state(), NONE) == episode_warnings(make_config({}), *state(), NONE)
    if algo not in BUDGETS:
        gate = build_algorithm(cfg).gate
        assert gate.init() is not None
        return
    with pytest.raises(InputError, match=r"cost_limit of 0 leaves none.*0\.5 means the same"):
        build_algorithm(cfg)
