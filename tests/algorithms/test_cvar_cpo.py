import numpy as np
import pytest
from tests.algorithms.problems import episodes, run_gate

from steingate.algorithms import make_algorithm
from steingate.algorithms.base import EnvParams, Mode, Objective, RunContext
from steingate.algorithms.cvar_cpo import CVaRState


@pytest.mark.parametrize(("variant", "unit"), [("corrected", 1 / 1000), ("published", 1.0)])
def test_the_slack_is_the_limit_minus_the_cvar_of_the_window(variant, unit):
    epochs = [episodes([1, 2, 3, 40]), episodes([0] * 8), episodes([])]
    state, outputs = run_gate("cvar-cpo", epochs, {"tail": 0.25, "variant": variant}, window=8)
    slacks = [output.objective.cost_slack for output in outputs]
    assert slacks == pytest.approx([(25.0 - 40.0) * unit, 25.0 * unit, 25.0 * unit])
    assert [output.objective.mode for output in outputs] == [Mode.BALANCE] * 3
    assert outputs[0].metrics["Gate/CVaR"] == 40.0
    assert outputs[0].metrics["Gate/TailThreshold"] == 3.0
    assert outputs[2].metrics["Gate/Fallback"] == 1.0
    assert state.tail_threshold == 0.0
    assert run_gate("cvar-cpo", [episodes([])])[1][0].objective == Objective(Mode.RECOVER, 0.0)


def test_the_learned_cost_is_the_excess_over_the_threshold_divided_by_the_tail():
    """Its mean over episodes, plus the threshold, is the constrained CVaR."""
    costs = np.arange(1.0, 11.0)
    state, outputs = run_gate("cvar-cpo", [episodes(costs)], {"tail": 0.2})
    algorithm = make_algorithm("cvar-cpo", options={"tail": 0.2})
    excess = algorithm.cost_transform(RunContext(), state)(costs)
    assert state.tail_threshold + excess.mean() == pytest.approx(outputs[0].metrics["Gate/CVaR"])
    found = algorithm.cost_transform(RunContext(), CVaRState(tail_threshold=4.0))(np.array([1.0, 4.0, 7.0]))
    np.testing.assert_allclose(found, [0.0, 0.0, 15.0])


def test_the_policy_observes_its_accumulated_cost_in_limits():
    safety = make_algorithm("cvar-cpo").safety_state(RunContext(cost_limit=6.0), EnvParams())
    assert safety.next(safety.next(safety.start, 3.0), 6.0) == pytest.approx(1.5)
