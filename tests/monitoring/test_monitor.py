"""The monitors as users see them: equal bits however costs arrive, refused input, state files, sentences."""

import copy
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steingate import InputError, Monitor, Monitors, RunError
from steingate.certificates.shift import shift_radius
from steingate.monitoring.wealth import cluster_bound, upper_bound


def bits(monitor):
    return json.dumps(monitor.state_dict(), allow_nan=False)


def filled(costs, limit=25.0, **settings):
    monitor = Monitor(limit, **settings)
    monitor.update_many(costs)
    return monitor


def mixed(seed, n, p):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < p, 25.0 + 60.0 * rng.random(n), np.round(25.0 * rng.random(n), 1))


@given(st.lists(st.sampled_from([0.0, 1.0, 25.0, 25.1, 60.0]), max_size=80), st.data())
def test_any_way_of_cutting_the_costs_gives_the_same_bits(costs, data):
    cut = data.draw(st.integers(0, len(costs)))
    settings = {"budget": 0.3, "delta": 0.3, "run_length": 20.0}
    one, two = filled(costs, **settings), filled(costs[:cut], **settings)
    two = Monitor.from_state(json.loads(bits(two)))
    for cost in costs[cut:]:
        two.update(cost)
    assert bits(one) == bits(two)


@pytest.mark.parametrize("p", [0.02, 0.05, 0.3])
def test_certified_and_unsafe_follow_from_bound_and_p_values(p):
    monitor, certified_at, unsafe_at, before = Monitor(25), None, None, 1.0
    for t, cost in enumerate(mixed(4, 600, p).tolist(), start=1):
        monitor.update(cost)
        if certified_at is None and upper_bound(monitor.violations, t - monitor.violations, 0.05) < 0.1:
            certified_at = t
        if unsafe_at is None and monitor.p_value_unsafe <= 0.05:
            unsafe_at = t
        assert monitor.certified == (monitor.p_value <= 0.05)
        assert monitor.p_value <= before
        before = monitor.p_value
    assert (monitor.certified_at, monitor.unsafe_at) == (certified_at, unsafe_at)


@pytest.mark.parametrize("violations", [0, 1, 7])
def test_more_episodes_is_exact(violations):
    monitor = filled([30.0] * violations + [25.0] * 3)  # a cost equal to the limit is no violation
    monitor.update_many([0.0] * (monitor.more_episodes - 1))
    assert not monitor.certified
    assert monitor.more_episodes == 1
    monitor.update(0)
    assert monitor.certified
    assert monitor.more_episodes == 0
    assert violations or monitor.certified_at == 36


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (nan, "nan"),
        (-1.0, "-1.0"),
        (inf, "inf"),
        (None, "None"),
        (True, "True"),
        ([1.0], "[1.0]"),
        (np.array([1.0, 2.0]), "array"),
    ],
)
def test_invalid_costs_are_refused_and_change_nothing(cost, words):
    monitor = filled([1.0, 30.0, 2.0])
    before = bits(monitor)
    with pytest.raises(InputError, match=r"\.$") as refusal:
        monitor.update(cost)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)
    if cost is not True:  # in a list with numbers, NumPy converts it
        with pytest.raises(InputError):
            monitor.update_many([3.0, cost, 4.0])
    assert bits(monitor) == before


def test_without_episodes_nothing_is_known():
    monitor = filled(np.zeros(0))
    assert monitor.bound == monitor.p_value == monitor.p_value_unsafe == 1.0
    assert monitor.mean_bound == monitor.cvar_bound() == monitor.cap == 100.0
    assert monitor.tail_bound(10.0) == 1.0
    assert not any([monitor.certified, monitor.unsafe, monitor.drift])
    assert monitor.summary == ("No episodes yet: 36 without a violation would certify a violation rate of 10 %.")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"limit": -1.0}, "limit is -1.0"),
        ({"limit": "25"}, "limit is '25'"),
        ({"limit": 5e-324}, "limit is 5e-324"),
        ({"budget": 1.0}, "budget is 1.0"),
        ({"baseline": 1.5}, "baseline is 1.5"),
        ({"run_length": 0.5}, "run_length is 0.5"),
        ({"cap": inf}, "cap is inf"),
    ],
)
def test_invalid_settings_are_one_sentence(settings, words):
    with pytest.raises(InputError, match=r"\.$") as refusal:
        Monitor(**{"limit": 25, **settings})
    assert words in str(refusal.value)


