"""The drift detector: its recursion, run lengths and delays."""

import numpy as np
import pytest

from steingate.monitoring.drift import DriftDetector
from steingate.monitoring.wealth import THETA


def recursion(rows, baseline):
    """Yield mean(R) of several runs after each row of violations, shape (runs,)."""
    theta, r = np.array(THETA), 0.0
    for x in rows:
        r = np.minimum((1 + r) * (1 + theta * (x[:, None] - baseline) / baseline), 1e300)
        yield r.mean(axis=1)


@pytest.mark.parametrize("p", [0.002, 0.03, 0.12, 0.5])
@pytest.mark.parametrize("run_length", [50.0, 9e299])
def test_evidence_and_alarm_are_those_of_the_recursion(p, run_length):
    flags = np.random.default_rng(0).random(3_000) < p
    detector = DriftDetector(0.03, run_length)
    for number, (x, mean) in enumerate(zip(flags.tolist(), recursion(flags[:, None], 0.03), strict=True), start=1):
        detector.update(x, number)
        assert detector.evidence == pytest.approx(mean.item(), rel=1e-12)
        assert detector.alarm == (x and mean.item() >= run_length)
        if detector.alarm:
            break


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
    """From a rate of 2 % to 20 % after 200 episodes; runs with an earlier alarm are left out."""
    rng, first = np.random.default_rng(3), np.zeros(600, int)
    rows = (rng.random(600) < (0.02 if t < 200 else 0.2) for t in range(1500))
    for number, means in enumerate(recursion(rows, baseline), start=1):
        first[(first == 0) & (means >= 1e4)] = number
    assert first.all()
    assert np.quantile(first[first > 200] - 200, [0.5, 0.9]) == pytest.approx([median, high], rel=0.15)


def test_rearm_restarts_the_detector_and_keeps_the_alarms():
    detector = DriftDetector(0.05, 100.0)
    for number in range(1, 41):
        detector.update(True, number)
        if number == 20:
            assert detector.alarm
            detector.rearm()
            assert not detector.alarm
            assert detector.evidence == 0.0
    first = detector.alarms[0]
    assert detector.alarms == [first, 20 + first]
