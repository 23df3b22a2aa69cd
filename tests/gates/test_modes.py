import numpy as np
import pytest
from steingate.gates.base import Mode
from steingate.gates.modes import NAMES, effective_modes, step_in_words


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


@pytest.mark.parametrize(
    ("row", "words", "mode"),
    [
        ({"Gate/Mode": 0}, "improve", Mode.IMPROVE),
        ({"Gate/Mode": 1, "Step/Case": 0}, "recover", Mode.RECOVER),
        ({"Gate/Mode": 0, "Gate/Price": 3.2}, "penalize, price 3.2", Mode.BALANCE),
        ({"Gate/Mode": 0, "Gate/Price": 0.0}, "improve, price 0", Mode.IMPROVE),
        ({"Gate/Mode": 0, "Gate/CostBudget": 12.0}, "improve within budget 12.00", Mode.IMPROVE),
        ({"Gate/Mode": 0, "Gate/Share": 0.6}, "improve within 60% of the limit", Mode.IMPROVE),
    ],
)
def test_steps_at_a_price_or_within_a_budget_say_so(row, words, mode):
    assert step_in_words(row) == (words, mode)
