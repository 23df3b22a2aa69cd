import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steingate.gates.base import Mode
from steingate.report.gate_stats import dwell_times, stretches, switches

MODES = st.lists(st.integers(0, 2), max_size=60)


def test_a_sequence_by_hand():
    modes = [2, 2, 2, 0, 2, 0, 0]
    assert stretches(modes) == [(2, 0, 3), (0, 3, 1), (2, 4, 1), (0, 5, 2)]
    assert switches(modes) == 3
    dwell = dwell_times(modes)
    assert list(dwell) == [Mode.IMPROVE, Mode.RECOVER]
    recover = dwell[Mode.RECOVER]
    assert (recover.stretches, recover.mean, recover.longest) == (2, 2.0, 3)
    assert recover.share == pytest.approx(4 / 7)


def test_nothing_gives_nothing():
    assert stretches([]) == []
    assert switches([]) == 0
    assert dwell_times([]) == {}


@given(MODES)
def test_stretches_rebuild_the_sequence(modes):
    runs = stretches(modes)
    assert np.concatenate([[mode] * length for mode, _, length in runs] or [[]]).tolist() == modes
    assert switches(modes) == max(len(runs) - 1, 0)
    assert sum(dwell.share for dwell in dwell_times(modes).values()) == pytest.approx(1.0 if modes else 0.0)
    assert sum(dwell.mean * dwell.stretches for dwell in dwell_times(modes).values()) == pytest.approx(
        len(modes)
    )


def test_dwell_times_of_a_fair_coin_are_geometric():
    modes = 2 * np.random.default_rng(0).integers(0, 2, 100_000)
    assert dwell_times(modes)[Mode.RECOVER].mean == pytest.approx(2.0, abs=0.05)
    assert switches(modes) / len(modes) == pytest.approx(0.5, abs=0.01)
