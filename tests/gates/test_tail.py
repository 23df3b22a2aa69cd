import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from steingate.gates.base import Episodes, Mode, no_costs
from steingate.gates.mean import open_gate
from steingate.gates.tail import (
    ExtremeValue,
    cvar,
    cvar_gate,
    episode_weights,
    extreme_value,
    extreme_value_gate,
    pareto_quantile,
    risk_slack,
)

from steingate.certificates.risk import Sigmoid
from steingate.errors import InputError

ONE_TO_FIFTY = np.arange(1.0, 51.0)


def episodes(costs, log_ratio=None):
    costs = np.asarray(costs, np.float64)
    return Episodes(costs, np.zeros_like(costs), np.full(len(costs), 1000, np.int64), log_ratio)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=40), st.floats(0.05, 1.0))
def test_cvar_is_the_minimum_over_levels(costs, tail):
    costs = np.array(costs)
    value, level = cvar(costs, tail)
    levels = np.append(costs, 0.0)
    objective = levels + np.maximum(costs[None] - levels[:, None], 0.0).mean(axis=1) / tail
    assert value == pytest.approx(objective.min(), abs=1e-9)
    assert level in costs
    found = minimize_scalar(lambda u: u + np.maximum(costs - u, 0).mean() / tail, bounds=(0, 100), method="bounded")
    assert value <= found.fun + 1e-6


def test_cvar_of_plain_cases():
    assert cvar(np.arange(1.0, 101.0), 0.1)[0] == pytest.approx(95.5)
    assert cvar(np.arange(1.0, 101.0), 1.0)[0] == pytest.approx(50.5)
    assert cvar(np.full(7, 3.0), 0.1) == (3.0, 3.0)


def test_the_cvar_gate_spends_what_is_left_below_the_limit():
    gate = cvar_gate(25.0, 0.25, window=8)
    decision, state, log, *_ = gate.decide(gate.init(), episodes([1, 2, 3, 40]))
    assert decision.mode == Mode.BALANCE
    assert decision.slack == pytest.approx(25.0 - 40.0)
    assert decision.level == 3.0
    decision, state, _, *_ = gate.decide(state, episodes([0] * 8))
    assert decision.slack == 25.0
    after, _, log, *_ = gate.decide(state, episodes([]))
    assert after == decision
    assert log["gate/fallback"] == 1.0
    first, _, _, *_ = gate.decide(gate.init(), episodes([]))
    assert first.mode == Mode.RECOVER
    with pytest.raises(InputError, match="tail"):
        cvar_gate(25.0, 0.0)


def test_risk_slack_is_the_budget_less_the_mean_risk():
    risk = Sigmoid()
    gate = risk_slack(open_gate(), risk, 50.0, 0.1)
    decision, _, _, *_ = gate.decide(gate.init(), episodes([0.0, 25.0, 80.0]))
    assert decision.slack == pytest.approx(0.1 - (float(risk(0.0)) + 0.5 + float(risk(1.0))) / 3)
    assert gate.decide(gate.init(), episodes([]))[0].slack == 0.0


@pytest.mark.parametrize(
    ("cfg", "value"), [(ExtremeValue().resolved(published=True), 97.077), (ExtremeValue(), 49.077)]
)
def test_the_extreme_value_of_one_to_fifty(cfg, value):
    found, fitted = extreme_value(ONE_TO_FIFTY, np.zeros(50), cfg)
    assert found == pytest.approx(value, abs=0.5)
    assert fitted


def test_counting_twice_is_the_only_difference_of_that_flag():
    once = extreme_value(ONE_TO_FIFTY, np.zeros(50), ExtremeValue(free_location=True))[0]
    twice = extreme_value(ONE_TO_FIFTY, np.zeros(50), ExtremeValue(free_location=True, count_twice=True))[0]
    assert once == pytest.approx(49.077, abs=0.01)
    assert twice - once == pytest.approx(48.0)


@pytest.mark.parametrize("free", [True, False])
def test_a_fitted_quantile_agrees_with_the_distribution_it_was_drawn_from(free):
    sample = np.random.default_rng(0).exponential(10.0, 20_000)
    value, fitted = pareto_quantile(sample, 95.0, 0.5, free)
    assert fitted
    assert value == pytest.approx(10.0 * np.log(1 / 0.025), rel=0.03)  # the 97.5 % quantile


