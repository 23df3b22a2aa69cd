"""The monitor as users see it: the same bits however costs arrive, refusals that change nothing, words."""

import doctest
import importlib
import json
import subprocess
import sys
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steingate import InputError, Monitor
from steingate.certificates.risk import Exceedance, Power
from steingate.monitoring.sentence import percent
from steingate.monitoring.tail import Grid, capped_mean
from steingate.monitoring.upper import count_upper, mean_upper


def bits(monitor):
    return json.dumps(monitor.to_dict())


def filled(costs, **settings):
    monitor = Monitor(**settings)
    monitor.update_many(costs)
    return monitor


def mixed(rng, n, p):
    return np.where(rng.random(n) < p, 25.0 + 60.0 * rng.random(n), np.round(25.0 * rng.random(n), 1))


@pytest.mark.parametrize("p", [0.0, 0.01, 0.06, 0.1, 0.15, 0.5, 1.0])
@pytest.mark.parametrize("budget", [0.02, 0.1, 0.6])
def test_one_by_one_and_many_at_once_give_the_same_bits(p, budget):
    rng = np.random.default_rng(int(1000 * p))
    costs = mixed(rng, 3_000, p)
    one, pieces = Monitor(budget=budget), Monitor(budget=budget)
    for cost in costs.tolist():
        one.update(cost)
    start = 0
    while start < len(costs):
        size = int(rng.integers(1, 300))
        pieces.update_many(costs[start : start + size])
        start += size
    many = filled(costs, budget=budget)
    assert bits(one) == bits(many) == bits(pieces)
    assert one.summary() == many.summary()


@given(st.lists(st.sampled_from([0.0, 1.0, 25.0, 25.1, 60.0]), max_size=80), st.data())
def test_any_way_of_cutting_the_costs_gives_the_same_bits(costs, data):
    cut = data.draw(st.integers(0, len(costs)))
    one, two = Monitor(budget=0.3, delta=0.3, run_length=20), Monitor(budget=0.3, delta=0.3, run_length=20)
    for cost in costs:
        one.update(cost)
    two.update_many(costs[:cut])
    for cost in costs[cut:]:
        two.update(cost)
    assert bits(one) == bits(two)


def test_when_it_was_certified_or_shown_unsafe_is_the_first_time_the_evidence_suffices():
    rng = np.random.default_rng(4)
    for p in (0.02, 0.3):
        monitor, found = Monitor(), {}
        for t, cost in enumerate(mixed(rng, 400, p).tolist(), start=1):
            monitor.update(cost)
            bound = count_upper(monitor.over, monitor.under, 0.05)
            if bound < 0.1 and "certified" not in found:
                found["certified"] = t
            if monitor.p_value_unsafe <= 0.05 and "unsafe" not in found:
                found["unsafe"] = t
        assert monitor.certified_at == found.get("certified")
        assert monitor.unsafe_at == found.get("unsafe")


def test_certified_and_p_value_say_the_same_and_last():
    rng = np.random.default_rng(5)
    monitor, before = Monitor(), 1.0
    for cost in mixed(rng, 600, 0.05).tolist():
        monitor.update(cost)
        assert monitor.certified == (monitor.p_value <= 0.05)
        assert monitor.p_value <= before
        before = monitor.p_value
    assert monitor.certified


def test_thirty_six_clean_episodes_certify_a_tenth():
    monitor = filled([3.0] * 35)
    assert not monitor.certified
    assert monitor.clean_episodes_needed == 1
    monitor.update(25)  # the limit itself is within the limit
    assert monitor.certified
    assert monitor.certified_at == 36
    assert monitor.clean_episodes_needed == 0


