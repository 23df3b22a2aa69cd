"""The drift detector: its recursion, run lengths and delays."""

import numpy as np
import pytest

from steingate.monitoring.drift import DriftDetector
from steingate.monitoring.wealth import THETA

STATE = ("alarm", "alarms", "statistics", "safe")


def recursion(rows, baseline):
    """Yield mean(R) of several runs after each row of violations, shape (runs,)."""
    theta, r = np.array(THETA), 0.0
    for x in rows:
        r = np.minimum((1 + r) * (1 + theta * (x[:, None] - baseline) / baseline), 1e300)
        yield r.mean(axis=1)


@pytest.mark.parametrize("p", [0.002, 0.01, 0.1, 0.5])
def test_evidence_is_that_of_the_recursion(p):
    flags = np.random.default_rng(0).random(3_000) < p
    detector = DriftDetector(0.1, 9e299)
    for number, (x, mean) in enumerate(zip(flags.tolist(), recursion(flags[:, None], 0.1), strict=True), start=1):
        detector.update(x, number)
        if detector.alarm:
            break
        assert detector.evidence == pytest.approx(mean.item(), rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_single_and_many_updates_give_the_same_bits_and_the_alarm_of_the_recursion(seed):
    rng = np.random.default_rng(seed)
    flags = rng.random(6_000) < rng.choice([0.0005, 0.03, 0.12, 0.4])
    baseline, length = 0.03, float(rng.choice([50.0, 1e4]))
    one, many = DriftDetector(baseline, length), DriftDetector(baseline, length)
    for number, x in enumerate(flags.tolist(), start=1):
        one.update(x, number)
    start = 0
    while start < len(flags):
        size = int(rng.integers(1, 1500))
        many.update_many(flags[start : start + size], start + 1)
        start += size
    assert [getattr(one, name) for name in STATE] == [getattr(many, name) for name in STATE]
    means = np.concatenate(list(recursion(flags[:, None], baseline)))
    alarms = np.flatnonzero(flags & (means >= length)) + 1
    assert one.alarms == alarms[:1].tolist()


def run_lengths(baseline, run_length, runs, seed):
    rng, lengths = np.random.default_rng(seed), np.zeros(runs, int)
    rows = (rng.random(runs) < baseline for _ in iter(int, 1))
    for number, means in enumerate(recursion(rows, baseline), start=1):
        lengths[(lengths == 0) & (means >= run_length)] = number
        if lengths.all():
            break
    return lengths


def test_mean_run_length_is_at_least_the_promise():
    lengths = run_lengths(0.1, 200.0, 400, 1)
    assert 200.0 - 4 * lengths.std() / 20 <= lengths.mean() < 600.0


@pytest.mark.slow
@pytest.mark.parametrize("baseline", [0.03, 0.05, 0.1])
def test_mean_run_length_at_the_boundary(baseline):
    lengths = run_lengths(baseline, 1e4, 300, 2)
    error = lengths.std() / 300**0.5
    assert lengths.mean() + 4 * error >= 1e4
    assert 12_000 - 4 * error <= lengths.mean() <= 19_000 + 4 * error  # recorded: 14,000 to 16,600


@pytest.mark.parametrize(("baseline", "median", "high"), [(0.03, 30, 60), (0.05, 48, 93), (0.1, 131, 250)])
def test_delay_after_a_jump(baseline, median, high):
    rng, found = np.random.default_rng(3), []
    while len(found) < 500:
        detector = DriftDetector(baseline, 1e4)
        detector.update_many(rng.random(200) < 0.02, 1)
        if detector.alarm:
            continue
        detector.update_many(rng.random(3_000) < 0.2, 201)
        found.append(detector.alarms[0] - 200)
    assert np.quantile(found, [0.5, 0.9]) == pytest.approx([median, high], rel=0.15)


def test_rearm_restarts_the_detector_and_keeps_the_alarms():
    detector = DriftDetector(0.05, 100.0)
    detector.update_many(np.ones(20, bool), 1)
    assert detector.alarm
    first = list(detector.alarms)
    detector.rearm()
    assert not detector.alarm
    assert detector.evidence == 0.0
    detector.update_many(np.ones(20, bool), 21)
    assert detector.alarms == [*first, 20 + first[0]]
