"""BudgetSchedule: its equations by brute force, and its statistical claims by simulation (large ones are slow)."""

import numpy as np
import pytest
from tests.algorithms.controller_simulations import (
    PROCESSES,
    RATES,
    B,
    Controllers,
    constant,
    episodes_to_alarm,
    growth_per_value,
    linear,
    settled,
    wrong_growth,
)

from steingate.algorithms.allowance import BudgetSchedule
from steingate.monitoring.wealth import RHO, THETA, WEIGHTS


def evidence(history, risk, alarm):
    """E and A of updates (violations, episodes), as sums over restarts instead of a recursion."""
    e, a = 0.0, 0.0
    for start in range(len(history)):
        h = sum(violations for violations, _ in history[start:])
        n = sum(episodes for _, episodes in history[start:])
        first = history[start][1]
        for weight, c in zip(WEIGHTS, RHO, strict=True):
            e += weight / ((start + 1) * (start + 2)) * c**h * ((1 - c * risk) / (1 - risk)) ** (n - h)
        for bet in THETA:
            a += first * (1 + bet * (1 - alarm) / alarm) ** h * (1 - bet) ** (n - h) / len(THETA)
    return e, a


@pytest.mark.parametrize("spend", [False, True])
def test_evidence_and_moves_follow_the_equations(spend):
    rng, schedule = np.random.default_rng(0), BudgetSchedule(min_fraction=1e-6, spend=spend, run_length=200.0)
    state, history, moves, m = schedule.init(), [], [], 0.6
    for rate in np.repeat([0.02, 0.001, 0.1, 0.002, 0.08], 60):
        n = int(rng.integers(1, 30))
        history.append((int(rng.binomial(n, rate)), n))
        state, info = schedule.update(state, 0.03, *history[-1])
        e, a = evidence(history, 0.03, 0.67 * 0.03)
        np.testing.assert_allclose(info, (e, a), rtol=1e-9)
        delta = 0.05 * 6 / (np.pi * (len(moves) + 1)) ** 2 if spend else 0.05
        if a >= 200.0:
            m *= 0.85
        elif e >= 1 / delta:
            m *= 1.15
        assert state.fraction == pytest.approx(m)
        if a >= 200.0 or e >= 1 / delta:
            moves.append(a >= 200.0)
            history = []
        assert (state.changes, state.updates) == (len(moves), len(history))
        assert (state.violations, state.episodes) == tuple(np.sum(history, axis=0) if history else (0, 0))
    assert {True, False} == set(moves)


def test_at_the_minimum_alarms_are_counted_and_the_detector_restarts():
    schedule, state = BudgetSchedule(init_fraction=0.11, min_fraction=0.1), BudgetSchedule(init_fraction=0.11).init()
    seen = []
    for _ in range(4):
        state, info = schedule.update(state, B, violations=30, episodes=100)
        assert info.shrink_evidence >= 1000.0
        seen.append((state.fraction, state.changes, state.alarms_at_min, state.above.max()))
    assert seen == [(0.1, 1, 0, 0.0), (0.1, 1, 1, 0.0), (0.1, 1, 2, 0.0), (0.1, 1, 3, 0.0)]
    assert (state.violations, state.episodes) == (90, 300)


def test_hold_delays_shrinking_and_prevents_nothing_else():
    schedule, state = BudgetSchedule(), BudgetSchedule().init()
    for _ in range(5):
        state, info = schedule.update(state, B, violations=30, episodes=100, hold=True)
        assert info.shrink_evidence >= 1000.0
        assert (state.fraction, state.alarms_at_min) == (0.6, 0)
    assert schedule.update(state, B, 1, 1)[0].fraction == pytest.approx(0.6 * 0.85)
    # Evidence is cut at run_length, so good episodes refute it.
    state, _ = schedule.update(state, B, violations=0, episodes=100, hold=True)
    assert schedule.update(state, B, 0, 1)[0].fraction == 0.6
    grown = schedule.init()
    for _ in range(30):
        grown, _ = schedule.update(grown, B, violations=0, episodes=20, hold=True)
    assert grown.fraction > 0.6