@pytest.mark.parametrize("over", [0, 1, 7])
def test_the_number_of_clean_episodes_needed_is_exact(over):
    monitor = filled([30.0] * over + [0.0] * 3)
    monitor.update_many([0.0] * (monitor.clean_episodes_needed - 1))
    assert not monitor.certified
    monitor.update(0.0)
    assert monitor.certified


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (nan, "nan"),
        (-1.0, "-1.0"),
        (inf, "inf"),
        (-inf, "-inf"),
        ("12", "'12'"),
        (None, "None"),
        (True, "True"),
        ([1.0], "[1.0]"),
        (1j, "1j"),
        (np.float64("nan"), "nan"),
        (np.array([1.0, 2.0]), "array"),
    ],
)
def test_what_is_no_cost_is_refused_and_changes_nothing(cost, words):
    monitor = filled([1.0, 30.0, 2.0])
    before = bits(monitor)
    with pytest.raises(InputError, match=r"\.$") as refusal:
        monitor.update(cost)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)
    if cost is not True:  # in a list with numbers NumPy takes it for one
        with pytest.raises(InputError):
            monitor.update_many([3.0, cost, 4.0])
    assert bits(monitor) == before


def test_numbers_of_every_kind_are_costs():
    monitor = Monitor()
    for cost in (3, 3.0, np.float32(3), np.int64(3), np.array(3.0)):
        monitor.update(cost)
    other = filled([3.0] * 5)
    assert bits(monitor) == bits(other)


def test_nothing_is_known_at_first_and_no_costs_are_fine():
    monitor = Monitor()
    monitor.update_many([])
    monitor.update_many(np.zeros(0))
    assert monitor.bound == monitor.soft_bound == monitor.p_value == monitor.p_value_unsafe == 1.0
    assert monitor.mean_bound == monitor.cvar_bound() == monitor.cap == 100.0
    assert monitor.tail_bound(10.0) == 1.0
    assert not any([monitor.certified, monitor.unsafe, monitor.drift])
    assert monitor.sentence == (
        "Nothing is known yet about a budget of 10 %: 36 more episodes within the limit would certify it."
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"limit": -1.0}, "limit is -1.0"),
        ({"limit": nan}, "limit is nan"),
        ({"limit": "25"}, "limit is '25'"),
        ({"budget": 1.0}, "budget is 1.0"),
        ({"budget": 0}, "budget is 0"),
        ({"delta": -0.1}, "delta is -0.1"),
        ({"baseline": 1.5}, "baseline is 1.5"),
        ({"run_length": 0.5}, "run_length is 0.5"),
        ({"cap": inf}, "cap is inf"),
        ({"limit": 1e308}, "limit is 1e+308"),
        ({"limit": 5e-324}, "limit is 5e-324"),
        ({"budget": 1e-320}, "budget is 1e-320"),
        ({"budget": 1.0 - 1e-16}, "budget is 0.99"),
        ({"risk": lambda x: 1.0 - x}, "falls"),
    ],
)
def test_impossible_settings_are_one_sentence(settings, words):
    with pytest.raises(InputError, match=r"\.$") as refusal:
        Monitor(**settings)
    assert words in str(refusal.value)


def test_ten_million_updates():
    """Big numbers: the share is the right one, nothing overflows, the state stays small."""
    rng = np.random.default_rng(6)
    costs = np.where(rng.random(1_000_000) < 0.03, 50.0, 1.0)
    monitor = Monitor(budget=0.05)
    for _ in range(10):
        monitor.update_many(costs)
    share = float(np.mean(costs > 25.0))
    assert monitor.episodes == 10_000_000
    assert share < monitor.bound < share + 4e-4
    assert monitor.certified
    assert not monitor.unsafe
    assert monitor.p_value == 0.0
    assert len(bits(monitor)) < 20_000
    monitor.update(50.0)
    assert monitor.episodes == 10_000_001


def test_soft_bound_is_the_bound_of_the_risks_hardly_rounded():
    rng = np.random.default_rng(7)
    costs = 50.0 * rng.beta(2, 5, 800)
    monitor = filled(costs)
    exact = mean_upper(monitor.risk(np.minimum(costs / 50.0, 1.0)), np.ones(800), 0.05)
    assert exact - 1e-9 <= monitor.soft_bound <= exact + 3e-3
    whole = filled(np.round(costs))  # at this limit whole numbers are edges of cells
    exact = mean_upper(monitor.risk(np.minimum(np.round(costs) / 50.0, 1.0)), np.ones(800), 0.05)
    assert whole.soft_bound == pytest.approx(exact, rel=1e-9)
    assert filled(costs, risk=Exceedance(0.5)).soft_bound == pytest.approx(monitor.bound, rel=1e-6)