def test_tail_bounds_are_bounds_on_the_counts():
    costs = np.random.default_rng(8).exponential(12.0, 700)
    monitor = filled(costs)
    thresholds, bounds = monitor.tail()
    assert len(thresholds) == 25
    assert 25.0 in thresholds
    for c, bound, rate in zip(thresholds, bounds, monitor.tail_rates(), strict=True):
        over = int((costs > c).sum())
        assert rate == over / 700
        assert bound == pytest.approx(upper_bound(over, 700 - over, 0.05 / 25), rel=1e-12)
    assert (np.diff(bounds) <= 0).all()
    assert monitor.tail_bound(26.0) == monitor.tail_bound(25.0) == bounds[thresholds.tolist().index(25.0)]
    assert monitor.tail_bound(-1.0) == 1.0


def test_mean_and_cvar_bounds():
    rng = np.random.default_rng(9)
    costs = np.where(rng.random(1_000) < 0.8, 0.0, np.round(rng.exponential(30.0, 1_000)))
    monitor = filled(costs)
    capped = np.sort(np.minimum(costs, 100.0))
    assert capped.mean() < monitor.mean_bound < 1.8 * capped.mean()
    assert monitor.cvar_bound(0.1) > capped[-100:].mean()
    # As recorded for this distribution after 1000 episodes: 0.126 at the limit, CVaR 69.7.
    assert monitor.tail_bound(25.0) == pytest.approx(0.126, rel=0.15)
    assert monitor.cvar_bound(0.1) == pytest.approx(69.7, rel=0.1)
    assert monitor.cvar_bound(0.999999) == pytest.approx(monitor.mean_bound, rel=1e-4)


def test_calibrate_then_watch():
    calibration = filled(mixed(10, 500, 0.02))
    field = Monitor.watch(calibration, run_length=5_000)
    assert (field.limit, field.episodes, field.run_length) == (25.0, 0, 5_000.0)
    assert field.baseline == calibration.bound
    field.update_many(mixed(11, 500, 0.02))
    assert not field.drift
    field.update_many(mixed(12, 200, 0.3))
    assert field.drift
    assert 500 < field.detector.alarms[0] < 560
    assert field.unsafe or field.summary.startswith("Drift at episode 5")
    field.rearm()
    assert not field.drift
    assert Monitor.watch(mixed(13, 300, 0.02), limit=25).baseline == filled(mixed(13, 300, 0.02)).bound
    with pytest.raises(InputError, match="run more"):
        Monitor.watch([30.0] * 10, limit=25)


def test_a_certificate_that_no_longer_holds():
    monitor = filled(np.concatenate([mixed(14, 2_000, 0.02), mixed(15, 400, 0.3)]))
    assert monitor.certified
    assert monitor.unsafe
    assert not monitor.certified_now
    assert monitor.metrics()["certified_now"] is False
    assert monitor.status == "unsafe"
    assert monitor.bound < 0.1  # over all episodes
    assert monitor.bound_now(200) > 0.3


def test_bound_now_is_that_of_the_last_episodes():
    flags = np.array([1] * 100 + [0] * 500)
    monitor = filled(np.where(flags, 30.0, 1.0))
    for window, block in ((200, 51), (201, 50), (8, 75), (600, 1), (10_000, 1)):
        recent = flags[8 * (block - 1) :]
        bound = upper_bound(int(recent.sum()), int((recent == 0).sum()), 0.05 / (block * (block + 1)))
        assert monitor.bound_now(window) == pytest.approx(bound)
    assert monitor.bound > 0.15 > monitor.bound_now(200)
    monitor.update_many([1.0] * 5_000)
    n = 128 * 8  # the blocks that are kept
    assert monitor.bound_now(2_000) == pytest.approx(upper_bound(0, n, 0.05 / (573 * 574)), rel=0.01)
    assert Monitor(25).bound_now() == 1.0
    with pytest.raises(InputError, match="window is 0"):
        monitor.bound_now(0)


