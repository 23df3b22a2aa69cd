"""The allowance: shaped reward, blocks, exploration, messages, and whole runs where the answer is known."""

from math import inf

import numpy as np
import pytest
from tests.training.runs_of_probes import tiny

from steingate.algorithms.allowance import (
    Allowance,
    BudgetSchedule,
    ExplorationSchedule,
    PenaltyConfig,
    limit_update,
)
from steingate.algorithms.base import EnvParams, Episodes, Mode, Objective, RunContext
from steingate.algorithms.config import NetworkConfig
from steingate.policies.load import load_policy
from steingate.runs import newest_checkpoint
from steingate.storage.tables import read_progress
from steingate.training.runner import train

CONTEXT = RunContext(cost_limit=25.0)
EMPTY = Episodes(np.zeros(0), np.zeros(0), np.zeros(0, np.int64))
FINAL = {"networks": NetworkConfig(init_std=0.4)}  # exploration has its final value from the beginning


def block(over=0, returns=(9.0, 11.0), n=100, safe_cost=3.0):
    costs = np.full(n, safe_cost)
    costs[:over] = 26.0
    return Episodes(costs, np.resize(returns, n).astype(np.float64), np.full(n, 1000))


def played(algorithm, blocks):
    """States and outputs after each block."""
    state, found = algorithm.init(CONTEXT, {}), []
    for episodes in blocks:
        state, output = algorithm.decide(CONTEXT, state, episodes)
        assert output.objective == Objective(Mode.IMPROVE, inf, 0.0)
        assert output.metrics["Gate/BudgetFraction"] == state.schedule.fraction
        found.append((state, output))
    return found


def fractions(algorithm, blocks):
    return [state.schedule.fraction for state, _ in played(algorithm, blocks)]


def shaped(config, z, reward, cost, fraction, return_scale=0.0, limit=25.0):
    algorithm, context = Allowance(penalty=PenaltyConfig(**config)), RunContext(cost_limit=limit)
    arrays = [np.asarray(each, np.float64) for each in (z, reward, cost)]
    return algorithm.shape_reward(context, EnvParams(fraction, return_scale), *arrays)


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_cost_is_penalized_lightly_within_the_budget_and_heavily_beyond_it(weight):
    config = {
        "penalty": 0.2, "min_penalty_fraction": 0.5, "inner_penalty_ratio": 0.5, "over_budget_reward_weight": weight
    }  # fmt: skip
    found = shaped(config, [-0.4, -0.6], [3.0, 3.0], [2.0, 2.0], 0.5, 3.9, limit=10.0)
    np.testing.assert_allclose(found, [3.0 - 0.5 * 1.6, weight * 3.0 - 1.6])
    # A limit of cost takes at least half of a return of 40, divided by 0.5^2: 80, or 8 for each unit.
    found = shaped(config, [-0.4, -0.6], [3.0, 3.0], [2.0, 2.0], 0.5, 40.0, limit=10.0)
    np.testing.assert_allclose(found, [3.0 - 0.5 * 16.0, weight * 3.0 - 16.0])


def test_the_penalty_of_an_episode_is_convex_in_its_cost():
    algorithm, context = Allowance(), RunContext(cost_limit=10.0)
    state = algorithm.safety_state(context, EnvParams(0.45))
    total = []
    for cost in range(12):
        z, penalty = state.start, 0.0
        for _ in range(cost):
            z = state.next(z, 1.0)
            penalty += 2.0 - float(algorithm.shape_reward(context, EnvParams(0.45), *np.array([[z], [2.0], [1.0]]))[0])
        total.append(penalty)
    q = 0.1 / 0.45**2
    np.testing.assert_allclose(total, [q * (0.25 * min(n, 4) + max(n - 4, 0)) for n in range(12)])


def test_a_thousandfold_reward_is_shaped_in_proportion():
    z, reward, cost = [-0.4, -0.9], np.array([3.0, -1.0]), [2.0, 1.0]
    large = shaped({}, z, 1e3 * reward, cost, 0.5, 2e5, limit=10.0)
    np.testing.assert_allclose(large, 1e3 * shaped({}, z, reward, cost, 0.5, 200.0, limit=10.0))


@pytest.mark.parametrize("fraction", [0.2, 0.9])
def test_the_observed_cost_does_not_depend_on_the_budget(fraction):
    state = Allowance().safety_state(CONTEXT, EnvParams(fraction))
    assert state.start == 0.0
    assert state.next(0.0, 1.0) == pytest.approx(-0.04)
    assert state.next(-1.2, 100.0) == -1.5


def test_the_budget_shrinks_with_violations_and_grows_without():
    algorithm = Allowance(risk=0.05, episodes_per_update=100, **FINAL)
    assert fractions(algorithm, [block(30)] * 3) == pytest.approx([0.6, 0.51, 0.4335])  # the first return is growth
    assert fractions(algorithm, [block(0)] * 3) == pytest.approx([0.69, 0.7935, 0.7935 * 1.15])