def test_noise_raises_the_rate_above_which_the_budget_shrinks():
    schedule = BudgetSchedule()
    noisy = schedule.update(schedule.init(), B, violations=10, episodes=100, noise=5.0)[1]
    direct = BudgetSchedule(alarm=5 * 0.67)
    assert noisy.shrink_evidence == pytest.approx(direct.update(direct.init(), B, 10, 100)[1].shrink_evidence)
    assert schedule.update(schedule.init(), B, 100, 100, noise=1e6)[0].fraction == 0.6  # the threshold is at most 1


@pytest.mark.parametrize("spend", [False, True])
def test_the_simulations_follow_the_class(spend):
    schedule = BudgetSchedule(min_fraction=0.3, spend=spend, run_length=300.0)
    rng, many, states = np.random.default_rng(1), Controllers(schedule, 6), [schedule.init()] * 6
    for rate in np.repeat([0.001, 0.05, 0.002, 0.1], 40):
        violations = rng.binomial(25, rate, 6)
        many.update(violations, 25, noise=1.3)
        states = [
            schedule.update(state, B, int(h), 25, noise=1.3)[0] for state, h in zip(states, violations, strict=True)
        ]
        np.testing.assert_allclose(many.fraction, [state.fraction for state in states])
        assert many.changes.tolist() == [state.changes for state in states]
        np.testing.assert_allclose(many.above, [state.above for state in states], rtol=1e-9)
    assert many.changes.min() > 3


# Claim 1: for each value of m, wrong growth has a probability of at most delta.


def test_wrong_growth_is_rare_small():
    assert wrong_growth(constant, 500, 80) <= 0.05 + 3.0 * np.sqrt(0.05 * 0.95 / 500)  # with 1 / (4 delta): 0.16


@pytest.mark.slow
@pytest.mark.parametrize("process", PROCESSES.values())
def test_wrong_growth_is_rare(process):
    rate = wrong_growth(process)
    assert rate <= 0.05
    if process is constant:
        assert rate > 0.02  # the test has power: the error is of the order of delta


def test_evidence_restarts_with_m_small():
    # Without a restart, m grows again at the next updates.
    assert growth_per_value(100, 60)[0] <= 0.1


@pytest.mark.slow
def test_spending_covers_the_whole_run():
    assert growth_per_value()[0] <= 0.05
    assert growth_per_value(spend=True)[1] <= 0.05


# Claim 2: while p_t <= b, alarms are at least run_length episodes apart on average.


def test_alarms_are_rare_at_the_threshold_small():
    found = episodes_to_alarm(10, run_length=200.0, runs=200)
    assert found.mean() + 3.0 * found.std() / 200**0.5 >= 200.0
    assert found.mean() < 5 * 200.0
    assert episodes_to_alarm(10, rate=0.05, run_length=200.0, runs=30).mean() < 100.0


@pytest.mark.slow
@pytest.mark.parametrize(("n", "noise"), [(1, 1.0), (20, 1.0), (128, 1.0), (40, 5.0)])
def test_alarms_are_rare_at_the_threshold(n, noise):
    found = episodes_to_alarm(n, noise)
    assert found.mean() + 3.0 * found.std() / len(found) ** 0.5 >= 1000.0


# Where it settles.


def test_it_settles_at_two_thirds_of_the_risk_small():
    ratio, fraction, above = settled(linear, 128, runs=40)
    assert 0.58 < ratio < 0.78
    assert fraction == pytest.approx(0.5 * ratio)
    assert above < 0.03


@pytest.mark.slow
@pytest.mark.parametrize("spend", [False, True])
@pytest.mark.parametrize("setting", RATES)
def test_it_settles_at_the_same_rate_for_any_size_of_updates(setting, spend):
    rate, lag = RATES[setting]
    found = np.array([settled(rate, n, lag, spend=spend) for n in (20, 128)])
    low, high = (0.5, 0.65) if spend else (0.62, 0.74)
    assert np.all((found[:, 0] > low) & (found[:, 0] < high))
    assert found[:, 2].max() < (0.2 if lag else 0.05)