def test_the_shift_of_a_certificate():
    monitor = Monitor(25)
    monitor.update_many([3.0] * 36)
    assert monitor.shift == shift_radius(monitor.bound, 0.1)
    assert monitor.to_dict()["shift"]["total_variation"] == pytest.approx(0.1 - monitor.bound)
    monitor.update_many([30.0] * 40)
    assert monitor.certified
    assert monitor.shift is None


def test_a_new_policy_starts_anew():
    monitor = filled([30.0] * 50)
    monitor.new_policy("repaired")
    assert (monitor.policy, monitor.episodes, monitor.unsafe, monitor.bound) == ("repaired", 0, False, 1.0)
    monitor.update_many([1.0] * 36)
    assert monitor.certified_at == 36
    assert [(entry["episodes"], entry["violations"]) for entry in monitor.history] == [(50, 50)]
    assert bits(Monitor.from_state(json.loads(bits(monitor)))) == bits(monitor)


def test_clusters_count_once():
    monitor = Monitor(25)
    monitor.update_cluster([1.0] * 9 + [30.0])
    monitor.update_cluster([1.0] * 10)
    monitor.update_cluster([30.0] * 3)
    monitor.update(1.0)
    assert monitor.trace[-1] == (24, 4, monitor.bound)
    assert (monitor.episodes, monitor.counted, monitor.violations, monitor.max_cost) == (24, 4, 4, 30.0)
    assert "4 of 24 episodes in 4 clusters cost more than 25" in monitor.summary
    assert monitor.bound == pytest.approx(cluster_bound(1, 2, {0.1: 1}, 0.05))
    assert monitor.tail_rates()[10] == pytest.approx(1.1 / 4)
    alone = filled([1.0] * 10)
    for _ in range(35):
        assert not monitor.certified
        alone.update_cluster([2.0, 3.0])
    assert alone.bound == filled([1.0] * 45).bound  # a cluster without violations is one episode without
    with pytest.raises(InputError):
        monitor.update_cluster([1.0, nan])
    again = Monitor.from_state(json.loads(bits(monitor)))
    assert bits(again) == bits(monitor)
    while not monitor.certified:
        for each in (monitor, again):
            each.update_cluster([1.0] * 19 + [30.0])
    assert again.certified_at == monitor.certified_at
    assert monitor.bound < 0.1


def test_a_shift_of_costs_below_the_limit_is_drift():
    rng = np.random.default_rng(0)
    calibration = 10.0 * rng.random(500)
    field = Monitor.watch(calibration, limit=25)
    field.update_many(10.0 * rng.random(500))
    assert not field.drift
    field.update_many(10.0 + 10.0 * rng.random(50))
    assert field.drift
    assert field.violations == 0
    assert field.drift_alarms == field.cost_detector.alarms
    assert "the episodes cost more than those of the calibration" in field.summary
    field.rearm()
    assert not field.drift
    again, more = Monitor.from_state(json.loads(bits(field))), 10.0 * rng.random(100)
    for each in (field, again):
        each.update_many(more)
    assert bits(again) == bits(field)
    assert field.cost_detector.evidence > 0.0


def test_the_trace_is_short_and_correct():
    costs = mixed(12, 50_000, 0.05)
    trace, violations = filled(costs).trace, np.cumsum(costs > 25.0)
    assert len(trace) < 150
    assert [n for n, *_ in trace[:20]] == list(range(1, 21))
    assert all(violations[n - 1] == s for n, s, _ in trace)


@pytest.mark.parametrize("budget", [1e-15, 1e-6, 1.0 - 1e-12])
@pytest.mark.parametrize("limit", [1e-200, 1e200])
def test_extreme_settings_give_numbers(budget, limit):
    monitor = filled(np.array([0.0, 0.5, 1.0, 3.0, 9.0]) * limit, limit, budget=budget, delta=1e-12)
    assert 0.0 <= monitor.bound <= 1.0
    assert 0.0 <= monitor.p_value <= 1.0
    assert 0.0 < monitor.mean_bound <= monitor.cap
    json.dumps(monitor.to_dict(), allow_nan=False)
    assert bits(Monitor.from_state(monitor.state_dict())) == bits(monitor)


