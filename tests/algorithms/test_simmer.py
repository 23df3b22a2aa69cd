"""Simmer's controller of the cost budget: values computed by hand and by the equations of the paper."""

from dataclasses import replace

import numpy as np
import pytest

from steingate.algorithms.base import Episodes, Objective, RunContext
from steingate.algorithms.saute import ControllerConfig, TRPOSimmer

CONTEXT = RunContext(cost_limit=25.0, window=1, episode_length=1000)


def simmer(discount=0.9999, length=1000, **gains):
    algorithm = TRPOSimmer()
    budget = replace(algorithm.budget, budget_discount=discount, budget_length=length)
    return replace(algorithm, budget=budget, controller=ControllerConfig(**gains))


def budgets(algorithm, *costs, context=CONTEXT):
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


def test_the_mean_discount_has_its_closed_form():
    def mean_discount(discount, length):
        return simmer(discount, length).mean_discount(CONTEXT)

    assert 25 * mean_discount(0.999, 1000) == pytest.approx(15.80761, abs=1e-5)
    assert 25 * mean_discount(0.9999, 500) == pytest.approx(24.38648, abs=1e-5)
    assert mean_discount(0.9, 4) == pytest.approx((1 + 0.9 + 0.81 + 0.729) / 4)
    assert mean_discount(1.0, 7) == 1.0


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
    context = CONTEXT._replace(window=100)
    assert budgets(simmer(), None, context=context) == pytest.approx([25.0])
    first, second = budgets(simmer(), 60.0, None, context=context)
    assert second < first
