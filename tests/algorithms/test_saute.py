"""Saute and Simmer: budget, reward, safety state, and the controller by hand and by the equations of the paper.

tests/envs/test_safety_state.py plays whole episodes.
"""

import numpy as np
import pytest

from steingate.algorithms import make_algorithm
from steingate.algorithms.base import EnvParams, Episodes, Objective, RunContext
from steingate.algorithms.saute import ControllerConfig, SimmerState, TRPOSimmer, control_budget
from steingate.errors import InputError

CONTEXT = RunContext(cost_limit=6.0, episode_length=50)
NAMES = ["trpo-saute", "ppo-saute", "trpo-simmer", "ppo-simmer"]


@pytest.mark.parametrize("name", NAMES)
def test_the_budget_is_the_limit_discounted_over_an_episode(name):
    options = {"budget_discount": 0.9, "unsafe_reward": -3.0}
    algorithm = make_algorithm(name, options=options)
    state = algorithm.safety_state(CONTEXT, EnvParams())
    assert (state.start, state.discount) == (1.0, 0.9)
    assert state.scale == pytest.approx(6.0 * np.mean(0.9 ** np.arange(50)))
    assert state.next(1.0, state.scale / 2) == pytest.approx(0.5 / 0.9)
    rewards = algorithm.shape_reward(CONTEXT, EnvParams(), np.array([0.5, 0.0, -0.1]), np.full(3, 2.0), np.zeros(3))
    np.testing.assert_array_equal(rewards, [2.0, -3.0, -3.0])
    assert (state.restart, state.final_shows_restart) == (None, False)

    published = make_algorithm(name, options={**options, "variant": "published"})
    quirks = published.safety_state(CONTEXT, EnvParams(cost_budget_fraction=0.5))
    full = 6.0 * np.mean(0.9 ** np.arange(1000))
    assert quirks.scale == pytest.approx(0.5 * full)  # divides by the controlled budget
    assert (quirks.start, quirks.restart, quirks.final_shows_restart) == (0.5, 1.0, True)


@pytest.mark.parametrize("name", NAMES)
def test_a_limit_of_zero_is_refused(name):
    with pytest.raises(InputError, match=f"{name} spends a cost budget"):
        make_algorithm(name).safety_state(CONTEXT._replace(cost_limit=0.0), EnvParams())


SIMMER = RunContext(cost_limit=25.0, window=1, episode_length=1000)


def simmer(discount=0.9999, **gains):
    return TRPOSimmer(budget_discount=discount, controller=ControllerConfig(**gains))


def budgets(algorithm, *costs, context=SIMMER):
    """``Gate/CostBudget`` after epochs with one episode each; None: no episode."""
    state, found = algorithm.init(context, {}), []
    for cost in costs:
        values = np.array([] if cost is None else [cost], np.float64)
        state, output = algorithm.decide(context, state, Episodes(values, values, np.full(len(values), 1000)))
        assert output.objective == Objective()
        assert output.metrics["Gate/CostBudget"] == pytest.approx(
            25.0 * algorithm.env_params(context, state).cost_budget_fraction
        )
        found.append(output.metrics["Gate/CostBudget"])
    return found


@pytest.mark.parametrize(("cost", "after_100", "after_500"), [(40, 24.808, 22.003), (60, 24.553, 18.007)])
def test_the_budget_falls_while_the_cost_is_above_it(cost, after_100, after_500):
    found = budgets(simmer(), *[cost] * 500)
    assert found[99] == pytest.approx(after_100, abs=1e-3)
    assert found[499] == pytest.approx(after_500, abs=1e-3)


def test_the_budget_never_exceeds_its_start():
    assert budgets(simmer(), *[25.0] * 50) == pytest.approx([25.0] * 50)
    assert max(budgets(simmer(), *[0.0] * 50)) <= 25.0 + 1e-12


def test_changes_are_clipped():
    found = budgets(simmer(1.0, kp=100.0, ki=0.0, kd=0.5, smoothing=0.0), *[60.0] * 30)
    assert found[:3] == pytest.approx([24.0, 23.0, 22.0])
    assert found[-1] == pytest.approx(1e-6)


def test_an_epoch_without_episodes_uses_the_last_mean():
    context = SIMMER._replace(window=100)
    assert budgets(simmer(), None, context=context) == pytest.approx([25.0])
    first, second = budgets(simmer(), 60.0, None, context=context)
    assert second < first


def test_one_step_of_the_controller_by_hand():
    gains = ControllerConfig(kp=0.1, ki=0.02, kd=0.5, smoothing=0.75, memory=2)
    state = SimmerState(np.zeros(0), 5.0, np.array([0.4, 0.8]), action=0.3, applied=0.1)
    error = 0.75 * 0.8 + 0.25 * (5.0 - 7.0)
    action = 0.1 * error + 0.02 * (0.8 + error) + 0.5 * (0.1 - 0.3)
    moved = control_budget(state, 7.0, 6.0, gains)
    assert moved.budget == pytest.approx(5.0 + action)
    assert (moved.action, moved.applied) == (pytest.approx(action), pytest.approx(action))
    np.testing.assert_allclose(moved.errors, [0.8, error])