@pytest.mark.parametrize(("sample", "value"), [([1.0] * 90 + [7.0] * 3, 7.0), ([0.0] * 99 + [5.0], 5.0)])
def test_a_fit_that_cannot_be_made_falls_back_to_the_excesses(sample, value):
    found, fitted = pareto_quantile(np.array(sample), 95.0, 0.5, False)
    assert not fitted
    assert found == pytest.approx(value)


def test_without_an_excess_the_percentile_stands():
    assert pareto_quantile(np.full(30, 4.0), 95.0, 0.5, False) == (4.0, True)


def test_weights_are_clamped_ratios_or_as_published_clamped_logs():
    log_ratio = np.array([-9.0, np.log(0.9), 0.0, np.log(1.1), 1.0, 9.0])
    np.testing.assert_allclose(episode_weights(log_ratio, "ratio"), [0.8, 0.9, 1.0, 1.1, 1.2, 1.2])
    logs = [0.8, 0.8, 0.8, 0.8, 1.0, 1.2]
    np.testing.assert_allclose(episode_weights(log_ratio, "log_ratio"), np.exp(logs))


@pytest.mark.parametrize("clamp", ["ratio", "log_ratio"])
def test_likelier_episodes_count_more(clamp):
    """Against the percentile of as many copies, written out."""
    dear = ONE_TO_FIFTY > 40
    cfg = ExtremeValue(clamp=clamp, percentile=80.0)
    found = {}
    for sign in (1.0, -1.0):
        log_ratio = sign * np.where(dear, 2.0, -2.0)
        weight = episode_weights(log_ratio, clamp)
        sample = np.repeat(ONE_TO_FIFTY, (1e4 * weight / weight.sum()).astype(int))
        found[sign], fitted = extreme_value(ONE_TO_FIFTY, log_ratio, cfg)
        assert fitted
        assert found[sign] == pytest.approx(pareto_quantile(sample, 80.0, 0.5, False)[0])
    assert found[1.0] > found[-1.0] + 0.5


def test_the_gate_remembers_fifty_episodes_and_spends_the_rest():
    gate = extreme_value_gate(25.0)
    decision, state, log, *_ = gate.decide(gate.init(), episodes(np.full(30, 99.0)))
    assert decision.slack == pytest.approx(25.0 - 99.0)
    decision, state, log, *_ = gate.decide(state, episodes(ONE_TO_FIFTY / 5, np.zeros(50)))
    assert len(state.costs) == 50
    assert decision.mode == Mode.BALANCE
    assert decision.slack == pytest.approx(25.0 - log["gate/extreme_cost"])
    assert log["gate/extreme_cost"] == pytest.approx(49.077 / 5, abs=0.5)
    assert log["gate/fit_failed"] == 0.0


def test_epochs_without_cost_or_without_episodes():
    for cfg, value in ((ExtremeValue().resolved(published=True), 0.0), (ExtremeValue(), 9.0)):
        gate = extreme_value_gate(25.0, cfg)
        _, state, _, *_ = gate.decide(gate.init(), episodes([9.0] * 20))
        for quiet in ([], [0.0]):
            decision, _, _, *_ = gate.decide(state, episodes(quiet))
            assert decision.slack == pytest.approx(25.0 - value)
    assert extreme_value_gate(25.0).decide(no_costs(), episodes([]))[0].mode == Mode.RECOVER


def test_cvar_is_the_mean_of_the_worst():
    costs = np.array([5.0, 1.0, 9.0, 3.0, 7.0])
    assert cvar(costs, 0.2)[0] == pytest.approx(9.0)
    assert cvar(costs, 0.4)[0] == pytest.approx(8.0)
    assert cvar(costs, 0.3)[0] == pytest.approx((9.0 * 0.2 + 7.0 * 0.1) / 0.3)
    assert cvar(costs, 0.1)[0] == pytest.approx(9.0)
    assert cvar(costs, 1.0)[0] == pytest.approx(costs.mean())