@pytest.mark.parametrize(
    ("costs", "status", "words"),
    [
        ([1.0] * 5 + [40.0], "undecided", "shown unsafe"),
        ([1.0] * 6, "undecided", "30 more episodes without a violation would certify 10 %"),
        ([1.0] * 50, "certified", "Continue to monitor"),
        ([40.0] * 30, "unsafe", "out of service"),
        ([1.0] * 50 + [40.0] * 100, "unsafe", "Do not rely on the certificate"),
    ],
)
def test_summaries_say_what_to_do(costs, status, words):
    monitor = filled(costs)
    assert monitor.status == status
    assert words in monitor.summary
    assert json.loads(json.dumps(monitor.to_dict(), allow_nan=False)) == monitor.to_dict()


class TestState:
    """The state: the same bits through files, refused when damaged, complete after kill -9."""

    @pytest.mark.parametrize("at", [0, 1, 35, 400, 700])
    def test_a_restored_monitor_continues_with_the_same_bits(self, tmp_path, at):
        costs, settings = (mixed(at, 700, 0.06), {"budget": 0.08, "baseline": 0.03, "run_length": 500, "cap": 70.0})
        part = filled(costs[:at], **settings)
        part.save(tmp_path / "m.json")
        restored = Monitor.load(tmp_path / "m.json")
        assert bits(restored) == bits(part)
        for cost in costs[at:].tolist():
            restored.update(cost)
        assert bits(restored) == bits(filled(costs, **settings))

    @pytest.mark.parametrize(
        "change",
        [
            lambda s: s.update(format="other"),
            lambda s: s.pop("tail"),
            lambda s: s.update(episodes=3),
            lambda s: s.update(violations=s["violations"] + 1),
            lambda s: s["tail"].__setitem__(0, 2.5),
            lambda s: s["settings"].update(delta=7),
            lambda s: s["safe"].__setitem__(0, nan),
            lambda s: s["drift"].__setitem__(2, [0.0]),
            lambda s: s["trace"][0].pop(),
            lambda s: s["clusters"].append([2.0, 1]),
            lambda s: s["costs"].update(statistics=[]),
            lambda s: s["costs"]["seen"].append([-1.0, 1]),
            lambda s: s.update(history=[{"bound": nan}]),
            lambda s: s.update(history={}),
            lambda s: s.update(episodes=10**400),
            lambda s: s.update(max_cost=None),
        ],
    )
    def test_damaged_states_are_refused(self, change):
        state = copy.deepcopy(filled(mixed(1, 700, 0.06)).state_dict())
        change(state)
        with pytest.raises(InputError, match=r"\.$"):
            Monitor.from_state(state)

    @pytest.mark.parametrize("state", [None, [], {}, "text", 3])
    def test_anything_else_is_refused(self, state):
        for kind in (Monitor, Monitors):
            with pytest.raises(InputError, match="not the state"):
                kind.from_state(state)

    def test_damaged_files_are_one_sentence(self, tmp_path):
        path, monitor = tmp_path / "m.json", filled([1.0] * 40)
        monitor.save(path)
        content = path.read_bytes()
        path.write_bytes(content.replace(b'"episodes": 40', b'"episodes": 41'))
        with pytest.raises(RunError, match="checksum"):
            Monitor.load(path)
        body = b"[" * 100_000
        deep = b'{"sha256": "%s", "state": %s}\n' % (hashlib.sha256(body).hexdigest().encode(), body)
        for bad in (b"", content[:100], b"[]", b"\xff\xfe", b'{"state": 1, "sha256": 2}', body, deep):
            path.write_bytes(bad)
            with pytest.raises(RunError, match=r"\.$"):
                Monitor.load(path)
        with pytest.raises(RunError, match="No such file"):
            Monitor.load(tmp_path / "none.json")
        with pytest.raises(RunError, match="Cannot write"):
            monitor.save(tmp_path / "no" / "folder.json")

    def test_kill_9_leaves_a_complete_state(self, tmp_path):
        path, costs, reached = tmp_path / "m.json", mixed(3, 100_000, 0.06), 0
        np.save(tmp_path / "costs.npy", costs)
        child_code = (
            "import sys, numpy as np; from pathlib import Path; from steingate import Monitor\n"
            "path = Path(sys.argv[1])\n"
            "monitor = Monitor.load(path) if path.exists() else Monitor(25)\n"
            "for cost in np.load(path.parent / 'costs.npy')[monitor.episodes:].tolist():\n"
            "    monitor.update(cost)\n"
            "    monitor.save(path)\n"
        )
        for kill in range(3):
            child = subprocess.Popen([sys.executable, "-c", child_code, str(path)])
            deadline, target = time.monotonic() + 60, reached + 20 + 7 * kill
            while time.monotonic() < deadline and not (path.exists() and Monitor.load(path).episodes >= target):
                time.sleep(0.002)
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
            stored = Monitor.load(path)
            assert stored.episodes >= target
            assert bits(stored) == bits(filled(costs[: stored.episodes]))
            reached = stored.episodes


