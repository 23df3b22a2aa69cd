"""BudgetSchedule: its equations by brute force, and its statistical claims by simulation.

Whole simulations take minutes and are slow tests; smaller ones run with the other tests.
"""

import numpy as np
import pytest

from steingate.algorithms.allowance import BudgetSchedule
from steingate.errors import InputError
from steingate.monitoring.wealth import RHO, THETA, WEIGHTS

B = 0.015
NEVER_SHRINKS = {"alarm": 1e9}  # threshold 1


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


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"init_fraction": 0.05}, "init_fraction"),
        ({"shrink": 1.0}, "shrink"),
        ({"delta": 0.0}, "delta"),
        ({"alarm": 0.0}, "alarm"),
    ],
)
def test_invalid_settings_are_refused(options, named):
    with pytest.raises(InputError, match=named):
        BudgetSchedule(**options)


# Claim 1: for each value of m, wrong growth has a probability of at most delta.


def constant(rng, t, state, n):
    return rng.binomial(n, B), B


def waves(rng, t, state, n):
    p = B * (1.0 + 0.8 * np.sin(2.0 * np.pi * t / 40.0))
    return rng.binomial(n, p), p


def within_updates(rng, t, state, n):
    return rng.binomial(n // 2, 2.0 * B), B  # rate 0, then twice B


def bad_luck(rng, t, state, n):
    """Rates far above B whenever the evidence for growing is small."""
    p = 0.2 if t % 20 == 10 and np.dot(WEIGHTS, state.below) < 1.0 else B
    return rng.binomial(n, p), p


def wrong_growth(schedule, process, reps, updates, n=32, seed=0):
    """Fraction of runs whose first change of m is a growth at which every window of the last updates has mean >= B."""
    wrong = 0
    for rep in range(reps):
        rng, state, rates = np.random.default_rng([seed, rep]), schedule.init(), []
        for t in range(updates):
            violations, p = process(rng, t, state, n)
            rates.append(p)
            state, _ = schedule.update(state, B, int(violations), n)
            if state.changes:
                suffix_means = np.cumsum(rates[::-1]) / np.arange(1, len(rates) + 1)
                wrong += state.fraction > 0.6 and suffix_means.min() >= B * (1 - 1e-12)
                break
    return wrong / reps


def most(delta, reps):
    """Three standard errors above delta."""
    return delta + 3.0 * np.sqrt(delta * (1.0 - delta) / reps)


def test_wrong_growth_is_rare_small():
    # A threshold of 1 / (4 delta) has 0.16 here.
    assert wrong_growth(BudgetSchedule(**NEVER_SHRINKS), constant, 200, 80) <= most(0.05, 200)


@pytest.mark.slow
@pytest.mark.parametrize("process", [constant, waves, within_updates, bad_luck])
def test_wrong_growth_is_rare(process):
    rate = wrong_growth(BudgetSchedule(**NEVER_SHRINKS), process, 600, 300)
    assert rate <= most(0.05, 600)
    if process is constant:
        assert rate > 0.02  # the test has power: the error is of the order of delta


def growth_per_value(reps, updates, n=32, **options):
    """Mean number of wrong growths per value of m, where p = B always, and fraction of runs with one or more."""
    schedule = BudgetSchedule(init_fraction=1e-3, min_fraction=1e-3, **NEVER_SHRINKS, **options)
    values, grown, runs = 0, 0, 0
    for rep in range(reps):
        rng, state, wrong = np.random.default_rng([7, rep]), schedule.init(), 0
        # m grows rightly once, after which the rate is B.
        while state.changes == 0:
            state, _ = schedule.update(state, B, 0, n)
        m = state.fraction
        for _ in range(updates):
            state, _ = schedule.update(state, B, int(rng.binomial(n, B)), n)
            wrong += state.fraction > m
            m = state.fraction
        values, grown, runs = values + state.changes, grown + wrong, runs + (wrong > 0)
    return grown / values, runs / reps


def test_evidence_restarts_with_m_small():
    # Without a restart, m grows again at the next updates.
    assert growth_per_value(40, 60)[0] <= 0.1


@pytest.mark.slow
def test_spending_covers_the_whole_run():
    per_value, _ = growth_per_value(150, 400)
    assert per_value <= 0.05
    _, ever = growth_per_value(150, 400, spend=True)
    assert ever <= most(0.05, 150)


# Claim 2: while p_t <= b, alarms are at least run_length episodes apart on average.


def mean_episodes_to_alarm(process_rate, run_length, reps, n, noise=1.0):
    schedule, times = BudgetSchedule(run_length=run_length, delta=1e-12), []
    for rep in range(reps):
        rng, state, episodes = np.random.default_rng([3, rep]), schedule.init(), 0
        while not state.changes:
            state, _ = schedule.update(state, B, int(rng.binomial(n, process_rate)), n, noise=noise)
            episodes += n
        times.append(episodes)
    return np.mean(times), np.std(times) / np.sqrt(reps)


def test_alarms_are_rare_at_the_threshold_small():
    mean, error = mean_episodes_to_alarm(0.67 * B, 200.0, 200, 10)
    assert mean + 3.0 * error >= 200.0
    assert mean < 5 * 200.0
    assert mean_episodes_to_alarm(0.05, 200.0, 30, 10)[0] < 100.0


@pytest.mark.slow
@pytest.mark.parametrize(("n", "noise"), [(1, 1.0), (20, 1.0), (128, 1.0), (40, 5.0)])
def test_alarms_are_rare_at_the_threshold(n, noise):
    mean, error = mean_episodes_to_alarm(0.67 * B * noise, 1000.0, 100, n, noise)
    assert mean + 3.0 * error >= 1000.0


# Where it settles.


def settled(schedule, rate, reps, n, episodes=40_000):
    """Mean violation rate in multiples of B, mean m, and fraction of time above B, over the second half of runs."""
    rates, fractions = [], []
    for rep in range(reps):
        rng, state = np.random.default_rng([5, rep]), schedule.init()
        for t in range(episodes // n):
            p = rate(state.fraction, t * n)
            rates.append(p)
            fractions.append(state.fraction)
            state, _ = schedule.update(state, B, int(rng.binomial(n, p)), n)
    half = np.tile(np.arange(episodes // n) >= episodes // n // 2, reps)
    rates, fractions = np.array(rates)[half], np.array(fractions)[half]
    return rates.mean() / B, fractions.mean(), (rates > B).mean()


def linear(m, t):
    return 0.03 * m


def test_it_settles_at_two_thirds_of_the_risk_small():
    ratio, fraction, above = settled(BudgetSchedule(), linear, 12, 128)
    assert 0.58 < ratio < 0.78
    assert fraction == pytest.approx(0.5 * ratio)
    assert above < 0.03


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "n", "low", "high"),
    [
        ({}, 20, 0.62, 0.72),
        ({}, 128, 0.65, 0.75),
        ({"spend": True}, 20, 0.52, 0.62),
        ({"spend": True}, 128, 0.58, 0.68),
    ],
)
def test_it_settles_at_the_same_rate_for_any_size_of_updates(options, n, low, high):
    ratio, _, above = settled(BudgetSchedule(**options), linear, 40, n)
    assert low < ratio < high
    assert above < 0.01
