"""The gates of CPO and of the methods that constrain the same mean: PCPO, P3O, CRPO; CPO's two variants."""

from math import inf

import numpy as np
import pytest
from tests.algorithms.problems import episodes, problem, run_gate, update

from steingate.algorithms.base import Mode, Objective

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
