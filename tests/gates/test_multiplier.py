from math import inf

import numpy as np
import pytest
from steingate.gates.base import Episodes, Mode
from steingate.gates.multiplier import PID, Ascent, multiplier_gate

LAWS = {"adam": Ascent(), "pid": PID()}
COSTS = (50, 40, 30, 26, 20, 10, 10)
EXPECTED = {
    "adam": (0.036, 0.06951, 0.09883, 0.12351, 0.14090, 0.14612, 0.14302),
    "pid": (0.401, 0.6385, 0.71662, 0.73134, 0.65283, 0.42074, 0.19275),
}


def episodes(*costs):
    costs = np.asarray(costs, np.float64)
    return Episodes(costs, np.zeros_like(costs), np.full(len(costs), 1000, np.int64))


def prices(gate, costs):
    state, found = gate.init(), []
    for cost in costs:
        decision, state, log, *_ = gate.decide(state, episodes(cost))
        assert decision.mode == Mode.IMPROVE
        assert decision.slack == inf
        assert log["gate/price"] == decision.price
        found.append(decision.price)
    return found


@pytest.mark.parametrize("law", ["adam", "pid"])
def test_prices_follow_the_written_sequence(law):
    found = prices(multiplier_gate(25.0, LAWS[law], window=1), COSTS)
    np.testing.assert_allclose(found, EXPECTED[law], atol=1.1e-5)


def test_the_first_move_has_the_rate_whatever_the_violation():
    for cost in (25.01, 1000.0):
        assert prices(multiplier_gate(25.0, Ascent(rate=0.1), window=1), [cost])[0] == pytest.approx(0.101)


def test_prices_stay_between_zero_and_their_ceiling():
    low = prices(multiplier_gate(25.0, Ascent(), window=1), [0.0] * 5)
    assert low == [0.0] * 5
    high = prices(multiplier_gate(25.0, Ascent(ceiling=0.1), window=1), [99.0] * 10)
    assert high[-1] == 0.1
    assert min(prices(multiplier_gate(25.0, PID(), window=1), [0.0] * 40)) == 0.0


def test_the_derivative_looks_back_by_the_delay():
    law = PID(proportional=0.0, integral=0.0, derivative=1.0, delay=3, smoothing=0.0, start=0.0)
    found = prices(multiplier_gate(25.0, law, window=1), [10.0, 20.0, 40.0, 41.0, 45.0])
    # Compared with 0, 0, 0 (the queue's first entry), then with the costs three epochs before.
    assert found == pytest.approx([10.0, 20.0, 40.0, 31.0, 25.0])


@pytest.mark.parametrize("law", ["adam", "pid"])
def test_the_mean_is_over_the_window_and_survives_empty_epochs(law):
    gate = multiplier_gate(25.0, LAWS[law], window=3)
    decision, state, log, *_ = gate.decide(gate.init(), episodes())
    assert log["gate/fallback"] == 1.0
    assert decision.price == 0.001
    _, state, log, *_ = gate.decide(state, episodes(10, 20, 30, 70))
    assert log["gate/mean_cost"] == pytest.approx(40.0)
    after, state, log, *_ = gate.decide(state, episodes())
    assert log["gate/mean_cost"] == pytest.approx(40.0)
    assert after.price > decision.price
