import numpy as np
import pytest

from steingate.algorithms.modes import Mode, describe_update, effective_modes


def test_balanced_updates_are_resolved_by_the_case_of_the_subproblem():
    modes, cases = np.array([1.0, 1, 1, 1, 1, 0, 2]), np.array([0.0, 1, 2, 3, 4, 3, 0])
    assert effective_modes(modes, cases).tolist() == [2, 1, 1, 0, 0, 0, 2]
    assert effective_modes([1.0]).tolist() == [1]
    assert effective_modes([1.0, 1.0], [np.nan, 0.0]).tolist() == [1, 2]
    assert int(effective_modes(1.0, 4)) == Mode.IMPROVE


@pytest.mark.parametrize(
    ("row", "text", "mode"),
    [
        ({"Gate/Mode": 0}, "maximize reward", Mode.IMPROVE),
        ({"Gate/Mode": 1, "Loss/Case": 0}, "minimize cost", Mode.RECOVER),
        ({"Gate/Mode": 0, "Gate/LagrangeMultiplier": 3.2}, "maximize reward - 3.2 cost", Mode.BALANCE),
        ({"Gate/Mode": 0, "Gate/CostBudget": 12.0}, "maximize reward, cost budget 12.00", Mode.IMPROVE),
        (
            {"Gate/Mode": 0, "Gate/BudgetFraction": 0.6},
            "maximize reward, cost penalized lightly up to 60 % of the limit",
            Mode.IMPROVE,
        ),
    ],
)
def test_descriptions(row, text, mode):
    assert describe_update(row) == (text, mode)