def test_tail_bounds_are_count_bounds_and_fall():
    rng = np.random.default_rng(8)
    costs = rng.exponential(12.0, 700)
    monitor = filled(costs)
    thresholds, bounds = monitor.tail()
    assert len(thresholds) == 25
    assert 25.0 in thresholds
    for c, bound in zip(thresholds, bounds, strict=True):
        over = int((costs > c).sum())
        assert bound == pytest.approx(count_upper(over, 700 - over, 0.05 / 25), rel=1e-12)
    assert (np.diff(bounds) <= 0).all()
    assert monitor.tail_bound(25.0) == bounds[thresholds.tolist().index(25.0)]
    assert monitor.tail_bound(26.0) == monitor.tail_bound(25.0)
    assert monitor.tail_bound(-1.0) == 1.0


def test_mean_and_cvar_bounds():
    rng = np.random.default_rng(9)
    costs = np.where(rng.random(1_000) < 0.8, 0.0, np.round(rng.exponential(30.0, 1_000)))
    monitor = filled(costs)
    capped = np.sort(np.minimum(costs, 100.0))
    assert capped.mean() < monitor.mean_bound < 1.8 * capped.mean()
    assert monitor.cvar_bound(0.1) > capped[-100:].mean()
    # As recorded for this law after 1000 episodes: 0.126 at the limit, CVaR 69.7.
    assert monitor.tail_bound(25.0) == pytest.approx(0.126, rel=0.15)
    assert monitor.cvar_bound(0.1) == pytest.approx(69.7, rel=0.1)
    assert monitor.cvar_bound(0.999999) == pytest.approx(monitor.mean_bound, rel=1e-4)


def test_integrals_of_known_tails():
    c = np.linspace(0.0, 10.0, 1001)
    exact = np.clip(1.0 - c / 10.0, 0.0, 1.0)  # uniform on [0, 10]
    assert capped_mean(c, exact, 10.0) == pytest.approx(5.0, abs=0.01)
    assert capped_mean(c, exact, 10.0, 0.2) == pytest.approx(9.0, abs=0.06)
    assert capped_mean(c, exact, 4.0) == pytest.approx(3.2, abs=0.01)


@pytest.mark.parametrize("cap", [10.0, 25.0, 60.0, 100.0, 5_000.0])
def test_grids_grow_and_contain_limit_and_cap(cap):
    grid = Grid.of(25.0, cap)
    assert (np.diff(grid.edges) > 0).all()
    assert grid.edges[grid.within - 1] == 25.0
    assert 25.0 in grid.edges[grid.thresholds]
    assert (grid.risks(Power(1.0)) <= 1.0).all()
    monitor = filled([1.0] * 50, cap=cap)
    assert 1.0 <= monitor.mean_bound <= cap


def test_calibrate_then_watch():
    rng = np.random.default_rng(10)
    calibration = filled(mixed(rng, 500, 0.02))
    watching = Monitor.watch(calibration, run_length=5_000)
    assert (watching.episodes, watching.run_length) == (0, 5_000.0)
    assert watching.baseline == calibration.bound == watching.drift.baseline
    assert watching.limit == calibration.limit
    watching.update_many(mixed(rng, 500, 0.02))
    assert not watching.drift
    watching.update_many(mixed(rng, 200, 0.3))
    assert watching.drift
    assert 500 < watching.drift.alarms[0] < 560
    assert watching.sentence.startswith("Drift at episode 5") or watching.unsafe
    watching.rearm()
    assert not watching.drift
    costs = mixed(rng, 300, 0.02)
    assert Monitor.watch(costs, limit=25, budget=0.2).baseline == filled(costs).bound
    with pytest.raises(InputError, match="run more"):
        Monitor.watch([30.0] * 10)


