"""Multipliers against recorded sequences, and what the Lagrangian methods do with them."""

from math import inf

import numpy as np
import pytest
from tests.algorithms.problems import episodes, problem, run_gate, update

from steingate.algorithms import make_algorithm
from steingate.algorithms.base import Mode, Objective
from steingate.algorithms.common.advantages import standardize
from steingate.algorithms.lagrangian import AdamConfig, PIDConfig
from steingate.errors import InputError

COSTS = (50, 40, 30, 26, 20, 10, 10)
EXPECTED = {
    "adam": (0.036, 0.06951, 0.09883, 0.12351, 0.14090, 0.14612, 0.14302),
    "pid": (0.401, 0.6385, 0.71662, 0.73134, 0.65283, 0.42074, 0.19275),
}


def multipliers(config, costs, limit=25.0):
    state, found = config.start(), []
    for cost in costs:
        state = config.next(state, cost, limit)
        found.append(state.value)
    return found


@pytest.mark.parametrize("name", ["trpo-lag", "ppo-lag", "rcpo", "focops", "cup"])
@pytest.mark.parametrize("rule", ["adam", "pid"])
def test_multipliers_follow_the_recorded_sequence(name, rule):
    _, outputs = run_gate(name, [episodes([cost]) for cost in COSTS], {"multiplier": rule}, window=1)
    found = [output.objective.lagrange_multiplier for output in outputs]
    np.testing.assert_allclose(found, EXPECTED[rule], atol=1.1e-5)
    for output, cost in zip(outputs, COSTS, strict=True):
        assert (output.objective.mode, output.objective.cost_slack) == (Mode.IMPROVE, inf)
        assert output.metrics["Gate/LagrangeMultiplier"] == output.objective.lagrange_multiplier
        assert output.metrics["Gate/MeanCost"] == cost


def test_multipliers_stay_between_zero_and_the_upper_bound():
    assert multipliers(AdamConfig(), [0.0] * 5) == [0.0] * 5
    assert multipliers(AdamConfig(upper_bound=0.1), [99.0] * 10)[-1] == 0.1
    assert min(multipliers(PIDConfig(), [0.0] * 40)) == 0.0


def test_the_derivative_compares_with_the_cost_delay_epochs_ago():
    config = PIDConfig(kp=0.0, ki=0.0, kd=1.0, delay=3, smoothing=0.0, init=0.0)
    # Compared with 0, 0, 0 until such a cost exists.
    assert multipliers(config, [10.0, 20.0, 40.0, 41.0, 45.0]) == pytest.approx([10.0, 20.0, 40.0, 31.0, 25.0])


@pytest.mark.parametrize("rule", ["adam", "pid"])
def test_the_mean_is_over_the_window_and_remains_in_empty_epochs(rule):
    epochs = [episodes([]), episodes([10, 20, 30, 70]), episodes([])]
    _, outputs = run_gate("ppo-lag", epochs, {"multiplier": rule}, window=3)
    assert outputs[0].metrics["Gate/Fallback"] == 1.0
    assert outputs[0].objective.lagrange_multiplier == 0.001
    assert [output.metrics["Gate/MeanCost"] for output in outputs[1:]] == pytest.approx([40.0, 40.0])
    assert outputs[2].objective.lagrange_multiplier > outputs[1].objective.lagrange_multiplier


@pytest.mark.parametrize("rule", ["adam", "pid"])
@pytest.mark.parametrize("name", ["focops", "cup"])
def test_multipliers_of_focops_and_cup_are_at_most_two(name, rule):
    _, outputs = run_gate(name, [episodes([99.0] * 20)] * 100, {"multiplier": rule})
    assert outputs[-1].objective.lagrange_multiplier == 2.0


def test_options_of_the_other_rule_are_refused():
    with pytest.raises(InputError, match="pid has no effect with multiplier=adam: set multiplier=pid"):
        make_algorithm("trpo-lag", options={"pid.delay": 3})
    with pytest.raises(InputError, match="adam has no effect with multiplier=pid: set multiplier=adam"):
        make_algorithm("cup", options={"multiplier": "pid", "adam.lr": 0.3})
    assert make_algorithm("ppo-lag", options={"pid.delay": 3, "multiplier": "pid"}).pid.delay == 3


class TestRCPO:
    def test_full_steps_whatever_the_kl(self):
        policy, batch = problem(samples=60)
        region = {"max_kl": 2.0, "cg_iters": 20, "cg_damping": 1e-4}
        objective = Objective(Mode.IMPROVE, lagrange_multiplier=0.3)
        _, free = update("rcpo", objective, policy, batch, region)
        _, bounded = update("trpo-lag", objective, policy, batch, region)
        assert (free["Loss/AcceptedFraction"], free["Loss/LineSearchTrials"]) == (1.0, 1.0)
        assert free["Loss/KL"] > 2.0
        assert bounded["Loss/KL"] <= 2.0
        same, broken = update("rcpo", objective, policy, batch._replace(adv=batch.adv * np.nan), region)
        assert broken["Loss/AcceptedFraction"] == 0.0
        np.testing.assert_array_equal(same["w"][0], policy["w"][0])

    @pytest.mark.parametrize("clip", [None, 1.5])
    def test_the_corrected_penalty_is_in_the_units_of_the_task(self, clip):
        """With clipping, the unit is that of the clipped advantages."""
        policy, batch = problem(samples=60)
        raw = np.random.default_rng(1).standard_t(2, size=60) * 10.0 * batch.adv
        bound = np.inf if clip is None else clip * np.quantile(np.abs(raw - raw.mean()), 0.9)
        reward = np.clip(raw - raw.mean(), -bound, bound)
        adv, adv_std = standardize(raw, clip)
        given = batch._replace(adv=adv.astype(np.float32), adv_std=adv_std)
        for variant, first in (("corrected", reward - reward.mean()), ("published", adv)):
            penalized = batch._replace(adv=((first - 3.0 * batch.cost_adv) / 4.0).astype(np.float32))
            options = {"cg_iters": 20, "max_kl": 1e-3, "variant": variant}
            found, _ = update("rcpo", Objective(lagrange_multiplier=3.0), policy, given, options)
            expected, _ = update("rcpo", Objective(), policy, penalized, {**options, "variant": "published"})
            for ours, theirs, start in zip(found["w"], expected["w"], policy["w"], strict=True):
                np.testing.assert_allclose(ours - start, theirs - start, atol=1e-3 * np.abs(theirs - start).max())