class TestMonitors:
    """Several costs: delta is divided, an invalid episode changes no monitor, the state is restored."""

    def test_delta_is_divided_and_results_are_joint(self, tmp_path):
        budgets = {"hazards": 0.1, "speed": 0.2, "falls": 0.05}
        monitors = Monitors({"hazards": 25, "speed": 10, "falls": 0.5}, budget=budgets)
        assert [monitor.delta for monitor in monitors.values()] == [0.05 / 3] * 3
        for _ in range(60):
            monitors.update({"hazards": 3.0, "speed": 1, "falls": 0})
        assert monitors["speed"].certified
        assert monitors.status == "undecided"
        monitors.update_many({"hazards": np.ones(60), "speed": np.ones(60), "falls": np.zeros(60)})
        assert monitors.certified
        assert monitors.episodes == 120
        monitors.save(tmp_path / "m.json")
        again = Monitors.load(tmp_path / "m.json")
        assert bits(again) == bits(monitors)
        assert again.summary.startswith("hazards: Certified")
        monitors.update_many({"hazards": np.ones(99), "speed": np.full(99, 30.0), "falls": np.zeros(99)})
        assert monitors.unsafe
        assert monitors.drift
        assert monitors.metrics()["bound"] == monitors.metrics()["bound/speed"] == monitors["speed"].bound
        monitors.rearm()
        assert not monitors.drift
        monitors.new_policy("next")
        assert (monitors.episodes, monitors["speed"].policy) == (0, "next")

    @pytest.mark.parametrize(
        ("costs", "words"),
        [
            ({"a": 1.0}, "one number for each of a, b"),
            ({"a": 1.0, "b": 2.0, "c": 3.0}, "'c'"),
            ({"a": 1.0, "b": float("nan")}, "b: "),
            ({"a": 1.0, "b": "2"}, "b: "),
            (3.0, "dictionary"),
        ],
    )
    def test_an_invalid_episode_changes_no_monitor(self, costs, words):
        monitors = Monitors({"a": 25, "b": 10})
        monitors.update({"a": 1, "b": 2})
        before = bits(monitors)
        with pytest.raises(InputError, match=r"\.$") as refusal:
            monitors.update(costs)
        assert words in str(refusal.value)
        assert bits(monitors) == before

    def test_settings_are_checked(self):
        for limits in ({}, None, 25):
            with pytest.raises(InputError, match="dictionary"):
                Monitors(limits)
        with pytest.raises(InputError, match="budgets"):
            Monitors({"a": 1}, budget={"b": 0.1})
        with pytest.raises(InputError, match="different lengths"):
            Monitors({"a": 1, "b": 1}).update_many({"a": [1, 2], "b": [1]})
        with pytest.raises(InputError, match="delta"):
            Monitors({"a": 1}, delta=2.0)