def test_reset_forgets_everything():
    monitor = filled(mixed(np.random.default_rng(11), 300, 0.3))
    monitor.reset()
    assert bits(monitor) == bits(Monitor())


def test_the_trace_stays_short_and_true():
    rng = np.random.default_rng(12)
    costs = mixed(rng, 50_000, 0.05)
    monitor = filled(costs)
    over = np.cumsum(costs > 25.0)
    assert len(monitor.trace) < 300
    assert [n for n, _ in monitor.trace[:40]] == list(range(1, 41))
    assert all(over[n - 1] == s for n, s in monitor.trace)


def test_sentences_say_what_to_do():
    assert "run more" in filled([1.0] * 5 + [40.0]).sentence
    assert "go on watching" in filled([1.0] * 50).sentence
    assert "out of service" in filled([40.0] * 30).sentence
    changed = filled([1.0] * 50 + [40.0] * 100)
    assert changed.certified
    assert changed.unsafe
    assert "do not rely on the certificate" in changed.sentence
    for costs in ([1.0] * 5, [1.0] * 50, [40.0] * 30):
        assert filled(costs).sentence.endswith(".")


def test_percentages_are_readable():
    assert [percent(x) for x in (0.1, 0.05, 0.0984, 1e-6, 0.999999, 1.0)] == [
        "10 %", "5 %", "9.8 %", "0.0001 %", "99.9999 %", "100 %",
    ]  # fmt: skip


def test_summary_is_json():
    summary = filled(mixed(np.random.default_rng(13), 100, 0.1)).summary()
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_monitors_load_no_simulator_and_no_learner():
    code = (
        "import sys; from steingate import Monitor, Monitors, StepWatcher, certify_policy;"
        "Monitor().update(3.0);"
        "heavy = ('jax', 'mujoco', 'gymnasium', 'numba', 'matplotlib', 'torch', 'stable_baselines3');"
        "print([name for name in heavy if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("budget", [1e-15, 1e-6, 1.0 - 1e-12])
@pytest.mark.parametrize("limit", [1e-200, 1e200])
def test_extreme_settings_give_numbers(budget, limit):
    monitor = Monitor(limit, budget, delta=1e-12)
    monitor.update_many(np.array([0.0, 0.5, 1.0, 3.0, 9.0]) * limit)
    assert all(0.0 <= value <= 1.0 for value in (monitor.bound, monitor.soft_bound, monitor.p_value))
    assert 0.0 < monitor.mean_bound <= monitor.cap
    json.dumps(monitor.summary(), allow_nan=False)
    assert Monitor.from_dict(monitor.to_dict()).to_dict() == monitor.to_dict()


@pytest.mark.parametrize("name", ["upper", "monitor", "several", "episodes", "certify"])
def test_examples_in_the_documentation(name):
    result = doctest.testmod(importlib.import_module(f"steingate.monitoring.{name}"))
    assert result.failed == 0


def test_a_limit_of_0_counts_every_cost():
    """The same counts, bounds and verdicts as with any limit that lies between the same costs."""
    costs = [0.0, 1.0, 0.0, 0.0, 2.0] + [0.0] * 150
    zero, half = Monitor(0, cap=4.0), Monitor(0.5, cap=4.0)
    for monitor in (zero, half):
        monitor.update_many(costs)
    assert (
        (zero.over, zero.bound, zero.certified)
        == (half.over, half.bound, half.certified)
        == (2, half.bound, True)
    )
    assert zero.soft_bound == pytest.approx(half.soft_bound)
    again = Monitor(0)
    for cost in costs:
        again.update(cost)
    assert again.over == sum(again.cells[again.grid.within :]) == 2
    assert 0.0 < again.grid.edges[1] < 0.01


def test_no_number_of_clean_episodes_is_promised_to_a_policy_over_the_budget():
    sentence = filled([40.0] * 2 + [1.0] * 4).sentence
    assert "would certify" not in sentence
    assert "more of these went over than the budget allows" in sentence
    assert "would certify" in filled([1.0] * 6).sentence
