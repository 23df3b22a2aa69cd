from math import inf

import numpy as np
import pytest
from steingate.gates.base import Episodes, Mode
from steingate.gates.mean import crpo_gate, mean_gate, open_gate, slack_per_step


def episodes(costs, length=500):
    costs = np.asarray(costs, np.float64)
    return Episodes(costs, np.zeros_like(costs), np.full(len(costs), length, np.int64))


def test_open_gate_always_improves_without_a_limit():
    gate = open_gate()
    for costs in ([], [1e9]):
        decision, state, log, *_ = gate.decide(gate.init(), episodes(costs))
        assert decision.mode == Mode.IMPROVE
        assert decision.slack == inf
        assert state == gate.init()
        assert log["gate/samples"] == len(costs)


def test_slack_is_the_limit_minus_the_moving_average():
    gate = mean_gate(25.0, window=5)
    state = gate.init()
    seen = []
    for costs in ([10, 20], [30, 40, 50], [60]):
        seen += costs
        decision, state, log, *_ = gate.decide(state, episodes(costs))
        assert decision.mode == Mode.BALANCE
        assert decision.slack == pytest.approx(25.0 - np.mean(seen[-5:]))
        assert log["gate/mean_cost"] == pytest.approx(np.mean(seen[-5:]))
        assert log["gate/fallback"] == 0.0
    assert len(state.costs) == 5


def test_slack_per_step_divides_by_the_mean_length():
    gate = slack_per_step(mean_gate(25.0, window=4), window=4)
    decision, state, _, *_ = gate.decide(gate.init(), episodes([5, 15], length=500))
    assert decision.slack == pytest.approx(15.0 / 500)
    decision, state, _, *_ = gate.decide(state, episodes([35, 45], length=1000))
    assert decision.slack == pytest.approx(0.0)
    decision, state, _, *_ = gate.decide(state, episodes([45, 55], length=1000))
    assert decision.slack == pytest.approx((25.0 - 45.0) / 1000)


@pytest.mark.parametrize("per_step", [True, False])
def test_an_epoch_without_an_episode_keeps_the_average(per_step):
    gate = slack_per_step(mean_gate(25.0)) if per_step else mean_gate(25.0)
    before, state, _, *_ = gate.decide(gate.init(), episodes([20, 10]))
    after, _, log, *_ = gate.decide(state, episodes([]))
    assert after == before
    assert log["gate/fallback"] == 1.0
    assert all(np.isfinite(number) for number in log.values())


@pytest.mark.parametrize("per_step", [True, False])
def test_before_any_episode_the_gate_recovers(per_step):
    gate = slack_per_step(mean_gate(25.0)) if per_step else mean_gate(25.0)
    decision, state, log, *_ = gate.decide(gate.init(), episodes([]))
    assert decision.mode == Mode.RECOVER
    assert decision.slack == 0.0
    assert log["gate/fallback"] == 1.0
    assert all(np.isfinite(number) for number in log.values())
    assert gate.decide(state, episodes([1.0]))[0].mode == Mode.BALANCE


def test_deciding_leaves_the_given_state_alone():
    gate = mean_gate(25.0)
    _, state, _, *_ = gate.decide(gate.init(), episodes([1, 2]))
    again = [gate.decide(state, episodes([30]))[0] for _ in range(2)]
    assert again[0] == again[1]


def test_no_limit_stays_no_limit_per_step():
    gate = slack_per_step(open_gate())
    assert gate.decide(gate.init(), episodes([3.0]))[0].slack == inf


def test_crpo_switches_at_the_limit_plus_its_tolerance():
    gate = crpo_gate(25.0, tolerance=2.0, window=1)
    state = gate.init()
    for cost, mode, slack in ((26.9, Mode.IMPROVE, inf), (27.1, Mode.RECOVER, 0.0), (3.0, Mode.IMPROVE, inf)):
        decision, state, log, *_ = gate.decide(state, episodes([cost]))
        assert (decision.mode, decision.slack) == (mode, slack)
        assert log["gate/mode"] == mode
    assert gate.decide(gate.init(), episodes([]))[0].mode == Mode.RECOVER
