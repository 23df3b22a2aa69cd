"""Budget, reward and safety state of Saute and Simmer; tests/envs/test_safety_state.py plays whole episodes."""

import numpy as np
import pytest

from steingate.algorithms import make_algorithm
from steingate.algorithms.base import EnvParams, RunContext
from steingate.algorithms.saute import ControllerConfig, SimmerState, control_budget
from steingate.errors import InputError

CONTEXT = RunContext(cost_limit=6.0, episode_length=50)
NAMES = ["trpo-saute", "ppo-saute", "trpo-simmer", "ppo-simmer"]


@pytest.mark.parametrize("name", NAMES)
def test_the_budget_is_the_limit_discounted_over_an_episode(name):
    options = {"budget_discount": 0.9, "unsafe_reward": -3.0}
    algorithm = make_algorithm(name, options=options).resolve(50)
    state = algorithm.safety_state(CONTEXT, EnvParams())
    assert (state.start, state.discount) == (1.0, 0.9)
    assert state.scale == pytest.approx(6.0 * np.mean(0.9 ** np.arange(50)))
    assert state.next(1.0, state.scale / 2) == pytest.approx(0.5 / 0.9)
    rewards = algorithm.shape_reward(CONTEXT, EnvParams(), np.array([0.5, 0.0, -0.1]), np.full(3, 2.0), np.zeros(3))
    np.testing.assert_array_equal(rewards, [2.0, -3.0, -3.0])
    assert (state.restart, state.final_shows_restart) == (None, False)

    published = make_algorithm(name, options={**options, "variant": "published"}).resolve(50)
    quirks = published.safety_state(CONTEXT, EnvParams(cost_budget_fraction=0.5))
    full = 6.0 * np.mean(0.9 ** np.arange(1000))
    assert quirks.scale == pytest.approx(0.5 * full)  # divides by the controlled budget
    assert (quirks.start, quirks.restart, quirks.final_shows_restart) == (0.5, 1.0, True)


def test_the_length_of_the_budget_is_the_tasks_unless_given():
    def length(name="ppo-saute", **options):
        return make_algorithm(name, options=options).resolve(500).budget.budget_length

    assert length() == 500
    assert length(variant="published") == 1000
    assert length(budget_length=77) == 77


@pytest.mark.parametrize("name", NAMES)
def test_a_limit_of_zero_is_refused(name):
    with pytest.raises(InputError, match=f"{name} spends a cost budget"):
        make_algorithm(name).safety_state(CONTEXT._replace(cost_limit=0.0), EnvParams())


class TestSimmer:
    def test_one_step_of_the_controller_by_hand(self):
        gains = ControllerConfig(kp=0.1, ki=0.02, kd=0.5, smoothing=0.75, memory=2)
        state = SimmerState(np.zeros(0), 5.0, np.array([0.4, 0.8]), action=0.3, applied=0.1)
        error = 0.75 * 0.8 + 0.25 * (5.0 - 7.0)
        action = 0.1 * error + 0.02 * (0.8 + error) + 0.5 * (0.1 - 0.3)
        moved = control_budget(state, 7.0, 6.0, gains)
        assert moved.budget == pytest.approx(5.0 + action)
        assert (moved.action, moved.applied) == (pytest.approx(action), pytest.approx(action))
        np.testing.assert_allclose(moved.errors, [0.8, error])