def test_blocks_are_full_before_anything_changes_and_empty_epochs_change_nothing():
    algorithm = Allowance(risk=0.05, episodes_per_update=100, **FINAL)
    parts = [Episodes(*(None if each is None else each[k::10] for each in block(30))) for k in range(10)]
    state, seen = algorithm.init(CONTEXT, {}), []
    for epoch in range(30):
        state, output = algorithm.decide(CONTEXT, state, parts[epoch % 10])
        again, nothing = algorithm.decide(CONTEXT, state, EMPTY)
        assert (nothing.metrics["Gate/Fallback"], output.metrics["Gate/Fallback"]) == (1.0, 0.0)
        assert again.schedule == state.schedule
        assert np.isfinite(output.metrics["Gate/ShrinkEvidence"]) == (epoch % 10 == 9)
        seen.append(state.schedule.fraction)
    assert seen == pytest.approx([0.6] * 19 + [0.51] * 10 + [0.4335])


def test_the_budget_is_held_while_the_return_grows_at_a_tolerable_cost():
    algorithm = Allowance(risk=0.05, episodes_per_update=100, **FINAL)
    growing = [block(30, level + np.array([-1.0, 1.0])) for level in (0.0, 1.0, 2.0)]
    assert fractions(algorithm, growing) == [0.6] * 3
    error = np.sqrt(2.0 / 100)
    assert fractions(algorithm, [*growing, block(30, 2.0 + 0.9 * error + np.array([-1, 1]))])[-1] == pytest.approx(0.51)
    assert fractions(algorithm, [*growing, block(30, 2.0 + 1.1 * error + np.array([-1, 1]))])[-1] == 0.6
    costly = [episodes._replace(cost=episodes.cost + 5.0) for episodes in growing]  # mean 14.9 of 25
    assert fractions(algorithm, costly) == pytest.approx([0.51, 0.4335, 0.6 * 0.85**3])


def test_noisy_policies_may_violate_more_before_the_budget_shrinks():
    blocks = [block(10)] * 2
    assert fractions(Allowance(risk=0.05, episodes_per_update=100), blocks) == [0.6, 0.6]
    assert fractions(Allowance(risk=0.05, episodes_per_update=100, **FINAL), blocks * 4)[-1] < 0.6


def test_exploration_and_step_size_decay_with_every_block_without_growth():
    exploration = ExplorationSchedule(std_decay=0.5, min_std=0.2)
    algorithm = Allowance(episodes_per_update=100, exploration=exploration)
    blocks = [block(0, level + np.array([-0.1, 0.1])) for level in (0.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0)]
    found = played(algorithm, blocks)
    std = [2.0, 2.0, 1.0, 1.0, 0.5, 0.25, 0.2]
    assert [output.metrics["Gate/MaxStd"] for _, output in found] == std
    np.testing.assert_allclose([out.metrics["Gate/StepFraction"] for _, out in found], np.sqrt(np.array(std) / 2.0))


def test_updates_are_limited_to_a_fraction_of_the_step_and_a_largest_std():
    old = {"w": (np.zeros(2, np.float32),), "log_std": np.zeros(2, np.float32)}
    new = {"w": (np.array([1.0, -2.0], np.float32),), "log_std": np.array([1.0, -1.0], np.float32)}
    limited = limit_update(old, new, 0.25, 1.1)
    np.testing.assert_allclose(limited["w"][0], [0.25, -0.5])
    np.testing.assert_allclose(limited["log_std"], [np.log(1.1), -0.25], rtol=1e-6)


def test_the_return_scale_is_a_running_mean_of_absolute_returns():
    blocks = (EMPTY, block(0, (-6.0, 2.0)), EMPTY, block(0, (14.0,)), EMPTY)
    scales = [output.metrics["Gate/ReturnScale"] for _, output in played(Allowance(), blocks)]
    assert scales == pytest.approx([0.0, 4.0, 4.0, 5.0, 5.0])


def test_messages_explain_the_budget_and_report_alarms_at_its_minimum():
    algorithm = Allowance(risk=0.05, episodes_per_update=100, schedule=BudgetSchedule(init_fraction=0.1), **FINAL)
    start = " ".join(algorithm.initial_messages(CONTEXT))
    assert "10 % of the limit" in start
    assert "fewer" not in start
    assert "more than 3.35 % of the episodes" in start
    assert "less than 5 % do; for each value of the budget, it grows wrongly with probability at most 5 %" in start
    found = played(algorithm, [block(30)] * 12)
    assert [len(output.messages) for _, output in found] == [0, 1, *[0] * 9, 1]
    assert "(alarm 11, 360 of 1200 episodes)" in found[-1][1].messages[0]
    assert found[-1][1].metrics["Gate/AlarmsAtMin"] == 11


def test_the_budget_reaches_environments_checkpoint_and_policy(tmp_path):
    options = {
        "episodes_per_update": 4, "exploration.std_decay": 0.3, "exploration.min_std": 0.2, "init_std": 1.0,
        "cost_limit": 0.5, "certify.enabled": False,
    }  # fmt: skip
    path = train(tiny(tmp_path, algo="allowance", **options), quiet=True)
    progress = read_progress(path)
    column = progress["Gate/BudgetFraction"]
    assert column[-1] < column[0] <= 0.6  # the walk is over this limit more often than not
    state = newest_checkpoint(path).tree["algorithm"]
    assert state[0][0] == column[-1]
    policy = load_policy(path, "last")
    assert np.exp(policy.array("log_std")).max() == pytest.approx(progress["Gate/MaxStd"][-1], rel=1e-5)
    assert progress["Gate/MaxStd"][-1] < 0.5
