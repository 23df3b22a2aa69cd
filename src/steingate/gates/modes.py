"""What a policy step did, as the tables tell it: one function and one set of names for all who show it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from steingate.gates.base import Mode

NAMES = {mode: mode.name.lower() for mode in Mode}


def effective_modes(mode: npt.ArrayLike, case: npt.ArrayLike | None = None) -> npt.NDArray[np.int64]:
    """Return what steps did, where a gate leaves it to a balanced step what to do.

    Parameters
    ----------
    mode
        What the gate said: the column ``Gate/Mode``.
    case
        How the step solved its subproblem: the column ``Step/Case``, NaN or ``None`` where there is none. A
        balanced step in case 0 found no point within the limit and lowered cost; in case 3 and above the
        limit was out of reach and it raised reward alone.

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


def step_in_words(row: Mapping[str, Any]) -> tuple[str, Mode]:
    """Return what the step of an epoch did, for people, and the mode whose color fits it.

    Parameters
    ----------
    row
        A row of ``progress.csv``. A column ``Gate/Price``, ``Gate/CostBudget`` or ``Gate/Share`` tells of a
        method that always raises reward, but at a price on cost or within a budget.

    Examples
    --------
    >>> step_in_words({"Gate/Mode": 0, "Gate/Price": 3.2})[0]
    'penalize, price 3.2'
    """
    mode = Mode(int(effective_modes(row["Gate/Mode"], row.get("Step/Case"))))
    price, budget, share = (row.get(f"Gate/{name}") for name in ("Price", "CostBudget", "Share"))
    if price is not None:
        return f"{'penalize' if price > 0.0 else NAMES[mode]}, price {price:.3g}", _doubt(price)
    if budget is not None:
        return f"{NAMES[mode]} within budget {budget:.2f}", mode
    if share is not None:
        return f"{NAMES[mode]} within {share:.0%} of the limit", mode
    return NAMES[mode], mode


def _doubt(price: float) -> Mode:
    return Mode.BALANCE if price > 0.0 else Mode.IMPROVE
