"""Two epochs of every method repeat updates recorded with an earlier, independently structured implementation.

``tests/data/algorithm_updates.json`` has decision, metrics and projections of the parameters for both variants.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.algorithms.problems import episodes, problem

from steingate.algorithms import ALGORITHMS, make_algorithm
from steingate.algorithms.base import RunContext

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "algorithm_updates.json").read_text())
EPOCHS = (
    episodes([1.0, 9.0, 2.0, 30.0, 4.0])._replace(length=np.array([10, 20, 30, 40, 50])),
    episodes([7.0, 3.0])._replace(length=np.array([5, 15])),
)
CONTEXT = RunContext(cost_limit=6.0)


def test_every_method_with_a_paper_is_recorded():
    names = {name for name in ALGORITHMS if "allowance" not in name}
    assert set(RECORDED) == {f"{name} {variant}" for name in names for variant in ("corrected", "published")}


FAST = {"cpo corrected", "ppo corrected", "steingate corrected"}  # the others are marked slow


@pytest.mark.parametrize(
    "key", [key if key in FAST else pytest.param(key, marks=pytest.mark.slow) for key in sorted(RECORDED)]
)
def test_two_epochs_repeat(key):
    name, variant = key.split()
    algorithm = make_algorithm(name, options={"variant": variant})
    policy, batch = problem()
    state, count = algorithm.init(CONTEXT, policy), 0
    for finished, expected in zip(EPOCHS, RECORDED[key], strict=True):
        count += len(finished.cost)
        if name == "evo":  # episodes of the current policy
            state = state._replace(log_ratio=np.zeros(count))
        state, output = algorithm.decide(CONTEXT, state, finished)
        objective = output.objective
        assert objective.mode == expected["mode"]
        slack = np.inf if expected["slack"] is None else expected["slack"]
        assert objective.cost_slack == pytest.approx(slack, rel=1e-5)
        assert objective.lagrange_multiplier == pytest.approx(expected["multiplier"], rel=1e-5)
        state, policy, metrics = algorithm.update(CONTEXT, state, policy, batch, objective)
        for metric, value in expected.items():
            if metric not in ("mode", "slack", "multiplier", "params"):
                assert metrics[f"Loss/{metric}"] == pytest.approx(value, rel=1e-3, abs=2e-6), metric
        leaves = (*policy["w"], *policy["b"], policy["log_std"])
        found = [np.vdot(leaf.astype(np.float64).ravel(), np.cos(np.arange(leaf.size))) for leaf in leaves]
        np.testing.assert_allclose(found, expected["params"], rtol=1e-3, atol=2e-4)
