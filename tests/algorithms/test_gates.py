"""The gates of CPO, PCPO, P3O, CRPO and CVaR-CPO, and of methods without a constraint; CPO's two variants."""

from math import inf

import numpy as np
import pytest
from tests.algorithms.problems import episodes, problem, run_gate, update

from steingate.algorithms import make_algorithm
from steingate.algorithms.base import EnvParams, Mode, Objective, RunContext
from steingate.algorithms.cvar_cpo import CVaRState

MEAN_COST = ["cpo", "pcpo", "p3o"]


@pytest.mark.parametrize("name", MEAN_COST)
@pytest.mark.parametrize("variant", ["corrected", "published"])
def test_the_slack_is_the_limit_minus_the_moving_average(name, variant):
    """Per step in the corrected variant, per episode in the published one."""
    epochs = [episodes([10, 20], 500), episodes([30, 40, 50], 1000), episodes([60], 250)]
    _, outputs = run_gate(name, epochs, {"variant": variant}, window=5)
    costs, lengths = np.zeros(0), np.zeros(0)
    for finished, output in zip(epochs, outputs, strict=True):
        costs, lengths = np.append(costs, finished.cost)[-5:], np.append(lengths, finished.length)[-5:]
        slack = 25.0 - costs.mean()
        assert output.objective.mode == Mode.BALANCE
        assert output.objective.cost_slack == pytest.approx(slack if variant == "published" else slack / lengths.mean())
        assert output.objective.lagrange_multiplier == 0.0
        assert output.metrics["Gate/MeanCost"] == pytest.approx(costs.mean())
        assert output.metrics["Gate/Episodes"] == len(finished.cost)
        assert output.metrics["Gate/Fallback"] == 0.0


@pytest.mark.parametrize("name", MEAN_COST)
def test_epochs_without_an_episode(name):
    """Cost is minimized before the first episode; later the average remains."""
    _, outputs = run_gate(name, [episodes([]), episodes([20, 10]), episodes([])])
    assert outputs[0].objective == Objective(Mode.RECOVER, 0.0)
    assert [output.metrics["Gate/Fallback"] for output in outputs] == [1.0, 0.0, 1.0]
    assert outputs[1].objective == outputs[2].objective == Objective(Mode.BALANCE, pytest.approx(10.0 / 1000))
    assert all(np.isfinite(list(output.metrics.values())).all() for output in outputs)


def test_the_published_signs_show_where_the_limit_cuts_the_trust_region():
    policy, batch = problem()
    objective = Objective(Mode.BALANCE, 0.005)
    metrics = {
        variant: update("cpo", objective, policy, batch, {"variant": variant})[1]
        for variant in ("corrected", "published")
    }
    assert metrics["corrected"]["Loss/Case"] == metrics["published"]["Loss/Case"] == 2
    assert metrics["corrected"]["Loss/Lambda"] != pytest.approx(metrics["published"]["Loss/Lambda"], rel=0.1)
    assert 0.0 < metrics["corrected"]["Loss/CostChange"] <= 0.005


@pytest.mark.parametrize(
    ("cost", "mode", "slack"),
    [(25.0, Mode.IMPROVE, inf), (26.9, Mode.IMPROVE, inf), (27.1, Mode.RECOVER, 0.0), (3.0, Mode.IMPROVE, inf)],
)
def test_crpo_switches_at_the_limit_plus_its_tolerance(cost, mode, slack):
    _, outputs = run_gate("crpo", [episodes([90.0]), episodes([cost])], {"tolerance": 2.0}, window=1)
    assert outputs[-1].objective == Objective(mode, slack)
    assert outputs[-1].metrics["Gate/Mode"] == mode


@pytest.mark.parametrize("name", ["ppo", "trpo", "ppo-saute", "trpo-saute"])
def test_methods_without_a_constraint_maximize_reward(name):
    outputs = run_gate(name, [episodes([]), episodes([1e9])])[1]
    assert [output.objective for output in outputs] == [Objective(Mode.IMPROVE, inf, 0.0)] * 2
    assert [output.metrics["Gate/Episodes"] for output in outputs] == [0.0, 1.0]


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
