from math import inf

import numpy as np
import pytest
from steingate.gates.base import Episodes, Mode
from steingate.gates.schedule import Controller, budget_gate, discounted_share


def episodes(*costs):
    costs = np.asarray(costs, np.float64)
    return Episodes(costs, np.zeros_like(costs), np.full(len(costs), 1000, np.int64))


def budgets(gate, cost, epochs):
    state, found = gate.init(), []
    for _ in range(epochs):
        decision, state, log, *_ = gate.decide(state, episodes(cost))
        assert (decision.mode, decision.slack, decision.price) == (Mode.IMPROVE, inf, 0.0)
        assert log["gate/cost_budget"] == pytest.approx(25.0 * decision.budget)
        found.append(log["gate/cost_budget"])
    return found


def test_the_discounted_budget_has_the_written_values():
    assert 25 * discounted_share(0.999, 1000) == pytest.approx(15.80761, abs=1e-5)
    assert 25 * discounted_share(0.9999, 1000) == pytest.approx(23.79178, abs=1e-5)
    assert 25 * discounted_share(0.9999, 500) == pytest.approx(24.38648, abs=1e-5)
    assert discounted_share(0.9, 4) == pytest.approx((1 + 0.9 + 0.81 + 0.729) / 4)
    assert discounted_share(1.0, 7) == 1.0


@pytest.mark.parametrize(("cost", "after_100", "after_500"), [(40, 24.808, 22.003), (60, 24.553, 18.007)])
def test_the_budget_falls_as_written_while_the_cost_is_above_it(cost, after_100, after_500):
    found = budgets(budget_gate(25.0, 0.9999, 1000, window=1), cost, 500)
    assert found[99] == pytest.approx(after_100, abs=1e-3)
    assert found[499] == pytest.approx(after_500, abs=1e-3)


def test_the_budget_never_rises_above_its_start():
    assert budgets(budget_gate(25.0, 0.9999, 1000), 25.0, 50) == pytest.approx([25.0] * 50)
    assert max(budgets(budget_gate(25.0, 0.9999, 1000), 0.0, 50)) <= 25.0 + 1e-12


def test_strong_gains_are_limited_and_answered():
    gains = Controller(proportional=100.0, integral=0.0, derivative=0.5, smoothing=0.0)
    gate = budget_gate(25.0, 1.0, 1000, gains, window=1)
    found = budgets(gate, 60.0, 30)
    assert found[:3] == pytest.approx([24.0, 23.0, 22.0])
    assert found[-1] == pytest.approx(1e-6)


def test_the_derivative_answers_the_gap_between_asked_and_given():
    gains = Controller(proportional=0.1, integral=0.01, derivative=0.5, smoothing=0.0, largest=0.2)
    gate = budget_gate(25.0, 1.0, 1000, gains, window=1)
    state = gate.init()
    _, state, _, *_ = gate.decide(state, episodes(30.0))
    assert state.asked == pytest.approx(0.1 * -5 + 0.01 * -5)
    assert state.given == pytest.approx(-0.2)
    _, state, _, *_ = gate.decide(state, episodes(30.0))
    assert state.asked == pytest.approx(0.1 * -5.2 + 0.01 * -10.2 + 0.5 * (-0.2 + 0.55))


def test_epochs_without_an_episode_keep_the_average():
    gate = budget_gate(25.0, 0.9999, 1000)
    decision, state, log, *_ = gate.decide(gate.init(), episodes())
    assert decision.budget == 1.0
    assert log["gate/fallback"] == 1.0
    _, state, _, *_ = gate.decide(state, episodes(60.0))
    before = state.budget
    _, state, log, *_ = gate.decide(state, episodes())
    assert log["gate/mean_cost"] == 60.0
    assert state.budget < before
