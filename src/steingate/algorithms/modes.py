"""The kind of policy update of each epoch, from the columns of ``progress.csv``. Needs NumPy only."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt


class Mode(IntEnum):
    """Problem that the policy update solves."""

    IMPROVE = 0  # maximize reward
    BALANCE = 1  # maximize reward subject to predicted cost <= limit
    RECOVER = 2  # minimize cost


MODE_NAMES = {mode: mode.name.lower() for mode in Mode}


def effective_modes(mode: npt.ArrayLike, case: npt.ArrayLike | None = None) -> npt.NDArray[np.int64]:
    """Return the mode of each update, with BALANCE resolved by the case of the trust-region subproblem.

    Parameters
    ----------
    mode : column ``Gate/Mode``
    case : column ``Loss/Case`` (:class:`~steingate.algorithms.common.trust_region.Case`), NaN or ``None`` where there
        is none. In case 0 the limit is out of reach and the update minimizes cost; from case 3 on the limit does not
        bind and the update maximizes reward.

    Examples
    --------
    >>> effective_modes([1, 1, 1, 2], [0, 1, 4, 4]).tolist()
    [2, 1, 0, 2]
    """
    modes = np.asarray(mode, np.float64).astype(np.int64)
    if case is None:
        return modes
    cases, balanced = np.asarray(case, np.float64), modes == Mode.BALANCE
    result = np.where(balanced & (cases >= 3), Mode.IMPROVE, modes)
    return np.where(balanced & (cases == 0), Mode.RECOVER, result)


def describe_update(row: Mapping[str, Any]) -> tuple[str, Mode]:
    """Return a short text about the update of an epoch, and the mode whose color fits it.

    Parameters
    ----------
    row : a row of ``progress.csv``

    Examples
    --------
    >>> describe_update({"Gate/Mode": 0, "Gate/LagrangeMultiplier": 3.2})[0]
    'maximize reward - 3.2 cost'
    >>> describe_update({"Gate/Mode": 0, "Gate/BudgetFraction": 0.56})[0]
    'maximize reward, cost penalized lightly up to 56 % of the limit'
    >>> row = {"Gate/Mode": 0, "Gate/BudgetFraction": 0.56, "Gate/BudgetViolationRate": 0.02, "Gate/Budget": 0.01}
    >>> describe_update(row)[0]
    'maximize reward, cost penalized lightly up to 56 % of the limit (at this budget 2 % violations, target 1 %)'
    """
    mode = Mode(int(effective_modes(row["Gate/Mode"], row.get("Loss/Case"))))
    names = ("LagrangeMultiplier", "CostBudget", "BudgetFraction")
    multiplier, budget, fraction = (row.get(f"Gate/{name}") for name in names)
    if multiplier:
        return f"maximize reward - {multiplier:.3g} cost", Mode.BALANCE
    if budget is not None:
        return f"maximize reward, cost budget {budget:.2f}", mode
    if fraction is not None:
        rate = row.get("Gate/BudgetViolationRate")  # since the budget changed
        known = ""
        if rate is not None:
            known = f" (at this budget {100 * rate:.2g} % violations, target {100 * row['Gate/Budget']:.2g} %)"
        return f"maximize reward, cost penalized lightly up to {100 * fraction:.0f} % of the limit{known}", mode
    texts = {Mode.IMPROVE: "maximize reward", Mode.BALANCE: "maximize reward within the limit"}
    return texts.get(mode, "minimize cost"), mode
