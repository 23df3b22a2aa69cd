import numpy as np
import pytest

from steingate.gates.base import Mode
from steingate.gates.modes import NAMES, effective_modes


def test_balanced_steps_are_shown_as_what_they_did():
    modes, cases = np.array([1.0, 1, 1, 1, 1, 0, 2]), np.array([0.0, 1, 2, 3, 4, 3, 0])
    assert effective_modes(modes, cases).tolist() == [2, 1, 1, 0, 0, 0, 2]
    assert effective_modes([1.0]).tolist() == [1]
    assert effective_modes([1.0, 1.0], [np.nan, 0.0]).tolist() == [1, 2]


@pytest.mark.parametrize(("case", "mode"), [(0, Mode.RECOVER), (1, Mode.BALANCE), (4, Mode.IMPROVE)])
def test_one_step_at_a_time(case, mode):
    assert int(effective_modes(1.0, case)) == mode


def test_every_mode_has_its_own_name():
    assert set(NAMES) == set(Mode)
    assert list(NAMES.values()) == ["improve", "balance", "recover"]
