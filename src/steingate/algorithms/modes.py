"""The kind of policy update of each epoch, from the columns of ``progress.csv``. Needs NumPy only."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.certificates.formatting import percent


class Mode(IntEnum):
    """Problem that the policy update solves."""

    IMPROVE = 0  # maximize reward
    BALANCE = 1  # maximize reward subject to predicted cost <= limit
    RECOVER = 2  # minimize cost


MODE_NAMES = {mode: mode.name.lower() for mode in Mode}


def effective_modes(mode: npt.ArrayLike, case: npt.ArrayLike | None = None) -> npt.NDArray[np.int64]:
    """Return the mode of each update, with BALANCE resolved by the case of the trust-region subproblem.

    ``mode`` is the column ``Gate/Mode`` and ``case`` the column ``Loss/Case``, NaN or None where there is none. In case
    0 the limit is out of reach and the update minimizes cost; from case 3 on the limit does not bind and the update
    maximizes reward (``common.trust_region.Case``).

    >>> effective_modes([1, 1, 1, 2], [0, 1, 4, 4]).tolist()
    [2, 1, 0, 2]
    """
    modes = np.asarray(mode, np.float64).astype(np.int64)
    cases, balanced = np.asarray(np.nan if case is None else case, np.float64), modes == Mode.BALANCE
    result = np.where(balanced & (cases >= 3), Mode.IMPROVE, modes)
    return np.where(balanced & (cases == 0), Mode.RECOVER, result)


def describe_update(row: Mapping[str, Any]) -> tuple[str, Mode]:
    """Return a short text about the update in a row of ``progress.csv``, and the mode whose color fits it.

    >>> describe_update({"Gate/Mode": 0, "Gate/LagrangeMultiplier": 3.2})[0]
    'maximize reward - 3.2 cost'
    """
    mode = Mode(int(effective_modes(row["Gate/Mode"], row.get("Loss/Case"))))
    names = ("LagrangeMultiplier", "CostBudget", "BudgetFraction", "BudgetViolationRate")
    multiplier, budget, fraction, rate = (row.get(f"Gate/{name}") for name in names)
    if multiplier:
        return f"maximize reward - {multiplier:.3g} cost", Mode.BALANCE
    if budget is not None:
        return f"maximize reward, cost budget {budget:.2f}", mode
    if fraction is not None:
        known = "" if rate is None else f" ({percent(rate)} violations since it changed)"
        return f"maximize reward, cost budget {100 * fraction:.0f} % of the limit{known}", mode
    texts = {Mode.IMPROVE: "maximize reward", Mode.BALANCE: "maximize reward within the limit"}
    return texts.get(mode, "minimize cost"), mode
